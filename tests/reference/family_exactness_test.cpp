// SPDX-License-Identifier: Apache-2.0
// Promise 1 on every family: windows, learned positions, ALiBi and norms of each kind change
// nothing about what a position's logits depend on.
#include <algorithm>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "engine/tiny_engine.h"
#include "incipit/engine.h"
#include "reference/tiny_fixtures.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::test;

namespace {

std::string uncached(Engine& engine, std::span<const TokenId> ids) {
  return fingerprint(engine.generate(ids, whole_rows(engine, 2)));
}

std::string cached(Engine& engine, std::span<const TokenId> ids) {
  return fingerprint(engine.generate_with_cache(ids, whole_rows(engine, 2)));
}

// One file of each model: both have one arithmetic.
std::vector<std::filesystem::path> models() {
  std::vector<std::filesystem::path> out;
  for (const TinyFixture& tiny : tiny_fixtures()) {
    if (tiny.model.extension() != ".gguf") out.push_back(tiny.model);
  }
  return out;
}

EngineOptions options_for(const std::filesystem::path& model, CpuPath path) {
  EngineOptions options;
  options.model = model;
  options.cpu_path = path;
  options.threads = 2;
  return options;
}

}  // namespace

TEST_CASE("each family: every split of a prompt gives the bits of the uncached run") {
  for (const auto& model : models()) {
    for (const CpuPath path : cpu_paths()) {
      Engine engine(options_for(model, path));
      for (const std::size_t n : {33u, 290u}) {
        const auto ids = random_ids(n, static_cast<std::uint32_t>(n));
        const std::string expected = uncached(engine, ids);
        for (const std::size_t split : std::set<std::size_t>{0, 16, 17, 256, n - 1, n}) {
          if (split > n) continue;
          engine.cache().clear();
          if (split > 0) {
            engine.generate_with_cache(std::span(ids).first(split), {.max_tokens = 0});
          }
          const auto result = engine.generate_with_cache(ids, whole_rows(engine, 2));
          CAPTURE(model.string(), static_cast<int>(path), n, split);
          CHECK(result.reused_tokens == std::min(split / 16 * 16, n - 1));
          CHECK(fingerprint(result) == expected);
        }
      }
    }
  }
}

TEST_CASE("each family: prefill chunks, threads and KV types change nothing") {
  const auto ids = random_ids(290, 9);
  for (const auto& model : models()) {
    for (const CpuPath path : cpu_paths()) {
      for (const KvType type : {KvType::kAuto, KvType::kInt8}) {
        if (type == KvType::kInt8 && path == CpuPath::kScalar) continue;  // slow
        std::string expected;
        for (const std::size_t chunk : {512u, 7u, 100u}) {
          EngineOptions options = options_for(model, path);
          options.kv_type = type;
          options.prefill_chunk = chunk;
          options.threads = chunk == 100 ? 1 : 2;
          Engine engine(options);
          const std::string got = uncached(engine, ids);
          if (expected.empty()) expected = got;
          CAPTURE(model.string(), static_cast<int>(path), static_cast<int>(type), chunk);
          CHECK(got == expected);
          CHECK(cached(engine, ids) == expected);
          CHECK(cached(engine, ids) == expected);
        }
      }
    }
  }
}

TEST_CASE("each family: who else is in the batch changes nothing") {
  for (const auto& model : models()) {
    EngineOptions options = options_for(model, CpuPath::kAuto);
    options.prefill_chunk = 40;
    Engine engine(options);
    const auto shared = random_ids(270, 12);
    std::vector<std::vector<TokenId>> prompts;
    std::vector<std::string> expected;
    for (std::uint32_t i = 0; i < 5; ++i) {
      auto ids = i % 2 == 0 ? shared : std::vector<TokenId>();
      const auto tail = random_ids(5 + 23 * i, 100 + i);
      ids.insert(ids.end(), tail.begin(), tail.end());
      expected.push_back(uncached(engine, ids));
      prompts.push_back(std::move(ids));
    }
    for (int round = 0; round < 2; ++round) {
      std::vector<std::string> got(prompts.size());
      std::vector<std::thread> callers;
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        callers.emplace_back([&, i] { got[i] = cached(engine, prompts[i]); });
      }
      for (std::thread& caller : callers) caller.join();
      CAPTURE(model.string());
      CHECK(got == expected);
    }
  }
}
