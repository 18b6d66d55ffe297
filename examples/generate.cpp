// SPDX-License-Identifier: Apache-2.0
#include <incipit/engine.h>

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "cache_options.h"
#include "option_names.h"
#include "support.h"

// Answers prompts over one static text, for scripts: see --help.

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLikeliest = 5;  // that --logprobs reports per token
constexpr std::chrono::minutes kStoreAtMost{1};

struct Options {
  std::string model, static_file, json, kv_type, activations, cpu_path, gpu_math;
  std::vector<std::string> prompts;
  unsigned threads = 0;
  bool chat = false, no_cache = false, reference = false, logprobs = false, explain_miss = false;
  examples::CacheOptions cache = {};
  incipit::GenerateParams params = {};
};

void declare(CLI::App& app, Options& options) {
  incipit::GenerateParams& params = options.params;
  app.add_option("--model", options.model, "GGUF file or Hugging Face directory")->required();
  app.add_option("--static-file", options.static_file, "Text that comes before each prompt");
  app.add_option("--prompt", options.prompts, "What to answer; give it several times for several")
      ->required()
      ->allow_extra_args(false);
  app.add_flag("--chat", options.chat,
               "The static text is the system message, each prompt a user message");
  app.add_option("--max-tokens", params.max_tokens, "Tokens to generate at most")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--temperature", params.temperature, "0: always the likeliest token")
      ->capture_default_str();
  app.add_option("--top-k", params.top_k, "Keep the k likeliest tokens; 0: all")
      ->capture_default_str();
  app.add_option("--top-p", params.top_p, "Keep the fewest that have this probability together")
      ->capture_default_str();
  app.add_option("--min-p", params.min_p, "Keep those with this share of the likeliest's")
      ->capture_default_str();
  app.add_option("--seed", params.seed, "The same seed gives the same text")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--ignore-eos", params.ignore_eos, "Go on to --max-tokens");
  app.add_option("--threads", options.threads, "0: the CPUs that this process may use")
      ->capture_default_str();
  app.add_flag("--no-cache", options.no_cache, "Compute each prompt from its first token on");
  examples::declare(app, options.cache);
  app.add_option("--salt", params.cache.salt, "KV is shared with runs of the same salt only");
  app.add_flag("--explain-miss", options.explain_miss,
               "Say before each prompt what the cache has of it, and why not more");
  app.add_flag("--reference", options.reference,
               "Float activations and F32 KV, as Hugging Face transformers computes");
  app.add_option("--kv-type", options.kv_type, "auto, bf16, f16, f32 or int8")
      ->check(CLI::IsMember(&examples::kKvTypes));
  app.add_option("--activations", options.activations, "mixed, int8 or float")
      ->check(CLI::IsMember(&examples::kActivations));
  app.add_option("--cpu-path", options.cpu_path, "auto, scalar, avx2 or avx512")
      ->check(CLI::IsMember(&examples::kCpuPaths));
  app.add_option("--gpu-math", options.gpu_math, "exact or fast")
      ->check(CLI::IsMember(&examples::kGpuMath));
  app.add_flag("--logprobs", options.logprobs,
               "Put log-probabilities, and the five likeliest tokens, into the JSON");
  app.add_option("--json", options.json, "Write the results here; -: stdout");
}

incipit::EngineOptions engine_options(const Options& options) {
  incipit::EngineOptions engine;
  if (options.reference) engine = incipit::EngineOptions::reference(options.model);
  engine.model = options.model;
  engine.threads = options.threads;
  if (!options.kv_type.empty()) engine.kv_type = examples::kKvTypes.at(options.kv_type);
  if (!options.activations.empty()) {
    engine.activations = examples::kActivations.at(options.activations);
  }
  if (!options.cpu_path.empty()) engine.cpu_path = examples::kCpuPaths.at(options.cpu_path);
  if (!options.gpu_math.empty()) engine.gpu_math = examples::kGpuMath.at(options.gpu_math);
  return engine;
}

