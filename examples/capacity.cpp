// SPDX-License-Identifier: Apache-2.0
#include <incipit/capacity.h>
#include <incipit/engine.h>
#include <incipit/store.h>

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "option_names.h"
#include "support.h"

// What the KV of a long prefix takes, where it fits, and whether loading it beats computing it on
// this machine: see --help.

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct Options {
  std::string model, json, kv_type = "auto", cache_dir;
  unsigned threads = 0;
  std::size_t tokens = 4096, measured_tokens = 512;
  std::uint64_t pool_bytes = std::uint64_t{1} << 30, tier_bytes = std::uint64_t{8} << 30;
};

void declare(CLI::App& app, Options& options) {
  app.add_option("--model", options.model, "GGUF file or Hugging Face directory")->required();
  app.add_option("--tokens", options.tokens, "Length of the prefix")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--pool-bytes", options.pool_bytes, "Memory for KV, as EngineOptions has it")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--tier-bytes", options.tier_bytes, "Room for KV behind the pool")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--cache-dir", options.cache_dir,
                 "A folder there; how fast it reads is measured, with 32 MiB, from the page cache");
  app.add_option("--measured-tokens", options.measured_tokens,
                 "Length of the prompt whose computing is measured")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20))
      ->capture_default_str();
  app.add_option("--kv-type", options.kv_type, "Number format of the KV cache")
      ->check(CLI::IsMember(&examples::kKvTypes))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "0: the CPUs that this process may use")
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the plan here; -: stdout, all else to stderr");
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Tokens per second of a prompt that nothing is known of. The second of two runs counts: the first
/// one reads the model's file.
double measure_prefill(incipit::Engine& engine, std::size_t tokens) {
  std::vector<incipit::TokenId> prompt(tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    prompt[i] = static_cast<incipit::TokenId>(i * 7919 % engine.model().vocabulary);
  }
  incipit::GenerateParams params;
  params.max_tokens = 1;
  engine.generate(prompt, params);
  const auto time = engine.generate(prompt, params).time_to_first_token;
  return static_cast<double>(tokens) * 1e6 / static_cast<double>(std::max<long>(time.count(), 1));
}

incipit::StoreKey key_of(std::size_t number) {
  incipit::StoreKey key;
  key.bytes.fill(std::byte{0xc5});  // what no digest is, and so nobody else's
  key.bytes[0] = static_cast<std::byte>(number);
  return key;
}

/// Stores values of the size that the cache stores, and a short one, and reads them back.
void measure_store(incipit::Store& store, incipit::TierCapacity& tier) {
  constexpr std::size_t kValues = 8, kBytes = 4 << 20;
  const auto deadline = Clock::now() + std::chrono::minutes(1);
  incipit::StoreBuffer value;
  double seconds = 0.0;
  for (std::size_t i = 0; i <= kValues; ++i) {
    const std::vector<std::byte> bytes(i == 0 ? 1 : kBytes, static_cast<std::byte>(i));
    const auto stored = store.put(key_of(i), bytes, std::chrono::minutes(2), deadline);
    const auto begin = Clock::now();
    const auto read = store.get(key_of(i), deadline, value);
    (i == 0 ? tier.latency_seconds : seconds) += seconds_since(begin);
    store.erase(key_of(i), deadline);
    const auto status = stored == incipit::StoreStatus::kOk ? read : stored;
    if (status != incipit::StoreStatus::kOk) {
      throw std::runtime_error("cannot measure the folder: " + std::string(to_string(status)));
    }
  }
  tier.bytes_per_second = static_cast<double>(kValues * kBytes) / seconds;
}

