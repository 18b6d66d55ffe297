// SPDX-License-Identifier: Apache-2.0
#include <incipit/engine.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "cache_costs.h"
#include "examples/option_names.h"
#include "examples/support.h"
#include "report.h"
#include "standard.h"
#include "workloads.h"

// Measures what a user of the library waits for, and how near to the machine's limits that is.

namespace {

using bench::Json;
using bench::Metric;
using bench::Sizes;
using bench::Yardstick;
using examples::kActivations;
using examples::kCpuPaths;
using examples::kGpuMath;
using examples::kKvTypes;

constexpr const char* kFractions =
    "Fractions of the limit (a GGUF file's, and not with --no-limits):\n"
    "  text    (steps * weight bytes + KV bytes that the steps read) / seconds / memory "
    "bandwidth;\n"
    "          KV of a prefix that samples share counts once a step\n"
    "  prompt  (2 * parameters used * tokens + 4 * layers * heads * head_dim * pairs of a token "
    "and\n"
    "          one that it sees) / seconds / peak of BF16 dot products or of f32, whichever is "
    "higher;\n"
    "          the output matrix is used once a prompt\n"
    "The limits are measured first, with as many threads as the engine has.";

struct Options {
  std::string model, json, document, folder;
  std::string kv_type = "auto", cpu_path = "auto", activations = "mixed", gpu_math = "exact";
  unsigned threads = 0;
  bool no_limits = false;
  Sizes sizes = {};
};

/// One of the commands that measure a workload of given sizes.
struct Command {
  const char* name;
  const char* description;
  const char *prompt, *fresh, *samples;  // what the three sizes mean here
  Sizes defaults;
  std::size_t least_new_tokens;
  bool medians_on_top;  // of the document, too
  std::vector<Metric> (*measure)(incipit::Engine&, const Yardstick&, const Sizes&);
};

const std::vector<Command> kCommands = {
    {"prefill", "Prompts, up to the first token of their texts", "Tokens of each prompt",
     "Tokens generated behind each prompt; only `total_ms` includes all of them",
     "Different prompts at once", Sizes{.prompt_tokens = 512, .new_tokens = 1, .samples = 1}, 1,
     false, bench::measure_prefill},
    {"decode", "Texts, from their second token on, behind prompts that share nothing",
     "Tokens of each prompt", "Tokens of each text", "Texts at once, each behind its own prompt",
     Sizes{.prompt_tokens = 16, .new_tokens = 128, .samples = 1}, 2, false, bench::measure_decode},
    {"shared", "Samples, from their second token on, behind one and the same prompt",
     "Tokens of the prompt", "Tokens of each sample", "Samples at once",
     Sizes{.prompt_tokens = 4096, .new_tokens = 64, .samples = 16}, 2, true, bench::measure_shared},
    {"turns", "Chats of several turns, each of which finds the ones before it in the cache",
     "Tokens of each of the user's messages, about", "Tokens of each answer", "Chats at once",
     Sizes{.prompt_tokens = 64, .new_tokens = 64, .samples = 1, .turns = 8}, 2, false,
     bench::measure_turns},
    {"users",
     "Users with one system prompt and a question each, at once over one cache; and the same "
     "requests one after another without a cache",
     "Tokens of each question", "Tokens of each answer", nullptr,
     Sizes{.prompt_tokens = 48, .new_tokens = 64, .samples = 1, .repeat = 1}, 2, true,
     bench::measure_users},
};

void declare_engine(CLI::App& app, Options& options) {
  app.add_option("--model", options.model, "GGUF file or Hugging Face directory")->required();
  app.add_option("--threads", options.threads, "0: the CPUs that this process may use")
      ->capture_default_str();
  app.add_option("--kv-type", options.kv_type, "Number format of the KV cache")
      ->check(CLI::IsMember(&kKvTypes))
      ->capture_default_str();
  app.add_option("--cpu-path", options.cpu_path, "Which kernels run")
      ->check(CLI::IsMember(&kCpuPaths))
      ->capture_default_str();
  app.add_option("--activations", options.activations, "What meets quantised weights")
      ->check(CLI::IsMember(&kActivations))
      ->capture_default_str();
  app.add_option("--gpu-math", options.gpu_math, "Which kernels may run on a GPU")
      ->check(CLI::IsMember(&kGpuMath))
      ->capture_default_str();
  app.add_flag("--no-limits", options.no_limits, "Do not measure the machine's limits");
  app.add_option("--json", options.json, "Write the results here; -: stdout, all else to stderr");
  app.footer(kFractions);
}

void declare_sizes(CLI::App& app, const Command& command, Sizes& sizes) {
  constexpr std::size_t kMany = 1'000'000;
  app.add_option("--prompt-tokens", sizes.prompt_tokens, command.prompt)
      ->check(CLI::Range(std::size_t{1}, kMany))
      ->capture_default_str();
  app.add_option("--new-tokens", sizes.new_tokens, command.fresh)
      ->check(CLI::Range(command.least_new_tokens, kMany))
      ->capture_default_str();
  if (command.samples != nullptr) {
    app.add_option("--samples", sizes.samples, command.samples)
        ->check(CLI::Range(std::size_t{1}, std::size_t{256}))
        ->capture_default_str();
  }
  app.add_option("--repeat", sizes.repeat, "Measurements; the median counts")
      ->check(CLI::Range(std::size_t{1}, kMany))
      ->capture_default_str();
}

/// Loads the model and, unless told not to, measures the machine.
struct Subject {
  explicit Subject(const Options& options) : engine(engine_options(options)) {
    yardstick.shape = bench::read_shape(options.model);
    yardstick.kv_bytes_per_token = static_cast<double>(engine.model().kv_bytes_per_token);
    if (!options.no_limits) {
      yardstick.limits =
          bench::measure_limits(engine.model().threads, kCpuPaths.at(options.cpu_path));
    }
  }

