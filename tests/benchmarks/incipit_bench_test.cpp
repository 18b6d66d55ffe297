// SPDX-License-Identifier: Apache-2.0
// The program `incipit-bench` on a tiny random model.
#include <set>
#include <string>
#include <vector>

#include "examples/run_program.h"
#include "support/catch.h"

using namespace incipit::test;
using nlohmann::json;

namespace {

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& item : object.items()) keys.insert(item.key());
  return keys;
}

Outcome run_bench(const TinyModelOnDisk& model, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--model", model.path(), "--threads", "2"});
  return run_example("incipit-bench", arguments);
}

/// The document that the command writes to stdout.
json document_of(const TinyModelOnDisk& model, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", "-"});
  const Outcome outcome = run_bench(model, arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  // All that is for people went to stderr.
  CHECK(outcome.err.find("2 threads") != std::string::npos);
  return json::parse(outcome.out);
}

/// What every document has, whatever the command.
void check_document(const json& document, const std::string& command, std::size_t values,
                    const std::set<std::string>& metrics) {
  CHECK(document.at("command") == command);
  CHECK(keys_of(document.at("machine")) == std::set<std::string>{"cpu", "threads", "limits"});
  CHECK(document["machine"]["threads"] == 2);
  CHECK(document.at("model").at("architecture") == "llama");
  CHECK(document["model"].at("weight_bytes").get<double>() > 0.0);
  const json& results = document.at("results");
  CHECK(keys_of(results) == metrics);
  for (const auto& [name, metric] : results.items()) {
    CAPTURE(name);
    CHECK(keys_of(metric) == std::set<std::string>{"unit", "median", "min", "max", "spread",
                                                   "values", "limit", "fraction_of_limit"});
    if (values > 0) CHECK(metric.at("values").size() == values);
    CHECK(metric.at("min") <= metric.at("median"));
    CHECK(metric.at("median") <= metric.at("max"));
  }
}

const std::set<std::string> kStandardKeys = {
    "prefill_512_tok_s", "prefill_4096_s",   "ttft_64_ms",       "ttft_16_ms",
    "decode_1_tok_s",    "decode_1_at_4096", "decode_8_at_4096", "decode_16_at_4096"};

/// Longer than the front of it that some of the standard prompts are, with characters of 2 bytes.
std::string some_document() {
  std::string text;
  while (text.size() < 2600) text += "Der M\u00fcller z\u00e4hlt die S\u00e4cke. ";
  return text;
}

}  // namespace

