// SPDX-License-Identifier: Apache-2.0
// The program `compressor_benchmark`, far smaller than it measures.
#include "examples/run_program.h"
#include "support/catch.h"

using namespace incipit::test;
using nlohmann::json;

TEST_CASE("compressor_benchmark tells what each language takes") {
  const Outcome outcome =
      run_example("compressor_benchmark", {"--tokens", "2000", "--budget", "1000", "--turns", "40",
                                           "--turn-budget", "600", "--repeat", "1", "--json", "-"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const json results = json::parse(outcome.out);
  REQUIRE(results.size() == 2);
  for (const json& result : results) {
    CHECK(result.at("tokens") == 2000);
    CHECK(result.at("compress_ms") > 0.0);
    CHECK(result.at("history_turns") == 40);
    CHECK(result.at("turn_ms_median") <= result.at("turn_ms_p99"));
    CHECK(result.at("turn_ms_p99") <= result.at("turn_ms_max"));
    CHECK(result.at("turn_ms_max") > 0.0);
  }
  CHECK(results[0].at("language") == "en");
  CHECK(results[1].at("language") == "zh");
}

TEST_CASE("compressor_benchmark says what is wrong with its options") {
  CHECK(run_example("compressor_benchmark", {"--turns", "0"}).exit_code == 2);
  CHECK(run_example("compressor_benchmark", {"--turn-budget", "10", "--turns", "10"}).exit_code ==
        1);
}
