// SPDX-License-Identifier: Apache-2.0
// The program `generate` on a tiny random model.
#include <set>

#include "examples/run_program.h"
#include "support/catch.h"

using namespace incipit::test;
using nlohmann::json;

namespace {

// Long enough for several blocks of 16 tokens.
const std::string kStaticText =
    "The manual of the lighthouse: the lamp is lit at dusk and put out at dawn; the keeper writes "
    "down the wind, the weather and every ship that passes by in the night. ";

struct Setup {
  TinyModelOnDisk model;
  std::string static_file = (model.directory() / "static.txt").string();

  Setup() { write_file(static_file, kStaticText); }

  // The JSON of two prompts over the static text.
  json results(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"--model",       model.path(),
                                          "--static-file", static_file,
                                          "--prompt",      "When is the lamp lit?",
                                          "--prompt",      "Who writes down the wind?",
                                          "--max-tokens",  "12",
                                          "--ignore-eos",  "--logprobs",
                                          "--json",        "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_example("generate", arguments);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out);
  }
};

}  // namespace

TEST_CASE("generate answers each prompt and reports everything about it") {
  const Setup setup;
  const json results = setup.results({}).at("results");
  REQUIRE(results.size() == 2);
  for (const json& result : results) {
    std::set<std::string> keys;
    for (const auto& item : result.items()) keys.insert(item.key());
    CHECK(keys == std::set<std::string>{"text", "prompt_ids", "output_ids", "logprobs", "top",
                                        "reused_tokens", "time_to_first_token_ms", "finish"});
    CHECK(result.at("finish") == "max_tokens");
    CHECK(result.at("output_ids").size() == 12);
    CHECK(result.at("logprobs").size() == 12);
    REQUIRE(result.at("top").size() == 12);
    CHECK(result.at("time_to_first_token_ms").get<double>() > 0.0);
    for (std::size_t i = 0; i < 12; ++i) {
      const json& likeliest = result["top"][i];
      REQUIRE(likeliest.size() == 5);
      // Greedy: the token is the likeliest one.
      CHECK(likeliest[0].at("id") == result["output_ids"][i]);
      CHECK(likeliest[0].at("logprob") == result["logprobs"][i]);
    }
  }
  CHECK(results[0].at("reused_tokens") == 0);
  CHECK(results[1].at("reused_tokens").get<int>() >= 16);
}

TEST_CASE("generate gives the same without the cache and on any number of threads") {
  const Setup setup;
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{},
        {"--temperature", "0.9", "--seed", "7", "--top-k", "50"},
        {"--temperature", "1.2", "--top-p", "0.9", "--min-p", "0.01"},
        {"--reference"},
        {"--kv-type", "f32"},
        {"--cpu-path", "scalar"}}) {
    CAPTURE(options);
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.end(), options.begin(), options.end());
      return setup.results(more);
    };
    const json cached = with({"--threads", "1"});
    CHECK(lasting_part(cached) == lasting_part(with({"--threads", "2"})));
    const json uncached = with({"--threads", "2", "--no-cache"});
    CHECK(lasting_part(cached) == lasting_part(uncached));
    CHECK(uncached["results"][1]["reused_tokens"] == 0);
  }
}

TEST_CASE("generate writes floats that read back exactly") {
  const Setup setup;
  const json results = setup.results({}).at("results");
  for (const json& logprob : results[0].at("logprobs")) {
    const double value = logprob.get<double>();
    CHECK(static_cast<double>(static_cast<float>(value)) == value);
  }
}

TEST_CASE("generate without --logprobs leaves them out") {
  const Setup setup;
  const Outcome outcome = run_example("generate", {"--model", setup.model.path(), "--prompt", "ab",
                                                   "--max-tokens", "2", "--json", "-"});
  REQUIRE(outcome.exit_code == 0);
  const json result = json::parse(outcome.out).at("results").at(0);
  CHECK(result.at("logprobs").empty());
  CHECK(result.at("top").empty());
}

