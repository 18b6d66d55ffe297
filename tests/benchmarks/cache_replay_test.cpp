// SPDX-License-Identifier: Apache-2.0
// The program `cache_replay` on small traces whose answers are known.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "examples/run_program.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace incipit::test;
using nlohmann::json;

namespace {

/// A request in Mooncake's format that fills its last block.
std::string hashed(double timestamp, const std::vector<std::uint64_t>& ids) {
  return json{{"timestamp", timestamp},
              {"input_length", 512 * ids.size()},
              {"output_length", 10},
              {"hash_ids", ids}}
             .dump() +
         "\n";
}

std::string text(double timestamp, const std::string& input, const std::string& output) {
  return json{{"timestamp", timestamp}, {"input", input}, {"output", output}}.dump() + "\n";
}

class Replay {
 public:
  /// Adds a trace.
  Replay& trace(const std::string& lines) {
    arguments_.push_back("--trace");
    arguments_.push_back(file("trace" + std::to_string(arguments_.size())));
    write_file(arguments_.back(), lines);
    return *this;
  }
  std::string file(const std::string& name) const { return (directory_.path() / name).string(); }

  Outcome run(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = arguments_;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_example("cache_replay", arguments);
  }
  json result(std::vector<std::string> more) const {
    more.insert(more.end(), {"--json", "-"});
    const Outcome outcome = run(more);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.err.find("requests") != std::string::npos);
    return json::parse(outcome.out);
  }

 private:
  TemporaryDirectory directory_;
  std::vector<std::string> arguments_ = {};
};

}  // namespace

TEST_CASE("cache_replay counts what a prompt finds, and its operations") {
  Replay replay;
  replay.trace(hashed(0, {1, 2}) + "\n" + hashed(1, {1, 2}));
  const json result = replay.result({"--blocks", "128", "--policy", "lru"});
  CHECK(result.at("policy") == "lru");
  CHECK(result.at("blocks") == 128);
  CHECK(result.at("requests") == 2);
  CHECK(result.at("too_large") == 0);
  // One token is left to compute.
  CHECK(result.at("token_hit_ratio") == 1023.0 / 2048.0);
  CHECK(result.at("work_hit_ratio").get<double>() < 0.5);
  // The first block is missed, 64 are inserted, 64 are found.
  CHECK(result.at("operations") == 1 + 64 + 64);
  CHECK(result.at("evicted_blocks") == 0);
  // 64 that are computed, and one whose front is copied.
  CHECK(result.at("bytes_moved") == 65.0 * 16 * 23040);
  CHECK(result.at("ns_per_operation").get<double>() > 0.0);
  CHECK(result.at("peak_bytes").get<std::size_t>() > 128 * 64);
}

TEST_CASE("cache_replay evicts where the capacity is too small, and skips what never fits") {
  Replay replay;
  replay.trace(hashed(0, {1}) + hashed(1, {2}) + hashed(2, {1}) + hashed(3, {1, 2, 3}));
  const json result = replay.result({"--blocks", "32", "--kv-bytes-per-token", "10"});
  CHECK(result.at("token_hit_ratio") == 0.0);
  CHECK(result.at("too_large") == 1);
  CHECK(result.at("evicted_blocks") == 64);
  CHECK(result.at("operations") == 3 + 96 + 64);
  CHECK(result.at("bytes_moved") == (96.0 + 64.0) * 16 * 10);
}

TEST_CASE("cache_replay cuts the last block of a prompt short") {
  Replay replay;
  const json request = {{"timestamp", 0}, {"input_length", 530}, {"hash_ids", {7, 8}}};
  replay.trace(request.dump() + "\n" + request.dump());
  // Whole blocks of 16 are kept: 33 of them, and 2 tokens are computed again.
  CHECK(replay.result({"--blocks", "64"}).at("token_hit_ratio") == 528.0 / 1060.0);
}

TEST_CASE("cache_replay finds prompts of texts, and what was generated behind them") {
  std::string story, end;
  for (int i = 0; i < 60; ++i) {
    story += "Chapter " + std::to_string(i) + ": nothing happened.\n";
    end += " He sighed  again, na\u00efvely.";
  }
  Replay replay;
  replay.trace(text(0, story, end) + text(1, story + end, ""));
  const json both = replay.result({"--blocks", "1000"});
  Replay prompt_only;
  prompt_only.trace(text(0, story, "") + text(1, story + end, ""));
  const json first = prompt_only.result({"--blocks", "1000"});
  CHECK(first.at("token_hit_ratio").get<double>() > 0.2);
  CHECK(both.at("token_hit_ratio").get<double>() > first.at("token_hit_ratio").get<double>() + 0.2);
}

