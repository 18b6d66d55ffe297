// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <incipit/engine.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

// What a user waits for, on a real model: the prompt, the text after it, and the first token of a
// prompt whose front is in the cache.

namespace {

using Seconds = std::chrono::duration<double>;

/// `count` ids that differ from position to position; `salt` makes other ones.
std::vector<incipit::TokenId> some_ids(const incipit::Engine& engine, std::size_t count,
                                       std::size_t salt = 0) {
  std::vector<incipit::TokenId> ids(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t id = (1000 + i * 7919 + salt * 104729) % engine.model().vocabulary;
    ids[i] = static_cast<incipit::TokenId>(id);
  }
  return ids;
}

/// Prompt tokens per second, without a cache.
void prompt(benchmark::State& state, incipit::Engine& engine) {
  const auto ids = some_ids(engine, static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(engine.generate(ids, {.max_tokens = 0}));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

/// Generated tokens per second behind a prompt, the first token left out.
void text(benchmark::State& state, incipit::Engine& engine) {
  constexpr std::size_t kTokens = 65;
  const auto ids = some_ids(engine, static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    const auto result =
        engine.generate_with_cache(ids, {.max_tokens = kTokens, .ignore_eos = true});
    state.SetIterationTime(Seconds(result.total_time - result.time_to_first_token).count());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kTokens - 1));
}

/// Time to first token of a prompt of which all but 20 tokens are in the cache.
void first_token(benchmark::State& state, incipit::Engine& engine) {
  const auto front = some_ids(engine, static_cast<std::size_t>(state.range(0)) - 20);
  engine.generate_with_cache(front, {.max_tokens = 0});
  std::size_t question = 0;
  for (auto _ : state) {
    auto ids = front;
    const auto tail = some_ids(engine, 20, ++question);
    ids.insert(ids.end(), tail.begin(), tail.end());
    const auto result = engine.generate_with_cache(ids, {.max_tokens = 1});
    state.SetIterationTime(Seconds(result.time_to_first_token).count());
  }
}

void register_all(incipit::Engine& engine) {
  using benchmark::RegisterBenchmark;
  for (const std::int64_t tokens : {16, 128, 512, 3300}) {
    RegisterBenchmark("prompt", prompt, std::ref(engine))
        ->Arg(tokens)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  for (const std::int64_t tokens : {16, 512, 3300}) {
    RegisterBenchmark("text", text, std::ref(engine))
        ->Arg(tokens)
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime();
  }
  for (const std::int64_t tokens : {512, 3300}) {
    RegisterBenchmark("first_token", first_token, std::ref(engine))
        ->Arg(tokens)
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime();
  }
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("What a user waits for, measured on a real model");
  incipit::EngineOptions options;
  std::string json, filter = ".";
  app.add_option("--model", options.model, "A GGUF file or a Hugging Face directory")->required();
  app.add_option("--threads", options.threads, "0: the CPUs that this process may use");
  app.add_option("--filter", filter, "Run the benchmarks whose name matches");
  app.add_option("--json", json, "Write the figures to this file; -: to standard output");
  CLI11_PARSE(app, argc, argv);

  // Google Benchmark takes its options from a command line only.
  std::vector<std::string> words = {argv[0], "--benchmark_filter=" + filter};
  if (json == "-") words.push_back("--benchmark_format=json");
  if (!json.empty() && json != "-") {
    words.push_back("--benchmark_out=" + json);
    words.push_back("--benchmark_out_format=json");
  }
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());

  incipit::Engine engine(options);
  const incipit::ModelInfo& model = engine.model();
  benchmark::AddCustomContext("model", model.name);
  benchmark::AddCustomContext("numerics", model.numerics);
  benchmark::AddCustomContext("threads", std::to_string(model.threads));
  register_all(engine);
  benchmark::RunSpecifiedBenchmarks();
} catch (const std::exception& error) {
  std::cerr << "engine_benchmark: " << error.what() << "\n";
  return 1;
}
