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

std::shared_ptr<incipit::PrefixCache> cache_in(const std::filesystem::path& folder) {
  incipit::DirectoryStoreOptions directory;
  directory.directory = folder;
  incipit::PrefixCacheOptions options;
  options.tiers = {
      {.store = incipit::make_directory_store(directory), .deadline = std::chrono::seconds(10)}};
  return std::make_shared<incipit::PrefixCache>(options);
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
      prefill.push_back(static_cast<double>(result.time_to_first_token.count()) / 1e3);
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
  costs.prefill_4096_ms = median(prefill);
  costs.restore_4096_warm_ms = median(warm);
  costs.restore_4096_disk_ms = median(disk);
  costs.bookkeeping_share = (costs.lookup_8000_tokens_us + costs.insert_8000_tokens_us) / 1e3 *
                            kPromptTokens / kIndexTokens / costs.prefill_4096_ms;
  return costs;
}

}  // namespace bench
