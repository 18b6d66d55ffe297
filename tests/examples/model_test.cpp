// SPDX-License-Identifier: Apache-2.0
// The programs on the real model: what the README says of them.
#include "examples/run_program.h"
#include "support/catch.h"

using namespace incipit::test;
using nlohmann::json;

namespace {

const std::filesystem::path kData = std::filesystem::path(INCIPIT_ROOT) / "examples" / "data";

double share_reused(const json& question) {
  return question.at("reused_tokens").get<double>() / question.at("prompt_tokens").get<double>();
}

}  // namespace

TEST_CASE("quickstart: the second question is answered from the cache, and twenty times sooner") {
  const std::string model = real_model();
  if (model.empty()) return;
  const Outcome outcome = run_example("quickstart", {"--model", model, "--json", "-"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const json document = json::parse(outcome.out);
  const json& questions = document.at("questions");
  REQUIRE(questions.size() == 10);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    CHECK(questions[i].at("prompt_tokens").get<int>() >= 3000);
    if (i > 0) CHECK(share_reused(questions[i]) >= 0.95);
    if (i < 3) CHECK(questions[i].at("answer") == questions[i].at("answer_without_cache"));
  }
  CHECK(document.at("speedup").get<double>() >= 20.0);
  CHECK(document.at("right") >= 8);
  CHECK(document.at("right") > document.at("right_with_4_examples"));
}

TEST_CASE("generate gives the same without the cache and with one thread or two") {
  const std::string model = real_model();
  if (model.empty()) return;
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--model",
                                          model,
                                          "--static-file",
                                          (kData / "orders_questions.tsv").string(),
                                          "--prompt",
                                          "The first order is",
                                          "--prompt",
                                          "An order from Vienna is",
                                          "--max-tokens",
                                          "24",
                                          "--logprobs",
                                          "--json",
                                          "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_example("generate", arguments);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out);
  };
  const json cached = run({"--threads", "1"});
  CHECK(cached["results"][1]["reused_tokens"].get<int>() >= 250);
  CHECK(lasting_part(cached) == lasting_part(run({"--threads", "2"})));
  CHECK(lasting_part(cached) == lasting_part(run({"--threads", "2", "--no-cache"})));
  CHECK(lasting_part(cached) == lasting_part(run({"--threads", "1", "--no-cache"})));
}

TEST_CASE("the program of the README prints what the README says") {
  const std::string model = real_model();
  if (model.empty()) return;
  const Outcome outcome = run_example("readme", {model, (kData / "orders_prompt.txt").string()});
  REQUIRE(outcome.exit_code == 0);
  CAPTURE(outcome.out);
  CHECK(read_file(std::filesystem::path(INCIPIT_ROOT) / "README.md").find(outcome.out) !=
        std::string::npos);
}