TEST_CASE("generate streams the text to stdout, or to stderr where stdout is JSON") {
  const Setup setup;
  const std::string file = (setup.model.directory() / "out.json").string();
  const std::vector<std::string> arguments = {
      "--model", setup.model.path(), "--prompt", "the wind and ", "--max-tokens",
      "8",       "--ignore-eos",     "--json"};
  auto to_file = arguments, to_stdout = arguments;
  to_file.push_back(file);
  to_stdout.push_back("-");
  const Outcome filed = run_example("generate", to_file);
  const Outcome piped = run_example("generate", to_stdout);
  REQUIRE(filed.exit_code == 0);
  REQUIRE(piped.exit_code == 0);

  const json document = json::parse(read_file(file));
  const std::string text = document["results"][0]["text"];
  CHECK(filed.out == text + "\n");
  CHECK(lasting_part(document) == lasting_part(json::parse(piped.out)));
  CHECK(piped.err.find(text + "\n") == 0);
}

TEST_CASE("generate --chat puts the static text into the system message") {
  const Setup setup;
  const json chat = setup.results({"--chat"});
  const json plain = setup.results({});
  const json& ids = chat["results"][0]["prompt_ids"];
  CHECK(ids.size() > plain["results"][0]["prompt_ids"].size());
  CHECK(ids[0] == 1);  // <|im_start|>
  CHECK(chat["results"][1]["reused_tokens"].get<int>() >= 16);
  CHECK(lasting_part(chat) == lasting_part(setup.results({"--chat", "--no-cache"})));
}

TEST_CASE("generate says in one line what is wrong") {
  const Setup setup;
  const std::string model = setup.model.path();
  const std::string missing = (setup.model.directory() / "missing").string();
  const std::string text = setup.static_file;
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    std::string names;  // the message has this word
  };
  const std::vector<Case> cases = {
      {{}, 2, "--model"},
      {{"--model", model}, 2, "--prompt"},
      {{"--model", model, "--prompt", "a", "--frobnicate"}, 2, "--frobnicate"},
      {{"--model", model, "--prompt", "a", "b"}, 2, "b"},
      {{"--model", model, "--prompt", "a", "--max-tokens", "-1"}, 2, "--max-tokens"},
      {{"--model", model, "--prompt", "a", "--threads", "many"}, 2, "--threads"},
      {{"--model", model, "--prompt", "a", "--seed", "-1"}, 2, "--seed"},
      {{"--model", model, "--prompt", "a", "--kv-type", "f8"}, 2, "--kv-type"},
      {{"--model", model, "--prompt", "a", "--cpu-path", "sse"}, 2, "--cpu-path"},
      {{"--model", model, "--prompt", "a", "--temperature", "-1"}, 1, "temperature"},
      {{"--model", model, "--prompt", "a", "--static-file", missing}, 1, missing},
      {{"--model", missing, "--prompt", "a"}, 1, missing},
      {{"--model", text, "--prompt", "a"}, 1, text},
      {{"--model", model, "--prompt", ""}, 1, "prompt"},
      {{"--model", model, "--prompt", "a", "--json", missing + "/x"}, 1, missing},
      {{"--model", model, "--prompt", std::string(9000, 'x')}, 1, "8192"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.arguments);
    const Outcome outcome = run_example("generate", each.arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == each.exit_code);
    const std::size_t line = outcome.err.rfind("generate: ");
    REQUIRE(line != std::string::npos);
    CHECK(outcome.err.find(each.names, line) != std::string::npos);
    CHECK(outcome.err.find('\n', line) == outcome.err.size() - 1);
  }
}

TEST_CASE("the programs explain themselves") {
  for (const std::string program : {"generate", "quickstart", "chat"}) {
    const Outcome outcome = run_example(program, {"--help"});
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out.find("--model") != std::string::npos);
    CHECK(outcome.err.empty());
  }
}
