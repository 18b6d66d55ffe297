// SPDX-License-Identifier: Apache-2.0
// What an engine holds stays within what it was given, however many prompts and users there were.
#include <chrono>
#include <memory>
#include <string>

#include "engine/tiny_engine.h"
#include "incipit/store.h"
#include "support/catch.h"
#include "support/heap_bytes.h"

using namespace incipit;
using namespace incipit::test;

namespace {

/// One of very many users, with a document and a conversation of their own.
CacheLabels labels_of(std::uint32_t user) {
  CacheLabels labels;
  labels.salt = "user " + std::to_string(user);
  labels.session = "session " + std::to_string(user);
  labels.version = std::to_string(user);
  labels.tags = {"document " + std::to_string(user)};
  labels.time_to_live = std::chrono::hours(1);
  return labels;
}

/// Prompts that nobody else sends, of so many users by turns.
void serve(Engine& engine, std::uint32_t users, std::uint32_t first, std::uint32_t end) {
  for (std::uint32_t prompt = first; prompt < end; ++prompt) {
    GenerateParams params;
    params.max_tokens = 1;
    params.cache = labels_of(prompt % users);
    engine.generate_with_cache(random_ids(20, prompt), params);
  }
}

}  // namespace

TEST_CASE("twenty thousand prompts leave no more behind than those before them") {
  const bool tiers = GENERATE(false, true);
  CAPTURE(tiers);
  const TinyModelFile file;
  EngineOptions options = file.options();
  options.kv_pool_bytes = 64 * Engine(options).model().pool_bytes_per_block;
  PrefixCacheOptions cache;
  if (tiers) cache.tiers = {{.store = make_memory_store(256 << 10)}};
  cache.hot_sessions = 5;
  Engine engine(options, std::make_shared<PrefixCache>(cache));
  // Tiers remember the labels of some thousands of users: LabelEpochs::kRemembered.
  const std::uint32_t users = tiers ? 100 : 100'000;
  serve(engine, users, 0, 3000);  // what is bounded is full by then
  CHECK(engine.cache().flush(std::chrono::seconds(100)));
  const std::size_t before = heap_bytes();
  serve(engine, users, 3000, 23'000);
  CHECK(engine.cache().flush(std::chrono::seconds(100)));
  const std::size_t after = heap_bytes();
  // A number for each prompt would be 160,000 bytes.
  CHECK(after <= before + 100'000);
}

TEST_CASE("free blocks that are scattered over the pool serve a long prompt as well") {
  const TinyModelFile file;
  EngineOptions options = file.options();
  constexpr std::size_t kBlocks = 48;
  options.kv_pool_bytes = kBlocks * Engine(options).model().pool_bytes_per_block;
  Engine engine(options);
  constexpr std::size_t kPrompt = 33;  // two full blocks
  constexpr std::uint32_t kOthers = 22;
  const auto known = [&](std::uint32_t i) {
    GenerateParams params;
    params.max_tokens = 0;
    params.cache.retention = {
        {.first_token = 0,
         .end_token = kPrompt,
         .priority = i % 2 == 0 ? CachePriority::kHigh : CachePriority::kLow}};
    return engine.generate_with_cache(random_ids(kPrompt, i), params).reused_tokens / 16 * 16;
  };
  for (std::uint32_t i = 0; i < kOthers; ++i) CHECK(known(i) == 0);

  const auto ids = random_ids(24 * 16, 99);  // more than lies free in one piece
  const std::string expected =
      fingerprint(Engine(file.options()).generate(ids, whole_rows(engine, 2)));
  CHECK(fingerprint(engine.generate_with_cache(ids, whole_rows(engine, 2))) == expected);
  for (std::uint32_t i = 0; i < kOthers; i += 2) CHECK(known(i) == 32);
}
