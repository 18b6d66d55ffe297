// SPDX-License-Identifier: Apache-2.0
#include "cache_costs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <vector>

#include "benchmarks/full_cache.h"
#include "metric.h"
#include "store/fake_store.h"
#include "support/fake_device.h"

namespace bench {
namespace {

using incipit::TokenId;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kIndexTokens = 8000;
constexpr std::size_t kIndexedBlocks = 1'002'000;
constexpr std::size_t kPromptTokens = 4096;
constexpr std::size_t kIndexRepeats = 101;

template <class Work>
double median_us(std::size_t repeat, Work&& work) {
  std::vector<double> values;
  for (std::size_t i = 0; i < repeat; ++i) {
    const auto begin = Clock::now();
    work();
    values.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return median(values);
}

void measure_index(CacheCosts& costs) {
  incipit::test::FakeDevice device;
  FullCache cache(device, kIndexTokens, kIndexedBlocks);
  costs.lookup_8000_tokens_us = median_us(kIndexRepeats, [&] { cache.look_up(); });
  costs.insert_8000_tokens_us = median_us(kIndexRepeats, [&] { cache.insert(); });
  costs.blocks_indexed = static_cast<std::size_t>(cache.blocks_indexed());
}

std::shared_ptr<incipit::PrefixCache> cache_on(std::shared_ptr<incipit::Store> store,
                                               std::chrono::milliseconds deadline) {
  incipit::PrefixCacheOptions options;
  options.tiers = {{.store = std::move(store), .deadline = deadline}};
  return std::make_shared<incipit::PrefixCache>(options);
}

std::shared_ptr<incipit::PrefixCache> cache_in(const std::filesystem::path& folder) {
  incipit::DirectoryStoreOptions directory;
  directory.directory = folder;
  return cache_on(incipit::make_directory_store(directory), std::chrono::seconds(10));
}

double first_token_ms(const incipit::GenerateResult& result) {
  return static_cast<double>(result.time_to_first_token.count()) / 1e3;
}

/// Writes a folder's files to the disk and lets the page cache forget them.
void drop_pages(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const int file = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    fsync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
  }
}

/// Of a new engine, as in a new process: until the KV of the prompt was in the pool.
double restore_ms(const incipit::EngineOptions& options, const std::filesystem::path& folder,
                  const std::vector<TokenId>& prompt) {
  const auto cache = cache_in(folder);
  incipit::Engine engine(options, cache);
  const auto result = engine.generate_with_cache(prompt, {.max_tokens = 1});
  if (result.loaded_tokens + 16 < prompt.size()) {
    throw std::runtime_error("the prompt was not restored; is the machine too busy?");
  }
  return static_cast<double>(engine.stats().load_microseconds) / 1e3;
}

/// A tier that is slower than computing, and one that never answers.
void measure_bad_tiers(const incipit::EngineOptions& options, std::size_t repeat,
                       const std::vector<TokenId>& prompt, CacheCosts& costs) {
  const auto store = std::make_shared<incipit::test::FaultyStore>();
  {
    const auto cache = cache_on(store, std::chrono::seconds(10));
    incipit::Engine engine(options, cache);
    engine.generate_with_cache(prompt, {.max_tokens = 1});
    if (!cache->flush(std::chrono::minutes(1))) throw std::runtime_error("cannot fill the store");
  }
  std::vector<double> ratios, first, later;
  const std::vector<TokenId> a(prompt.begin(), prompt.begin() + 64);
  const std::vector<TokenId> b(prompt.begin() + 64, prompt.begin() + 128);
  for (std::size_t i = 0; i < repeat; ++i) {
    store->set({.bytes_per_second = 5'000'000});
    incipit::Engine engine(options, cache_on(store, std::chrono::seconds(10)));
    const double uncached = first_token_ms(engine.generate(prompt, {.max_tokens = 1}));
    ratios.push_back(first_token_ms(engine.generate_with_cache(prompt, {.max_tokens = 1})) /
                     uncached);
    store->set({.hang = true});
    incipit::Engine silent(options, cache_on(store, std::chrono::milliseconds(250)));
    silent.generate(a, {.max_tokens = 1});
    const double without = first_token_ms(silent.generate(a, {.max_tokens = 1}));
    first.push_back(first_token_ms(silent.generate_with_cache(a, {.max_tokens = 1})) - without);
    later.push_back(first_token_ms(silent.generate_with_cache(b, {.max_tokens = 1})) - without);
  }
  costs.throttled_ratio = median(ratios);
  costs.silent_first_ms = median(first);
  costs.silent_later_ms = median(later);
}

}  // namespace

CacheCosts measure_cache_costs(const incipit::EngineOptions& options, std::size_t repeat,
                               const std::filesystem::path& folder) {
  CacheCosts costs;
  measure_index(costs);

  std::vector<TokenId> prompt(kPromptTokens);
  std::vector<double> prefill, warm, disk;
  {
    const auto cache = cache_in(folder);
    incipit::Engine engine(options, cache);
    for (std::size_t i = 0; i < prompt.size(); ++i) {
      prompt[i] = static_cast<TokenId>(i * 7919 % engine.model().vocabulary);
    }
    for (std::size_t i = 0; i < repeat; ++i) {
      const auto result = engine.generate(prompt, {.max_tokens = 1});
      prefill.push_back(first_token_ms(result));
    }
    engine.generate_with_cache(prompt, {.max_tokens = 1});
    if (!cache->flush(std::chrono::minutes(1))) throw std::runtime_error("cannot fill the folder");
    costs.restored_bytes =
        static_cast<double>(engine.model().kv_bytes_per_token * (kPromptTokens - 16));
  }
  for (std::size_t i = 0; i < repeat; ++i) {
    warm.push_back(restore_ms(options, folder, prompt));
    drop_pages(folder);
    disk.push_back(restore_ms(options, folder, prompt));
  }
  std::filesystem::remove_all(folder);
  measure_bad_tiers(options, repeat, prompt, costs);
  costs.prefill_4096_ms = median(prefill);
  costs.restore_4096_warm_ms = median(warm);
  costs.restore_4096_disk_ms = median(disk);
  costs.bookkeeping_share = (costs.lookup_8000_tokens_us + costs.insert_8000_tokens_us) / 1e3 *
                            kPromptTokens / kIndexTokens / costs.prefill_4096_ms;
  return costs;
}

}  // namespace bench
