// SPDX-License-Identifier: Apache-2.0
// The programs on the real model: what the README says of them.
#include <memory>
#include <string>
#include <vector>

#include "examples/run_program.h"
#include "store/server_process.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

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

TEST_CASE(
    "generate finds in a folder or server what another run has put there, with its salt only") {
  const std::string model = real_model();
  if (model.empty()) return;
  const TemporaryDirectory directory;
  std::vector<std::vector<std::string>> tiers = {
      {"--cache-dir", (directory.path() / "kv").string()}};
  std::vector<std::unique_ptr<ServerProcess>> servers;
  const auto add_server = [&](const std::string& program, const std::string& option,
                              ServerProcess::CommandLine command_line) {
    if (!installed(program)) return;
    servers.push_back(std::make_unique<ServerProcess>(std::move(command_line)));
    tiers.push_back({option, "127.0.0.1:" + std::to_string(servers.back()->port())});
  };
  add_server("redis-server", "--redis", redis_server());
  add_server("memcached", "--memcached", memcached_server({"-m", "256"}));
  for (const std::vector<std::string>& tier : tiers) {
    const auto run = [&](const std::vector<std::string>& more) {
      std::vector<std::string> arguments = {"--model",       model,
                                            "--static-file", (kData / "orders_prompt.txt").string(),
                                            "--prompt",      "The first order is",
                                            "--max-tokens",  "8",
                                            "--logprobs",    "--explain-miss",
                                            "--json",        "-"};
      arguments.insert(arguments.end(), tier.begin(), tier.end());
      arguments.insert(arguments.end(), more.begin(), more.end());
      const Outcome outcome = run_example("generate", arguments);
      INFO(outcome.err);
      REQUIRE(outcome.exit_code == 0);
      return json::parse(outcome.out);
    };
    CAPTURE(tier.front());
    const json first = run({});
    const json second = run({});
    CHECK(first["results"][0]["reused_tokens"] == 0);
    const auto prompt = static_cast<double>(second["results"][0]["prompt_ids"].size());
    CHECK(second["results"][0]["reused_tokens"].get<double>() >= 0.95 * prompt);
    CHECK(lasting_part(first) == lasting_part(second));
    CHECK(run({"--salt", "another"})["results"][0]["reused_tokens"] == 0);
  }
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
