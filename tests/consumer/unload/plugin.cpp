// SPDX-License-Identifier: Apache-2.0
// A plugin of a host: runs an engine with cold tiers and leaves nothing behind.
#include "unload/plugin.h"

#include <incipit/incipit.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace {

std::shared_ptr<incipit::PrefixCache> make_cache(const char* folder) {
  incipit::PrefixCacheOptions options;
  // A machine with other things to do may be late; what is loaded is to win nevertheless.
  constexpr auto kPatience = std::chrono::seconds(30);
  options.tiers = {
      {.store = incipit::make_memory_store(1 << 20), .deadline = kPatience},
      {.store = incipit::make_directory_store({.directory = folder}), .deadline = kPatience}};
  options.tier_patience = kPatience;
  return std::make_shared<incipit::PrefixCache>(options);
}

std::unique_ptr<incipit::Engine> make_engine(const char* model,
                                             std::shared_ptr<incipit::PrefixCache> cache) {
  incipit::EngineOptions options;
  options.model = model;
  options.threads = 2;
  return std::make_unique<incipit::Engine>(options, std::move(cache));
}

/// How many tokens of a long prompt the cache had; -1: it could not be stored.
long generate(const char* model, const char* folder) {
  const auto cache = make_cache(folder);
  const auto engine = make_engine(model, cache);
  const std::string prompt = "It begins, and goes on for a while, and it ends where it began.";
  const auto result = engine->generate_with_cache(prompt, "And on.", {.max_tokens = 2});
  return cache->flush(std::chrono::minutes(1)) ? static_cast<long>(result.reused_tokens) : -1;
}

}  // namespace

extern "C" int run_plugin(const char* model, const char* folder, bool keeps) noexcept {
  try {
    if (generate(model, folder) < 0) return 1;
    if (generate(model, folder) <= 0) return 2;
    // A careless plugin: its engine ends when its statics do.
    static std::unique_ptr<incipit::Engine> kept;
    if (keeps) kept = make_engine(model, make_cache(folder));
    return 0;
  } catch (...) {
    return 3;
  }
}
