// SPDX-License-Identifier: Apache-2.0
// The program `capacity` on a tiny random model.
#include <string>
#include <utility>
#include <vector>

#include "examples/run_program.h"
#include "support/catch.h"

using namespace incipit::test;
using nlohmann::json;

namespace {

json plan(const TinyModelOnDisk& model, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--model", model.path(), "--threads", "2", "--measured-tokens",
                                     "40", "--json", "-"});
  const Outcome outcome = run_example("capacity", arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.err.find("bytes of KV per token") != std::string::npos);
  return json::parse(outcome.out);
}

}  // namespace

TEST_CASE("capacity says what a prefix takes and where it fits") {
  const TinyModelOnDisk model;
  const json document =
      plan(model, {"--tokens", "1001", "--pool-bytes", "10MB", "--tier-bytes", "1000000000"});
  const auto per_token = document.at("kv_bytes_per_token").get<std::size_t>();
  const std::size_t bytes = 63 * 16 * per_token;
  CHECK(document.at("tokens") == 1001);
  CHECK(document.at("blocks") == 63);
  CHECK(document.at("bytes") == bytes);
  CHECK(document.at("pool_bytes") == 10 << 20);
  CHECK(document.at("prefixes_in_pool") == (10 << 20) / (16 * per_token) / 63);
  const double speed = document.at("prefill_tokens_per_second");
  CHECK(speed > 0.0);
  CHECK(document.at("compute_seconds").get<double>() == Approx(1001 / speed));
  const json& tier = document.at("tiers").at(0);
  CHECK(tier.at("name") == "tier");
  CHECK(tier.at("prefixes") == 1'000'000'000 / (16 * per_token) / 63);
  CHECK(tier.at("load_seconds").is_null());
  CHECK(tier.at("break_even_tokens").is_null());
}

TEST_CASE("capacity measures a folder, and takes away what it wrote there") {
  const TinyModelOnDisk model;
  const std::filesystem::path folder = model.directory() / "cache";
  const json document = plan(model, {"--tokens", "100", "--cache-dir", folder.string()});
  const json& tier = document.at("tiers").at(0);
  CHECK(tier.at("name") == "directory");
  CHECK(tier.at("bytes_per_second").get<double>() > 1e6);
  CHECK(tier.at("latency_seconds").get<double>() > 0.0);
  CHECK(tier.at("load_seconds").get<double>() > tier.at("latency_seconds").get<double>());
  // The store's own files lie in the folder itself, values below it.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    CAPTURE(entry.path());
    CHECK((!entry.is_regular_file() || entry.path().parent_path() == folder));
  }
}

TEST_CASE("capacity says in one line what is wrong") {
  const TinyModelOnDisk model;
  const std::vector<std::pair<std::vector<std::string>, int>> cases = {
      {{}, 2},
      {{"--model", model.path(), "--tokens", "0"}, 2},
      {{"--model", model.path(), "--pool-bytes", "much"}, 2},
      {{"--model", model.path() + ".missing"}, 1},
      {{"--model", model.path(), "--tokens", "18446744073709551615"}, 1},
      {{"--model", model.path(), "--cache-dir", model.path()}, 1}};
  for (const auto& [arguments, exit_code] : cases) {
    CAPTURE(arguments);
    const Outcome outcome = run_example("capacity", arguments);
    CHECK(outcome.exit_code == exit_code);
    CHECK(outcome.err.find("capacity: ") != std::string::npos);
  }
}