std::vector<incipit::Message> chat(const std::string& static_text, const std::string& prompt) {
  std::vector<incipit::Message> messages;
  if (!static_text.empty()) messages.push_back({incipit::Role::kSystem, static_text});
  messages.push_back({incipit::Role::kUser, prompt});
  return messages;
}

incipit::GenerateResult answer(incipit::Engine& engine, const Options& options,
                               const std::string& static_text, const std::string& prompt) {
  const incipit::GenerateParams& params = options.params;
  if (options.chat) {
    const std::vector<incipit::Message> messages = chat(static_text, prompt);
    return options.no_cache ? engine.generate(messages, params)
                            : engine.generate_with_cache(messages, params);
  }
  return options.no_cache ? engine.generate(static_text + prompt, params)
                          : engine.generate_with_cache(static_text, prompt, params);
}

Json to_json(const incipit::GenerateResult& result) {
  Json top = Json::array();
  for (const auto& likeliest : result.top) {
    Json& entries = top.emplace_back(Json::array());
    for (const auto& [id, logprob] : likeliest)
      entries.push_back({{"id", id}, {"logprob", logprob}});
  }
  return {{"text", result.text},
          {"prompt_ids", result.prompt_ids},
          {"output_ids", result.token_ids},
          {"logprobs", result.logprobs},
          {"top", top},
          {"reused_tokens", result.reused_tokens},
          {"time_to_first_token_ms", examples::milliseconds(result.time_to_first_token)},
          {"finish", std::string(to_string(result.finish))}};
}

void explain_miss(incipit::Engine& engine, const Options& options, const std::string& text) {
  const incipit::MissExplanation miss = engine.explain_miss(text, options.params.cache);
  std::cerr << "[of " << miss.prompt_tokens << " tokens " << miss.known_tokens << " are in memory";
  if (miss.stored_tokens > 0) std::cerr << ", " << miss.stored_tokens << " in " << miss.stored_in;
  if (miss.reason != incipit::MissReason::kNothingMissing) {
    std::cerr << "; then '" << miss.missing_text << "': " << to_string(miss.reason);
    if (!miss.expected_text.empty()) std::cerr << ", known is '" << miss.expected_text << "'";
  }
  std::cerr << "]\n";
}

/// What was computed is in the given tiers when the program ends, or it says so.
void store_all(incipit::PrefixCache& cache) {
  bool stored = cache.flush(kStoreAtMost);
  for (const incipit::TierStats& tier : cache.stats().tiers) stored &= tier.failures == 0;
  if (!stored) std::cerr << "[a tier failed: not all of the KV is stored]\n";
}

int run(Options options) {
  std::string static_text;
  if (!options.static_file.empty()) static_text = examples::read_file(options.static_file);
  std::ostream& terminal = examples::console(options.json);
  options.params.logprobs = options.logprobs ? kLikeliest : 0;
  options.params.on_text = [&terminal](std::string_view piece) {
    terminal << piece << std::flush;
    return true;
  };

  const auto cache = examples::make_cache(options.cache);
  incipit::Engine engine(engine_options(options), cache);
  Json results = Json::array();
  for (const std::string& prompt : options.prompts) {
    if (options.explain_miss) {
      explain_miss(engine, options,
                   options.chat ? engine.render(chat(static_text, prompt)) : static_text + prompt);
    }
    const incipit::GenerateResult result = answer(engine, options, static_text, prompt);
    terminal << "\n" << std::flush;
    std::cerr << "[" << result.prompt_ids.size() << " prompt tokens, " << result.reused_tokens
              << " reused (" << result.loaded_tokens << " loaded); first token after "
              << examples::milliseconds(result.time_to_first_token) << " ms, all "
              << result.token_ids.size() << " after " << examples::milliseconds(result.total_time)
              << " ms; " << to_string(result.finish) << "]\n";
    results.push_back(to_json(result));
  }
  if (!options.json.empty()) examples::write_json(options.json, {{"results", results}}, -1);
  store_all(*cache);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Answers prompts over one static text, whose KV is computed once.", "generate");
  Options options;
  declare(app, options);
  return examples::run_main(app, argc, argv, [&] { return run(options); });
}