TEST_CASE("cache_replay runs the requests of several traces in the order of their timestamps") {
  const std::string shorter = hashed(1, {1}), longer = hashed(2, {1, 2});
  Replay replay;
  replay.trace(longer).trace(shorter);
  CHECK(replay.result({"--blocks", "128"}).at("token_hit_ratio") == 512.0 / 1536.0);
}

TEST_CASE("cache_replay compares policies and capacities") {
  // Two prompts that come again and again, and others that come once.
  std::string lines;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto time = static_cast<double>(i);
    lines += hashed(time, {1 + i % 2}) + hashed(time, {100 + 2 * i}) + hashed(time, {101 + 2 * i});
  }
  Replay replay;
  replay.trace(lines);
  const std::string svg = replay.file("chart.svg");
  const json all = replay.result({"--all-policies", "--capacities", "160,16000", "--svg", svg});
  REQUIRE(all.size() == 8);
  const std::vector<std::string> names = {"lru", "s3fifo", "arc", "gdsf"};
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(all[i].at("policy") == names[i % 4]);
    CHECK(all[i].at("blocks") == (i < 4 ? 160 : 16000));
    if (i >= 4) CHECK(all[i].at("token_hit_ratio") == all[4].at("token_hit_ratio"));
  }
  // The scan pushes everything out of LRU before it comes again.
  CHECK(all[0].at("token_hit_ratio") == 0.0);
  CHECK(all[1].at("token_hit_ratio").get<double>() > 0.2);
  CHECK(all[4].at("peak_bytes").get<double>() > 20 * all[0].at("peak_bytes").get<double>());

  const std::string chart = read_file(svg);
  CHECK(chart.find("<svg") == 0);
  CHECK(chart.find("</svg>\n") == chart.size() - 7);
  std::size_t lines_drawn = 0;
  for (std::size_t at = 0; (at = chart.find("<polyline", at)) != std::string::npos; ++at) {
    ++lines_drawn;
  }
  CHECK(lines_drawn == 4);
  CHECK(chart.find(">16000<") != std::string::npos);
  CHECK(chart.find(">s3fifo<") != std::string::npos);
}

TEST_CASE("cache_replay writes a table for people, and JSON into a file") {
  Replay replay;
  replay.trace(hashed(0, {1}));
  const std::string file = replay.file("out.json");
  const Outcome outcome = replay.run({"--blocks", "40", "--policy", "arc", "--json", file});
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.find("1 requests\n") == 0);
  CHECK(outcome.out.find("\narc ") != std::string::npos);
  CHECK(json::parse(read_file(file)).at("policy") == "arc");
}

TEST_CASE("cache_replay takes an empty trace") {
  Replay replay;
  replay.trace("");
  const json result = replay.result({"--blocks", "1"});
  CHECK(result.at("requests") == 0);
  CHECK(result.at("token_hit_ratio") == 0.0);
  CHECK(result.at("ns_per_operation") == 0.0);
}

TEST_CASE("cache_replay says in one line what is wrong") {
  Replay good;
  good.trace(hashed(0, {1}));
  const std::vector<std::pair<std::vector<std::string>, int>> cases = {
      {{}, 2},
      {{"--blocks", "0"}, 2},
      {{"--blocks", "9999999999999"}, 2},
      {{"--blocks", "1", "--capacities", "1,2"}, 2},
      {{"--capacities", "1,x"}, 2},
      {{"--blocks", "1", "--policy", "fifo"}, 2},
      {{"--blocks", "1", "--trace", good.file("missing")}, 1},
      {{"--blocks", "1", "--svg", good.file("no/such/folder.svg")}, 1}};
  for (const auto& [arguments, exit_code] : cases) {
    CAPTURE(arguments);
    const Outcome outcome = good.run(arguments);
    CHECK(outcome.exit_code == exit_code);
    CHECK(outcome.err.find("cache_replay: ") == 0);
    CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
  }
  for (const char* line : {"{", "[]", "{}", R"({"timestamp": 0, "input": 5, "output": ""})",
                           R"({"timestamp": 0, "input_length": 512, "hash_ids": [1, 2]})",
                           R"({"timestamp": 0, "input_length": 1e99, "hash_ids": []})",
                           R"({"timestamp": 0, "input_length": -1, "hash_ids": [1]})"}) {
    CAPTURE(line);
    Replay bad;
    bad.trace(hashed(0, {1}) + line);
    const Outcome outcome = bad.run({"--blocks", "1"});
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find(":2: ") != std::string::npos);
  }
}

TEST_CASE("cache_replay --help shows options and formats") {
  const Outcome outcome = run_example("cache_replay", {"--help"});
  CHECK(outcome.exit_code == 0);
  for (const char* word : {"--trace", "--policy", "--capacities", "hash_ids", "operation"}) {
    CHECK(outcome.out.find(word) != std::string::npos);
  }
}
