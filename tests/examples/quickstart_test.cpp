// SPDX-License-Identifier: Apache-2.0
// The program `quickstart` on a tiny random model, whose answers are nonsense of course.
#include <set>

#include "examples/run_program.h"
#include "support/catch.h"

using namespace incipit::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// The quickstart's data with 30 worked examples: a tiny vocabulary makes many tokens of them.
void write_short_data(const fs::path& folder) {
  const fs::path data = fs::path(INCIPIT_ROOT) / "examples" / "data";
  const std::string prompt = read_file(data / "orders_prompt.txt");
  std::size_t end = 0;
  for (int i = 0; i < 31; ++i) end = prompt.find("\nOrder: ", end + 1);
  REQUIRE(end != std::string::npos);
  write_file(folder / "orders_prompt.txt", prompt.substr(0, end));
  write_file(folder / "orders_questions.tsv", read_file(data / "orders_questions.tsv"));
}

}  // namespace

TEST_CASE("quickstart writes its table as JSON") {
  const TinyModelOnDisk model;
  write_short_data(model.directory());
  for (const bool verify_all : {false, true}) {
    std::vector<std::string> arguments = {
        "--model", model.path(), "--data", model.directory().string(), "--json", "-"};
    if (verify_all) arguments.push_back("--verify-all");
    const Outcome outcome = run_example("quickstart", arguments);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const json document = json::parse(outcome.out);
    CHECK(document.size() == 4);
    CHECK(document.at("speedup").get<double>() > 0.0);
    CHECK(document.at("right") == 0);
    CHECK(document.at("right_with_4_examples") == 0);
    const json& questions = document.at("questions");
    REQUIRE(questions.size() == 10);
    for (std::size_t i = 0; i < 10; ++i) {
      const json& question = questions[i];
      std::set<std::string> keys;
      for (const auto& item : question.items()) keys.insert(item.key());
      CHECK(keys == std::set<std::string>{"prompt_tokens", "reused_tokens",
                                          "time_to_first_token_ms", "answer",
                                          "answer_without_cache", "expected"});
      const bool verified = verify_all || i < 3;
      CHECK(question.at("answer_without_cache").is_null() == !verified);
      if (verified) CHECK(question["answer_without_cache"] == question["answer"]);
      const double share =
          question["reused_tokens"].get<double>() / question["prompt_tokens"].get<double>();
      CHECK((i == 0 ? share == 0.0 : share >= 0.95));
    }
  }
}

TEST_CASE("quickstart says in one line what is wrong") {
  const TinyModelOnDisk model;
  const std::string missing = (model.directory() / "missing").string();
  for (const auto& [arguments, exit_code] : std::vector<std::pair<std::vector<std::string>, int>>{
           {{}, 2},
           {{"--model", model.path(), "--nope"}, 2},
           {{"--model", missing}, 1},
           {{"--model", model.path(), "--data", missing}, 1}}) {
    CAPTURE(arguments);
    const Outcome outcome = run_example("quickstart", arguments);
    CHECK(outcome.exit_code == exit_code);
    CHECK(outcome.err.find("quickstart: ") == 0);
    CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
  }
}
