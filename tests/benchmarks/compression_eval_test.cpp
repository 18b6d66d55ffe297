// SPDX-License-Identifier: Apache-2.0
// The program `compression_eval` on small conversations whose answers are known.
#include <set>
#include <string>
#include <vector>

#include "examples/run_program.h"
#include "incipit/compressor.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace incipit::test;
using nlohmann::json;

namespace {

const std::vector<std::string> kPolicies{"window", "summary_buffer", "query_rewrite",
                                         "dedup_summary_truncate", "frozen_segments"};

json turn(const std::string& id, const std::string& role, const std::string& text) {
  return {{"id", id}, {"role", role}, {"text", text}};
}

json document(const json& turns, const json& questions) {
  return {{"conversations", {{{"turns", turns}, {"questions", questions}}}}};
}

/// A chat that is far longer than 1,000 tokens and tells one thing near its beginning.
json long_chat() {
  json turns = json::array();
  for (int i = 0; i < 60; ++i) {
    const std::string n = std::to_string(i);
    const std::string said = i == 2 ? "The code of the blue vault is 4471."
                                    : "Day " + n + " was calm, and we walked a little by the sea.";
    turns.push_back(turn("u" + n, "user", said));
    turns.push_back(
        turn("a" + n, "assistant", "Good to hear about that walk of yours, number " + n));
  }
  return document(
      turns,
      {{{"after", "a59"}, {"text", "What is the code of the blue vault?"}, {"evidence", {"u2"}}}});
}

class Eval {
 public:
  std::string file(const std::string& name) const { return (directory_.path() / name).string(); }

  Outcome run(std::vector<std::string> arguments) const {
    return run_example("compression_eval", arguments);
  }
  json result(const json& data, std::vector<std::string> arguments) const {
    write_file(file("data.json"), data.dump());
    arguments.insert(arguments.end(), {"--data", file("data.json"), "--json", "-"});
    const Outcome outcome = run(arguments);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out);
  }

 private:
  TemporaryDirectory directory_;
};

std::size_t tokens(const std::string& role, const std::string& text) {
  const auto named = role == "user" ? incipit::Role::kUser : incipit::Role::kAssistant;
  return incipit::rough_token_counter().message({.role = named, .text = text});
}

}  // namespace

TEST_CASE("compression_eval prints exactly what was asked for") {
  const Eval eval;
  const json data =
      document({turn("1", "user", "Hello there."), turn("2", "assistant", "Hi!")}, json::array());
  const json result = eval.result(data, {"--budget", "1000"});
  std::set<std::string> keys;
  for (const auto& [key, value] : result.items()) keys.insert(key);
  CHECK(keys == std::set<std::string>{"budget", "compressor_us_per_turn", "evidence_recall",
                                      "number_retention", "policy", "prefilled_tokens_per_turn",
                                      "token_hit_ratio", "turns"});
  CHECK(result.at("policy") == "frozen_segments");
  CHECK(result.at("budget") == 1000);
  CHECK(result.at("turns") == 1);
  CHECK(result.at("token_hit_ratio") == 0.0);
}

TEST_CASE("compression_eval prefills what lies past the last prompt and its reply") {
  const Eval eval;
  const std::string first = "We met in the old town hall last spring.";
  const std::string second = "It was a bright and windy day by the river.";
  const std::string reply = "I see, thank you for telling me about it.";
  const std::string third = "Then we went home.";
  // The first two turns are one message.
  const json data = document({turn("1", "user", first), turn("2", "user", second),
                              turn("3", "assistant", reply), turn("4", "user", third)},
                             json::array());
  for (const std::string& policy : kPolicies) {
    INFO(policy);
    if (policy == "query_rewrite") continue;  // may send less
    const json result = eval.result(data, {"--budget", "4000", "--policy", policy});
    const double per_turn = result.at("prefilled_tokens_per_turn").get<double>();
    // All of it once, the system prompt of 400 included, and what lies in a begun block again.
    const std::size_t once = 400 + tokens("user", first + "\n" + second) + tokens("user", third);
    const std::size_t more = tokens("assistant", reply) + 32;
    CHECK(result.at("turns") == 2);
    CHECK(2 * per_turn > static_cast<double>(once) - 16);
    CHECK(2 * per_turn < static_cast<double>(once + more));
    CHECK(result.at("token_hit_ratio").get<double>() > 0.4);
  }
}

TEST_CASE("compression_eval counts evidence that stands in a probe's prompt") {
  const Eval eval;
  const json turns{turn("1", "user", "My code is 4471. I like tea."), turn("2", "assistant", "Ok."),
                   turn("3", "user", "It rains."), turn("4", "assistant", "Yes.")};
  const json questions{{{"after", "4"}, {"text", "What is my code?"}, {"evidence", {"1", "3"}}}};
  const json all = eval.result(document(turns, questions), {"--budget", "4000"});
  CHECK(all.at("evidence_recall") == 1.0);
  CHECK(all.at("number_retention") == 1.0);
  // A probe leaves no trace.
  const json none = eval.result(document(turns, json::array()), {"--budget", "4000"});
  CHECK(none.at("prefilled_tokens_per_turn") == all.at("prefilled_tokens_per_turn"));
  CHECK(none.at("turns") == all.at("turns"));
}

