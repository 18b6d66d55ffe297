// SPDX-License-Identifier: Apache-2.0
// A plugin of a host: runs an engine with cold tiers and leaves nothing behind.
#include "unload/plugin.h"

#include <incipit/incipit.h>

#include <chrono>
#include <memory>
#include <string>

namespace {

std::shared_ptr<incipit::PrefixCache> make_cache(const char* folder) {
  incipit::PrefixCacheOptions options;
  options.tiers = {{.store = incipit::make_memory_store(1 << 20)},
                   {.store = incipit::make_directory_store({.directory = folder})}};
  return std::make_shared<incipit::PrefixCache>(options);
}

/// How many tokens of a long prompt the cache had; -1: it could not be stored.
long generate(const char* model, const char* folder) {
  const auto cache = make_cache(folder);
  incipit::EngineOptions options;
  options.model = model;
  options.threads = 2;
  incipit::Engine engine(options, cache);
  const std::string prompt = "It begins, and goes on for a while, and it ends where it began.";
  const auto result = engine.generate_with_cache(prompt, "And on.", {.max_tokens = 2});
  return cache->flush(std::chrono::minutes(1)) ? static_cast<long>(result.reused_tokens) : -1;
}

}  // namespace

extern "C" int run_plugin(const char* model, const char* folder) noexcept {
  try {
    if (generate(model, folder) < 0) return 1;
    return generate(model, folder) > 0 ? 0 : 2;
  } catch (...) {
    return 3;
  }
}
