// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "chart.h"
#include "examples/support.h"
#include "replay.h"
#include "trace.h"

// Replays requests through the index of the prefix cache, to compare eviction policies: see --help.

namespace {

using bench::NamedPolicy;
using bench::ReplayResult;
using bench::Request;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostBlocks = std::size_t{1} << 26;

constexpr const char* kFormats =
    "A trace holds a JSON object per line, either of\n"
    "  timestamp, input_length, output_length, hash_ids    Mooncake's: ids of blocks of 512 "
    "tokens\n"
    "  timestamp, input, output                            texts, split into words and signs\n"
    "Several files are replayed as one, in the order of their timestamps. Requests run one after\n"
    "the other; what they generate is kept where its text is known.\n"
    "An operation is a block looked up (up to the first that is not found), inserted or evicted.";

/// The library's own.
std::string default_policy() {
  const incipit::Eviction own = incipit::PrefixCacheOptions{}.eviction;
  const auto* const found =
      std::find_if(std::begin(bench::kPolicies), std::end(bench::kPolicies),
                   [own](const NamedPolicy& named) { return named.policy == own; });
  return found->name;
}

struct Options {
  std::vector<std::string> traces;
  std::string policy = default_policy(), json, svg;
  std::vector<std::size_t> capacities;
  std::size_t blocks = 0;
  std::size_t kv_bytes_per_token = 23040;  // SmolLM2-135M in 16 bits
  bool all_policies = false;
};

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const NamedPolicy& policy : bench::kPolicies) names.emplace_back(policy.name);
  return names;
}

void declare(CLI::App& app, Options& options) {
  const CLI::Range blocks(std::size_t{1}, kMostBlocks);
  app.add_option("--trace", options.traces, "What to replay; give it several times for several")
      ->required()
      ->allow_extra_args(false);
  app.add_option("--policy", options.policy, "Which blocks make room")
      ->check(CLI::IsMember(policy_names()))
      ->capture_default_str();
  app.add_flag("--all-policies", options.all_policies, "Each policy in turn");
  CLI::Option* const single =
      app.add_option("--blocks", options.blocks, "Capacity, in blocks of 16 tokens")->check(blocks);
  CLI::Option* const several =
      app.add_option("--capacities", options.capacities, "Several, separated by commas")
          ->delimiter(',')
          ->check(blocks)
          ->excludes(single);
  app.add_option("--kv-bytes-per-token", options.kv_bytes_per_token, "For the bytes moved")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the results here; -: stdout, all else to stderr");
  app.add_option("--svg", options.svg, "Draw the hit ratio by capacity and policy into this file");
  app.footer(kFormats);
  app.callback([single, several] {
    if (single->empty() && several->empty()) throw CLI::RequiredError("--blocks or --capacities");
  });
}

double bytes_moved(const ReplayResult& result, const Options& options) {
  return static_cast<double>(result.blocks_moved()) * 16.0 *
         static_cast<double>(options.kv_bytes_per_token);
}

Json to_json(const ReplayResult& result, const Options& options) {
  return {{"policy", result.policy},
          {"blocks", result.blocks},
          {"requests", result.requests},
          {"too_large", result.too_large},
          {"operations", result.operations()},
          {"token_hit_ratio", result.hit_ratio()},
          {"work_hit_ratio", result.work_ratio()},
          {"evicted_blocks", result.evicted},
          {"bytes_moved", bytes_moved(result, options)},
          {"ns_per_operation", result.ns_per_operation()},
          {"peak_bytes", result.peak_bytes}};
}

void print_head(std::ostream& out, const std::vector<Request>& requests) {
  out << requests.size() << " requests\n"
      << "policy      blocks  of 512  too large  tokens hit  work hit     operations  ns each"
         "  evicted blocks  GB moved  index MB\n";
}

void print(std::ostream& out, const ReplayResult& result, const Options& options) {
  out << std::left << std::setw(7) << result.policy << std::right << std::setw(11) << result.blocks
      << std::setw(8) << result.blocks * 16 / bench::kHashedTokens << std::setw(11)
      << result.too_large << std::fixed << std::setprecision(2) << std::setw(10)
      << 100 * result.hit_ratio() << " %" << std::setw(8) << 100 * result.work_ratio() << " %"
      << std::setw(15) << result.operations() << std::setprecision(0) << std::setw(9)
      << result.ns_per_operation() << std::setw(16) << result.evicted << std::setprecision(1)
      << std::setw(10) << bytes_moved(result, options) * 1e-9 << std::setw(10)
      << static_cast<double>(result.peak_bytes) * 1e-6 << std::endl;
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) throw std::runtime_error("cannot write " + path);
}

int run(Options options) {
  if (options.capacities.empty()) options.capacities.push_back(options.blocks);
  const std::vector<Request> requests = bench::read_traces(options.traces);
  std::ostream& out = examples::console(options.json);
  print_head(out, requests);
  std::vector<ReplayResult> results;
  for (const std::size_t blocks : options.capacities) {
    for (const NamedPolicy& policy : bench::kPolicies) {
      if (!options.all_policies && options.policy != policy.name) continue;
      results.push_back(bench::replay(requests, policy, blocks));
      print(out, results.back(), options);
    }
  }
  if (!options.svg.empty()) write_text(options.svg, bench::chart(results));
  if (options.json.empty()) return 0;
  Json document = Json::array();
  for (const ReplayResult& result : results) document.push_back(to_json(result, options));
  examples::write_json(options.json, document.size() == 1 ? document[0] : document, 2);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Replays request traces through the index of the prefix cache.", "cache_replay");
  Options options;
  declare(app, options);
  return examples::run_main(app, argc, argv, [&] { return run(options); });
}