TEST_CASE("each command of incipit-bench writes what it measured") {
  const TinyModelOnDisk model;
  const std::vector<std::string> sizes = {"--prompt-tokens", "40", "--repeat", "3", "--no-limits"};
  const auto measured = [&](const std::string& command, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {command};
    arguments.insert(arguments.end(), sizes.begin(), sizes.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    const json document = document_of(model, arguments);
    CHECK(document["machine"]["limits"].is_null());
    CHECK(document["settings"].at("prompt_tokens") == 40);
    for (const json& metric : document["results"]) {
      CHECK(metric["limit"].is_null());
      CHECK(metric["fraction_of_limit"].is_null());
    }
    return document;
  };
  check_document(measured("prefill", {}), "prefill", 3,
                 {"prefill_tok_s", "first_token_ms", "total_ms"});
  check_document(measured("prefill", {"--cached-tokens", "32", "--new-tokens", "3", "--samples",
                                      "2", "--kv-type", "f32"}),
                 "prefill", 3, {"prefill_tok_s", "first_token_ms", "total_ms"});
  check_document(measured("decode", {"--new-tokens", "12"}), "decode", 3,
                 {"decode_tok_s", "first_token_ms"});
  check_document(measured("decode", {"--new-tokens", "12", "--samples", "3"}), "decode", 3,
                 {"decode_tok_s", "first_token_ms"});
  const json turns = measured("turns", {"--turns", "3", "--new-tokens", "8", "--samples", "2",
                                        "--cpu-path", "scalar", "--activations", "float"});
  check_document(
      turns, "turns", 3,
      {"first_token_ms", "later_first_token_ms", "decode_tok_s", "reused_share", "total_ms"});
  CHECK(turns["results"]["reused_share"]["min"].get<double>() > 0.2);
  CHECK(turns["settings"].at("turns") == 3);
}

TEST_CASE("incipit-bench compares with the machine's limits") {
  const TinyModelOnDisk model;
  const json document = document_of(model, {"prefill", "--prompt-tokens", "300", "--repeat", "2"});
  check_document(document, "prefill", 2, {"prefill_tok_s", "first_token_ms", "total_ms"});
  const json& limits = document["machine"]["limits"];
  CHECK(keys_of(limits) ==
        std::set<std::string>{"memory_gb_s", "f32_gflop_s", "bf16_gflop_s", "int8_gop_s"});
  CHECK(limits["memory_gb_s"].get<double>() > 0.1);
  CHECK(limits["f32_gflop_s"].get<double>() > 0.1);
  const json& speed = document["results"]["prefill_tok_s"];
  CHECK(speed["limit"] == "products");
  CHECK(speed["fraction_of_limit"].get<double>() > 0.0);
}

TEST_CASE("incipit-bench shared and users write their medians at the top") {
  const TinyModelOnDisk model;
  const json shared = document_of(model, {"shared", "--prompt-tokens", "100", "--new-tokens", "20",
                                          "--samples", "4", "--repeat", "3", "--no-limits"});
  for (const char* key :
       {"tokens_per_s", "one_sample_tokens_per_s", "first_token_ms", "scheduler_share"}) {
    CHECK(shared.at(key) == shared["results"][key]["median"]);
  }
  CHECK(shared["scheduler_share"].get<double>() < 1.0);
  // The prompt's six whole blocks once, and the last tokens of each sample.
  const std::size_t block = 16 * shared["model"]["kv_bytes_per_token"].get<std::size_t>();
  CHECK(shared["kv_bytes"].get<std::size_t>() <= (6 + 4 * 3) * block);
  const json users =
      document_of(model, {"users", "--users", "3", "--system-tokens", "50", "--prompt-tokens", "7",
                          "--new-tokens", "5", "--no-limits"});
  CHECK(users["tokens_per_s"].get<double>() > 0.0);
  CHECK(users["one_after_another_tokens_per_s"].get<double>() > 0.0);
  CHECK(users["settings"]["users"] == 3);
}

TEST_CASE("incipit-bench standard writes the keys of the workload") {
  const TinyModelOnDisk model;
  const std::string file = (model.directory() / "document.txt").string();
  write_file(file, some_document());
  const json document = document_of(model, {"standard", "--document", file, "--no-limits"});
  check_document(document, "standard", 0, kStandardKeys);
  for (const std::string& key : kStandardKeys) {
    CAPTURE(key);
    CHECK(document.at(key) == document["results"][key]["median"]);
  }
  CHECK(document["results"]["prefill_512_tok_s"]["values"].size() == 5);
  CHECK(document["results"]["ttft_64_ms"]["values"].size() == 7);
  CHECK(document["results"]["ttft_16_ms"]["values"].size() == 8);
  CHECK(document["results"]["decode_16_at_4096"]["values"].size() == 3);
}

TEST_CASE("incipit-bench writes the texts of the workload for other programs") {
  const TinyModelOnDisk model;
  const std::string file = (model.directory() / "document.txt").string();
  const std::string out = (model.directory() / "texts.json").string();
  write_file(file, some_document());
  REQUIRE(run_example("incipit-bench", {"texts", "--document", file, "--json", out}).exit_code ==
          0);
  const json texts = json::parse(read_file(out));
  CHECK(texts.at("document") == some_document());
  CHECK(texts.at("openings").size() == 3);
  CHECK(texts.at("long_questions").size() == 8);
  CHECK(texts.at("short_questions").size() == 8);
  REQUIRE(texts.at("short_prompts").size() == 5);
  // Cut behind 2,150 characters, whatever bytes they have.
  const std::string prompt = texts["short_prompts"][1];
  CHECK(prompt.substr(0, 3) == "1# ");
  CHECK(some_document().find(prompt.substr(3)) == 0);
  std::size_t characters = 0;
  for (const char byte : prompt.substr(3)) characters += (byte & 0xC0) != 0x80;
  CHECK(characters == 2150);
}

TEST_CASE("incipit-bench writes its JSON to a file, too, and floats that read back exactly") {
  const TinyModelOnDisk model;
  const std::string file = (model.directory() / "out.json").string();
  const Outcome outcome = run_bench(
      model, {"decode", "--new-tokens", "4", "--repeat", "2", "--no-limits", "--json", file});
  REQUIRE(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.find("decode_tok_s") != std::string::npos);
  const json metric = json::parse(read_file(file)).at("results").at("first_token_ms");
  const double first = metric["values"][0], second = metric["values"][1];
  CHECK(metric["median"] == (first + second) / 2);
}

TEST_CASE("incipit-bench says in one line what is wrong") {
  const TinyModelOnDisk model;
  const std::string missing = (model.directory() / "missing").string();
  const std::vector<std::pair<std::vector<std::string>, int>> cases = {
      {{}, 2},
      {{"fly"}, 2},
      {{"decode"}, 2},
      {{"decode", "--model", model.path(), "--nope"}, 2},
      {{"decode", "--model", model.path(), "--new-tokens", "1"}, 2},
      {{"decode", "--model", model.path(), "--samples", "0"}, 2},
      {{"decode", "--model", model.path(), "--kv-type", "f64"}, 2},
      {{"turns", "--model", model.path(), "--turns", "1"}, 2},
      {{"standard", "--model", model.path()}, 2},
      {{"decode", "--model", missing}, 1},
      {{"standard", "--model", model.path(), "--document", missing}, 1},
      {{"prefill", "--model", model.path(), "--cached-tokens", "512", "--no-limits"}, 1},
      {{"decode", "--model", model.path(), "--no-limits", "--prompt-tokens", "8000", "--new-tokens",
        "400"},
       1}};
  for (const auto& [arguments, exit_code] : cases) {
    CAPTURE(arguments);
    const Outcome outcome = run_example("incipit-bench", arguments);
    CHECK(outcome.exit_code == exit_code);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find("incipit-bench: ") == 0);
    CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
  }
}

TEST_CASE("incipit-bench --help shows commands, options and formulas") {
  const Outcome all = run_example("incipit-bench", {"--help"});
  CHECK(all.exit_code == 0);
  for (const char* command : {"prefill", "decode", "shared", "turns", "standard", "texts"}) {
    CHECK(all.out.find(command) != std::string::npos);
    const Outcome one = run_example("incipit-bench", {command, "--help"});
    CHECK(one.exit_code == 0);
    CHECK(one.out.find("--json") != std::string::npos);
    const bool measures = std::string(command) != "texts";
    CHECK((one.out.find("weight bytes") != std::string::npos) == measures);
  }
}
