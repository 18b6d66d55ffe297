// SPDX-License-Identifier: Apache-2.0
// Restores a prompt's KV from a folder whose files are in the page cache, each time into a new
// engine, and says what each time took. `compare_restore.py` runs it by turns with llama.cpp.
#include <incipit/engine.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

namespace {

using incipit::TokenId;

constexpr std::size_t kPromptTokens = 4096;

struct Options {
  std::string model = {};
  std::string folder = {};
  unsigned threads = 0;
  std::size_t repeat = 1;
};

std::shared_ptr<incipit::PrefixCache> cache_in(const std::filesystem::path& folder) {
  incipit::DirectoryStoreOptions directory;
  directory.directory = folder;
  incipit::PrefixCacheOptions options;
  options.tiers = {
      {.store = incipit::make_directory_store(directory), .deadline = std::chrono::seconds(10)}};
  return std::make_shared<incipit::PrefixCache>(options);
}

incipit::EngineOptions engine_options(const Options& options) {
  incipit::EngineOptions engine;
  engine.model = options.model;
  engine.threads = options.threads;
  return engine;
}

std::vector<TokenId> prompt_for(const incipit::Engine& engine) {
  std::vector<TokenId> prompt(kPromptTokens);
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    prompt[i] = static_cast<TokenId>(i * 7919 % engine.model().vocabulary);
  }
  return prompt;
}

/// Processor time of this process, of all its threads and in the kernel. Milliseconds.
double cpu_ms() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

struct Restore {
  double load_ms = 0;  // from the look into the folder until the KV is in the pool
  double cpu_ms = 0;   // until the request has heard of it, so a little of what follows is in it
};

Restore restore(incipit::Engine& engine, const std::vector<TokenId>& prompt) {
  incipit::GenerateParams params;
  params.max_tokens = 1;
  const double before = cpu_ms();
  double spent = 0;
  params.on_prefill = [&](std::size_t done, std::size_t) {
    if (spent == 0 && done > 0) spent = cpu_ms() - before;
  };
  const auto result = engine.generate_with_cache(prompt, params);
  if (result.loaded_tokens + 16 < prompt.size()) {
    throw std::runtime_error("the prompt was not restored; is the machine too busy?");
  }
  return {static_cast<double>(engine.stats().load_microseconds) / 1e3, spent};
}

/// Computes the prompt where the folder is not there yet.
void fill(const Options& options) {
  if (std::filesystem::exists(options.folder)) return;
  const auto cache = cache_in(options.folder);
  incipit::Engine engine(engine_options(options), cache);
  const std::vector<TokenId> prompt = prompt_for(engine);
  engine.generate_with_cache(prompt, {.max_tokens = 1});
  if (!cache->flush(std::chrono::minutes(1))) throw std::runtime_error("cannot fill the folder");
}

void run(const Options& options) {
  fill(options);
  std::vector<double> load, cpu;
  double bytes = 0;
  for (std::size_t i = 0; i < options.repeat; ++i) {
    incipit::Engine engine(engine_options(options), cache_in(options.folder));
    const Restore once = restore(engine, prompt_for(engine));
    load.push_back(once.load_ms);
    cpu.push_back(once.cpu_ms);
    bytes = static_cast<double>(engine.model().kv_bytes_per_token * (kPromptTokens - 16));
  }
  const nlohmann::ordered_json out = {{"bytes", bytes}, {"load_ms", load}, {"cpu_ms", cpu}};
  std::cout << out.dump() << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Restores 4,096 tokens from a folder in the page cache.", "cache_restore");
  Options options;
  app.add_option("--model", options.model, "GGUF file or Hugging Face directory")->required();
  app.add_option("--folder", options.folder, "Filled by the first call, and kept")->required();
  app.add_option("--threads", options.threads, "0: the CPUs that this process may use");
  app.add_option("--repeat", options.repeat, "How often")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "cache_restore: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
