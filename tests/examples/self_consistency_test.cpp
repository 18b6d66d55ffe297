// SPDX-License-Identifier: Apache-2.0
// The program `self_consistency` on a tiny random model.
#include <set>

#include "examples/run_program.h"
#include "support/catch.h"

using namespace incipit::test;
using nlohmann::json;

namespace {

struct Setup {
  TinyModelOnDisk model;
  std::string document = (model.directory() / "document.txt").string();

  Setup() { write_file(document, "The lamp is lit at dusk and put out at dawn by the keeper. "); }

  Outcome outcome(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {
        "--model",      model.path(), "--document", document, "--question", "When is the lamp lit?",
        "--max-tokens", "12",         "--json",     "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_example("self_consistency", arguments);
  }
  json result(const std::vector<std::string>& more) const {
    const Outcome run = outcome(more);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return json::parse(run.out);
  }
};

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& item : object.items()) keys.insert(item.key());
  return keys;
}

}  // namespace

TEST_CASE("self_consistency reports answer, tally, samples and usage") {
  const Setup setup;
  const json result = setup.result({"--samples", "5", "--seed", "3", "--temperature", "1.0"});
  CHECK(keys_of(result) ==
        std::set<std::string>{"answer", "tally", "samples", "stopped_after", "usage"});
  CHECK(result["stopped_after"] == 5);
  REQUIRE(result["samples"].size() == 5);
  std::size_t voted = 0, counted = 0;
  for (const json& sample : result["samples"]) {
    CHECK(keys_of(sample) ==
          std::set<std::string>{"text", "output_ids", "key", "mean_logprob", "status"});
    CHECK(sample["mean_logprob"].get<double>() < 0.0);
    CHECK(sample["key"].is_null() == (sample["status"] == "no_answer"));
    voted += sample["status"] == "voted";
  }
  for (const json& vote : result["tally"]) {
    CHECK(keys_of(vote) == std::set<std::string>{"key", "count"});
    counted += vote["count"].get<std::size_t>();
  }
  CHECK(voted == counted);
  CHECK(result["answer"].is_null() == (voted == 0));
  CHECK(keys_of(result["usage"]) == std::set<std::string>{"prefilled_tokens", "shared_tokens",
                                                          "decoded_tokens", "cancelled_tokens",
                                                          "seconds"});
  CHECK(result["usage"]["cancelled_tokens"] == 0);
}

TEST_CASE("sample i is the same for any number of samples, rule and threads; generate gives 0") {
  const Setup setup;
  const auto ids = [&](const std::vector<std::string>& more) {
    std::vector<json> all;
    const json result = setup.result(more);
    for (const json& sample : result["samples"]) {
      if (sample["status"] != "cancelled") all.push_back(sample["output_ids"]);
    }
    return all;
  };
  const auto five = ids({"--samples", "5", "--threads", "1"});
  REQUIRE(five.size() == 5);
  CHECK(std::set<json>(five.begin(), five.end()).size() == 5);
  for (const std::string rule : {"none", "lossless", "certified", "horizon"}) {
    const auto some = ids({"--samples", "8", "--threads", "2", "--stop", rule});
    for (std::size_t i = 0; i < std::min(some.size(), five.size()); ++i) CHECK(some[i] == five[i]);
  }
  const Outcome generated =
      run_example("generate", {"--model", setup.model.path(), "--static-file", setup.document,
                               "--prompt", "When is the lamp lit?", "--max-tokens", "12",
                               "--temperature", "1.0", "--seed", "0", "--json", "-"});
  REQUIRE(generated.exit_code == 0);
  CHECK(json::parse(generated.out)["results"][0]["output_ids"] == five[0]);
}

TEST_CASE("self_consistency takes every extractor, and says in one line what is wrong") {
  const Setup setup;
  for (const std::string extract :
       {"number", "last_line", "letter", "json:answer", "regex:[a-z]"}) {
    CAPTURE(extract);
    CHECK(setup.result({"--samples", "2", "--extract", extract})["samples"].size() == 2);
  }
  for (const auto& [more, exit_code] :
       std::vector<std::pair<std::vector<std::string>, int>>{{{"--stop", "never"}, 2},
                                                             {{"--samples", "0"}, 2},
                                                             {{"--extract", "nothing"}, 1},
                                                             {{"--extract", "regex:("}, 1}}) {
    CAPTURE(more);
    const Outcome wrong = setup.outcome(more);
    CHECK(wrong.exit_code == exit_code);
    CHECK(wrong.err.find("self_consistency: ") == 0);
    CHECK(wrong.err.find('\n') == wrong.err.size() - 1);
  }
  CHECK(
      run_example("self_consistency", {"--model", setup.model.path(), "--document", setup.document})
          .exit_code == 2);
}

TEST_CASE("self_consistency counts right orders") {
  const Setup setup;
  const auto& folder = setup.model.directory();
  write_file(folder / "orders_prompt.txt", "Orders.\n");
  write_file(folder / "orders_vote.tsv", "one lamp\ta | b\ntwo lamps\tc | d\n");
  const Outcome outcome = run_example(
      "self_consistency",
      {"--model", setup.model.path(), "--data", folder.string(), "--samples", "3", "--json", "-"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const json result = json::parse(outcome.out);
  CHECK(keys_of(result) ==
        std::set<std::string>{"orders", "right_by_vote", "right_by_single_sample", "right_greedy"});
  CHECK(result["orders"] == 2);
  CHECK(result["right_by_vote"] == 0);
  CHECK(result["right_by_single_sample"] == 0.0);
}

TEST_CASE("self_consistency counts an answer as right that is, also where a rule stops early") {
  const Setup setup;
  const auto& folder = setup.model.directory();
  write_file(folder / "orders_prompt.txt", "Orders.\n");
  const auto outcome_of = [&](const std::string& expected) {
    write_file(folder / "orders_vote.tsv",
               "one lamp\t" + expected + "\none lamp\tanother answer\n");
    const Outcome outcome = run_example(
        "self_consistency", {"--model", setup.model.path(), "--data", folder.string(), "--samples",
                             "16", "--stop", "horizon", "--temperature", "0", "--json", "-"});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return outcome;
  };
  // At temperature 0 the model always says the same.
  const std::string told = outcome_of("not this").err, mark = "the vote is wrong: ";
  const std::size_t begin = told.find(mark);
  REQUIRE(begin != std::string::npos);
  const std::string said =
      told.substr(begin + mark.size(), told.find('\n', begin) - begin - mark.size());
  const json result = json::parse(outcome_of(said).out);
  CHECK(result["right_by_vote"] == 1);
  CHECK(result["right_by_single_sample"] == 1.0);
  CHECK(result["right_greedy"] == 1);
}