  static incipit::EngineOptions engine_options(const Options& options) {
    incipit::EngineOptions engine;
    engine.model = options.model;
    engine.threads = options.threads;
    engine.kv_type = kKvTypes.at(options.kv_type);
    engine.cpu_path = kCpuPaths.at(options.cpu_path);
    engine.activations = kActivations.at(options.activations);
    engine.gpu_math = kGpuMath.at(options.gpu_math);
    return engine;
  }

  incipit::Engine engine;
  Yardstick yardstick = {};
};

Json medians(const std::vector<Metric>& metrics) {
  Json medians = Json::object();
  for (const Metric& metric : metrics) medians[metric.name] = bench::median(metric.values);
  return medians;
}

/// Prints the metrics and writes them with `settings` and `more` members.
void finish(const Options& options, const std::string& command, const Subject& subject,
            const std::vector<Metric>& metrics, const Json& sizes, const Json& more) {
  std::ostream& out = examples::console(options.json);
  bench::print_head(out, subject.engine, subject.yardstick);
  for (const Metric& metric : metrics) bench::print(out, metric);
  if (options.json.empty()) return;
  Json document = {{"command", command}};
  document.update(bench::head_json(options.model, subject.engine, subject.yardstick));
  document["settings"] = {{"kv_type", options.kv_type},
                          {"cpu_path", options.cpu_path},
                          {"activations", options.activations},
                          {"gpu_math", options.gpu_math}};
  document["settings"].update(sizes);
  document.update(more);
  document["results"] = bench::results_json(metrics);
  examples::write_json(options.json, document, 2);
}

int run_command(const Command& command, const Options& options) {
  const Sizes& sizes = options.sizes;
  if (sizes.cached_tokens >= sizes.prompt_tokens) {
    throw std::runtime_error("--cached-tokens must be less than --prompt-tokens");
  }
  Subject subject(options);
  const auto metrics = command.measure(subject.engine, subject.yardstick, sizes);
  finish(options, command.name, subject, metrics,
         {{"prompt_tokens", sizes.prompt_tokens},
          {"cached_tokens", sizes.cached_tokens},
          {"new_tokens", sizes.new_tokens},
          {"samples", sizes.samples},
          {"turns", sizes.turns},
          {"users", sizes.users},
          {"system_tokens", sizes.system_tokens},
          {"repeat", sizes.repeat}},
         command.medians_on_top ? medians(metrics) : Json::object());
  return 0;
}

int run_standard(const Options& options) {
  const bench::StandardTexts texts = bench::standard_texts(examples::read_file(options.document));
  Subject subject(options);
  const auto metrics = bench::measure_standard(subject.engine, subject.yardstick, texts);
  finish(options, "standard", subject, metrics, Json::object(), medians(metrics));
  return 0;
}

int run_cache(const Options& options) {
  const std::filesystem::path folder = options.folder.empty()
                                           ? std::filesystem::temp_directory_path()
                                           : std::filesystem::path(options.folder);
  const bench::CacheCosts costs =
      bench::measure_cache_costs(Subject::engine_options(options), options.sizes.repeat,
                                 folder / ("incipit-bench-" + std::to_string(getpid())));
  std::ostream& out = examples::console(options.json);
  const double megabytes = costs.restored_bytes / 1e6;
  out << "look-up of 8,000 tokens     " << costs.lookup_8000_tokens_us << " us, insertion "
      << costs.insert_8000_tokens_us << " us, among " << costs.blocks_indexed << " blocks\n"
      << "restore of 4,096 tokens     " << costs.restore_4096_warm_ms << " ms ("
      << megabytes / costs.restore_4096_warm_ms << " GB/s) from the page cache, "
      << costs.restore_4096_disk_ms << " ms (" << megabytes / costs.restore_4096_disk_ms
      << " GB/s) from disk\n"
      << "prefill of 4,096 tokens     " << costs.prefill_4096_ms << " ms, of which look-up and "
      << "insertion take " << 100 * costs.bookkeeping_share << " %\n"
      << "the same behind a tier of 5 MB/s takes " << costs.throttled_ratio << " times as long\n"
      << "a tier that never answers adds " << costs.silent_first_ms << " ms to the first request, "
      << costs.silent_later_ms << " ms to the next\n";
  if (options.json.empty()) return 0;
  examples::write_json(options.json,
                       {{"command", "cache"},
                        {"lookup_8000_tokens_us", costs.lookup_8000_tokens_us},
                        {"insert_8000_tokens_us", costs.insert_8000_tokens_us},
                        {"blocks_indexed", costs.blocks_indexed},
                        {"restore_4096_warm_ms", costs.restore_4096_warm_ms},
                        {"restore_4096_disk_ms", costs.restore_4096_disk_ms},
                        {"restored_bytes", costs.restored_bytes},
                        {"prefill_4096_ms", costs.prefill_4096_ms},
                        {"bookkeeping_share", costs.bookkeeping_share},
                        {"throttled_ratio", costs.throttled_ratio},
                        {"silent_first_ms", costs.silent_first_ms},
                        {"silent_later_ms", costs.silent_later_ms}},
                       2);
  return 0;
}

int run_texts(const Options& options) {
  const std::string document = examples::read_file(options.document);
  examples::write_json(options.json, bench::to_json(bench::standard_texts(document)), 2);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures prompts, texts, samples over one prefix, chats, and users.",
               "incipit-bench");
  app.require_subcommand(1);
  std::map<std::string, Options> options;  // by command
  std::function<int()> chosen;
  for (const Command& command : kCommands) {
    Options& own = options[command.name];
    own.sizes = command.defaults;
    CLI::App& sub = *app.add_subcommand(command.name, command.description);
    declare_engine(sub, own);
    declare_sizes(sub, command, own.sizes);
    sub.callback([&command, &own, &chosen] { chosen = [&] { return run_command(command, own); }; });
  }
  Options& prefill = options["prefill"];
  app.get_subcommand("prefill")
      ->add_option("--cached-tokens", prefill.sizes.cached_tokens,
                   "Of the prompt, at its front: in the cache already")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  Options& turns = options["turns"];
  app.get_subcommand("turns")
      ->add_option("--turns", turns.sizes.turns, "Questions and answers of a chat")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  Options& users = options["users"];
  app.get_subcommand("users")
      ->add_option("--users", users.sizes.users, "Users at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.get_subcommand("users")
      ->add_option("--system-tokens", users.sizes.system_tokens, "Tokens that they share")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();

  Options& standard = options["standard"];
  standard.activations = "int8";  // as the other programs compute, and nearer to floats than they
  CLI::App& sub = *app.add_subcommand(
      "standard", "A long document and questions about it, as other programs are measured with");
  declare_engine(sub, standard);
  sub.add_option("--document", standard.document, "Text of about 4,000 tokens")->required();
  sub.callback([&] { chosen = [&] { return run_standard(standard); }; });

  Options& cache = options["cache"];
  CLI::App& costs = *app.add_subcommand(
      "cache", "What the prefix cache takes: look-up, insertion, restoring from a folder");
  declare_engine(costs, cache);
  costs.add_option("--folder", cache.folder,
                   "Where a folder is made for it, and removed; default: that for temporary files");
  costs.add_option("--repeat", cache.sizes.repeat, "Measurements; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  costs.callback([&] { chosen = [&] { return run_cache(cache); }; });

  Options& texts = options["texts"];
  CLI::App& write = *app.add_subcommand("texts", "Writes the texts of `standard` as JSON");
  write.add_option("--document", texts.document, "As for `standard`")->required();
  write.add_option("--json", texts.json, "Write the texts here; -: stdout")->required();
  write.callback([&] { chosen = [&] { return run_texts(texts); }; });

  return examples::run_main(app, argc, argv, [&] { return chosen(); });
}