incipit::CapacityQuestion measure(const Options& options, std::ostream& out) {
  incipit::EngineOptions engine_options;
  engine_options.model = options.model;
  engine_options.threads = options.threads;
  engine_options.kv_type = examples::kKvTypes.at(options.kv_type);
  engine_options.max_context = options.measured_tokens + 1;  // so the pool is small, too
  incipit::Engine engine(engine_options);
  const incipit::ModelInfo& model = engine.model();
  out << model.name << " (" << model.architecture << "), " << model.numerics << ", "
      << model.kv_bytes_per_token << " bytes of KV per token\n";

  incipit::CapacityQuestion question;
  question.tokens = options.tokens;
  question.kv_bytes_per_token = model.kv_bytes_per_token;
  question.pool_bytes = options.pool_bytes;
  question.prefill_tokens_per_second =
      measure_prefill(engine, std::min(options.measured_tokens, model.context - 1));
  incipit::TierCapacity& tier = question.tiers.emplace_back();
  tier.name = options.cache_dir.empty() ? "tier" : "directory";
  tier.bytes = options.tier_bytes;
  if (!options.cache_dir.empty()) {
    const auto store = incipit::make_directory_store({.directory = options.cache_dir});
    measure_store(*store, tier);
  }
  return question;
}

void print(std::ostream& out, const incipit::CapacityQuestion& question,
           const incipit::CapacityPlan& plan) {
  const auto megabytes = [](auto bytes) { return static_cast<double>(bytes) * 1e-6; };
  const incipit::TierCapacity& tier = question.tiers[0];
  const incipit::TierPlan& answer = plan.tiers[0];
  out << std::fixed << std::setprecision(1) << "prefix     " << question.tokens
      << " tokens: " << plan.blocks << " blocks, " << megabytes(plan.bytes) << " MB\n"
      << "pool       " << megabytes(question.pool_bytes) << " MB hold " << plan.prefixes_in_pool
      << " of them\n"
      << std::left << std::setw(11) << tier.name << megabytes(tier.bytes) << " MB hold "
      << answer.prefixes << "\n"
      << "computing  " << 1e3 * plan.compute_seconds.value_or(0.0) << " ms at "
      << question.prefill_tokens_per_second << " tokens/s\n";
  if (!answer.load_seconds) return;
  out << "loading    " << 1e3 * *answer.load_seconds << " ms at "
      << megabytes(tier.bytes_per_second) << " MB/s and " << std::setprecision(3)
      << 1e3 * tier.latency_seconds << " ms before the first byte\n";
  if (answer.break_even_tokens) {
    out << "           sooner than computing from " << *answer.break_even_tokens << " tokens on\n";
  } else {
    out << "           never sooner than computing\n";
  }
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json to_json(const incipit::CapacityQuestion& question, const incipit::CapacityPlan& plan) {
  Json tiers = Json::array();
  for (std::size_t i = 0; i < plan.tiers.size(); ++i) {
    const incipit::TierCapacity& tier = question.tiers[i];
    const incipit::TierPlan& answer = plan.tiers[i];
    tiers.push_back({{"name", tier.name},
                     {"bytes", tier.bytes},
                     {"bytes_per_second", tier.bytes_per_second},
                     {"latency_seconds", tier.latency_seconds},
                     {"prefixes", answer.prefixes},
                     {"load_seconds", or_null(answer.load_seconds)},
                     {"break_even_tokens", or_null(answer.break_even_tokens)}});
  }
  return {{"tokens", question.tokens},
          {"kv_bytes_per_token", question.kv_bytes_per_token},
          {"blocks", plan.blocks},
          {"bytes", plan.bytes},
          {"pool_bytes", question.pool_bytes},
          {"prefixes_in_pool", plan.prefixes_in_pool},
          {"prefill_tokens_per_second", question.prefill_tokens_per_second},
          {"compute_seconds", or_null(plan.compute_seconds)},
          {"tiers", tiers}};
}

int run(const Options& options) {
  std::ostream& out = examples::console(options.json);
  const incipit::CapacityQuestion question = measure(options, out);
  const incipit::CapacityPlan plan = incipit::plan_capacity(question);
  print(out, question, plan);
  if (!options.json.empty()) examples::write_json(options.json, to_json(question, plan), 2);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Plans the capacity of a prefix cache for a model and this machine.", "capacity");
  Options options;
  declare(app, options);
  return examples::run_main(app, argc, argv, [&] { return run(options); });
}