TEST_CASE("compression_eval tells policies apart on a chat beyond the budget") {
  const Eval eval;
  const auto result = [&](const char* policy) {
    return eval.result(long_chat(), {"--budget", "1000", "--policy", policy});
  };
  const json window = result("window"), rewrite = result("query_rewrite");
  const json frozen = result("frozen_segments");
  CHECK(window.at("evidence_recall") == 0.0);
  CHECK(rewrite.at("evidence_recall") == 1.0);
  CHECK(frozen.at("evidence_recall") == 1.0);
  CHECK(frozen.at("prefilled_tokens_per_turn").get<double>() <
        0.5 * window.at("prefilled_tokens_per_turn").get<double>());
  CHECK(frozen.at("token_hit_ratio").get<double>() > window.at("token_hit_ratio").get<double>());
}

TEST_CASE("compression_eval runs all policies and draws them") {
  const Eval eval;
  const json results = eval.result(
      long_chat(), {"--budget", "1000", "--all-policies", "--chart", eval.file("chart.svg")});
  REQUIRE(results.size() == kPolicies.size());
  const std::string chart = read_file(eval.file("chart.svg"));
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    CHECK(results[i].at("policy") == kPolicies[i]);
    CHECK(chart.find(">" + kPolicies[i] + "<") != std::string::npos);
  }
  CHECK(chart.find("</svg>") != std::string::npos);
}

TEST_CASE("compression_eval makes up the same chats for a seed") {
  const Eval eval;
  const auto made = [&](const char* seed) {
    const std::string path = eval.file("made.json");
    const Outcome outcome =
        eval.run({"--turns", "40", "--conversations", "2", "--seed", seed, "--write-data", path});
    REQUIRE(outcome.exit_code == 0);
    return read_file(path);
  };
  const std::string first = made("1");
  CHECK(made("1") == first);
  CHECK(made("2") != first);
  const json conversations = json::parse(first).at("conversations");
  REQUIRE(conversations.size() == 2);
  CHECK(conversations[0].at("turns").size() == 80);
  CHECK_FALSE(conversations[0].at("questions").empty());
}

TEST_CASE("compression_eval reads public data") {
  const Eval eval;
  const std::string data = INCIPIT_SHARED_DATA;
  struct Set {
    const char *name, *file;
  };
  for (const Set& set :
       {Set{"tau-bench", "taubench/gpt-4o-airline.json"}, Set{"qmsum", "qmsum/test.jsonl"},
        Set{"mt-bench-101", "mtbench/mtbench101.jsonl"}}) {
    const std::string path = data + "/" + set.file;
    if (!std::filesystem::exists(path)) {
      WARN("skipped: no " + path);
      continue;
    }
    const Outcome outcome = eval.run({"--dataset", set.name, "--data", path, "--budget", "8192",
                                      "--policy", "window", "--json", "-"});
    INFO(set.name << ": " << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(json::parse(outcome.out).at("turns").get<std::size_t>() > 100);
  }
}

TEST_CASE("compression_eval reads CrossWOZ") {
  const Eval eval;
  const json told{
      {"content", "推荐全聚德，评分4.5分。"},
      {"role", "sys"},
      {"dialog_act", {{"Inform", "餐馆", "名称", "全聚德"}, {"Inform", "餐馆", "评分", "4.5分"}}}};
  const json asked{{"content", "想吃烤鸭。"}, {"role", "usr"}, {"dialog_act", json::array()}};
  write_file(eval.file("woz.json"), json{{"1", {{"messages", {asked, told}}}}}.dump());
  const std::string written = eval.file("written.json");
  const Outcome outcome = eval.run({"--dataset", "crosswoz", "--data", eval.file("woz.json"),
                                    "--write-data", written, "--json", "-"});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(json::parse(outcome.out).at("evidence_recall") == 1.0);
  const json question =
      json::parse(read_file(written)).at("conversations")[0].at("questions").at(0);
  CHECK(question.at("text") == "全聚德的评分是什么？");
  CHECK(question.at("evidence") == json{"2"});
}

TEST_CASE("compression_eval says what is wrong") {
  const Eval eval;
  CHECK(eval.run({"--policy", "best"}).exit_code == 2);
  CHECK(eval.run({"--dataset", "qmsum"}).exit_code == 2);
  CHECK(eval.run({"--data", eval.file("none.json")}).exit_code == 1);
  write_file(eval.file("bad.json"),
             document(json::array({turn("1", "user", "a")}),
                      {{{"after", "7"}, {"text", "b"}, {"evidence", json::array()}}})
                 .dump());
  const Outcome outcome = eval.run({"--data", eval.file("bad.json")});
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.err.find("no turn has the id") != std::string::npos);
  CHECK(eval.run({"--help"}).out.find("--all-policies") != std::string::npos);
}

TEST_CASE("compression_eval counts as a model does") {
  const TinyModelOnDisk model;
  const Eval eval;
  const json by_model = eval.result(
      long_chat(), {"--model", model.path(), "--budget", "1500", "--policy", "frozen_segments"});
  CHECK(by_model.at("turns") == 60);
  CHECK(by_model.at("token_hit_ratio") > 0.8);
  CHECK(by_model.at("evidence_recall") == 1.0);
  const json roughly = eval.result(long_chat(), {"--budget", "1500"});
  CHECK(by_model.at("prefilled_tokens_per_turn") != roughly.at("prefilled_tokens_per_turn"));
}
