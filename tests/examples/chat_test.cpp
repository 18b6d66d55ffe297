// SPDX-License-Identifier: Apache-2.0
// The program `chat` on a tiny random model.
#include <string>
#include <vector>

#include "examples/run_program.h"
#include "support/catch.h"

using namespace incipit::test;
using nlohmann::json;

namespace {

std::vector<std::string> some_messages(int count) {
  std::vector<std::string> arguments;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    arguments.emplace_back("--say");
    arguments.push_back("Crate " + number + " came from Lisbon with " + number +
                        " lamps in it. It stands beside the door.");
  }
  return arguments;
}

Outcome chat(const TinyModelOnDisk& model, std::vector<std::string> more,
             const std::string& input = {}) {
  std::vector<std::string> arguments = {"--model",   model.path(),   "--system",
                                        "Be brief.", "--max-tokens", "4"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_example("chat", arguments, input);
}

}  // namespace

TEST_CASE("chat goes on within its budget, and finds its front in the cache") {
  const TinyModelOnDisk model;
  for (const bool summarize : {false, true}) {
    std::vector<std::string> more = some_messages(40);
    more.insert(more.end(), {"--budget", "1500", "--json", "-"});
    if (summarize) more.emplace_back("--summarize");
    const Outcome outcome = chat(model, more);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const json turns = json::parse(outcome.out).at("turns");
    REQUIRE(turns.size() == 40);
    int compactions = 0, summaries = 0;
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const json& turn = turns[i];
      const int prompt = turn.at("prompt_tokens"), prefilled = turn.at("prefilled_tokens");
      CAPTURE(i, prompt);
      CHECK(prompt <= 1500);
      CHECK(prompt == prefilled + turn.at("reused_tokens").get<int>());
      CHECK(turn.at("conversation_tokens") >= prompt);
      const bool compacted = turn.at("compacted_messages") > 0;
      compactions += compacted ? 1 : 0;
      summaries += static_cast<int>(turn.at("summaries").size());
      CHECK((turn.at("reclaimed_tokens") > 0) == compacted);
      // A message and what its turn opens with; nothing of earlier ones but a part of a block.
      if (i > 0 && !compacted) CHECK(prefilled < 250);
    }
    CHECK(compactions >= 2);
    CHECK((summaries >= compactions) == summarize);
    CHECK(turns.back().at("conversation_tokens") > 2500);
    CHECK(outcome.err.find("compacted") != std::string::npos);
    CHECK((outcome.err.find("the model's summary") != std::string::npos) == summarize);
  }
}

TEST_CASE("chat reads messages line by line, and has room for as much as the model") {
  const TinyModelOnDisk model;
  const Outcome outcome = chat(model, {}, "Hello there.\n\nHow are you?\n");
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.out.starts_with("> "));
  std::size_t reports = 0;
  for (std::size_t at = 0; (at = outcome.out.find("of them reused", at)) != std::string::npos;
       ++at) {
    ++reports;
  }
  CHECK(reports == 2);
  CHECK(outcome.out.find("compacted") == std::string::npos);
}

TEST_CASE("chat says why it cannot") {
  const TinyModelOnDisk model;
  const Outcome outcome = chat(model, {"--budget", "8", "--say", "Hello."});
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.err.find("what must stay") != std::string::npos);
  CHECK(run_example("chat", {}).exit_code == 2);
}
