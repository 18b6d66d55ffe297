// SPDX-License-Identifier: Apache-2.0
// Extraction and canonical keys against labels of people: OpenAI's solutions of GSM8K.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "incipit/self_consistency.h"
#include "support/catch.h"

using namespace incipit;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const fs::path kFolder = fs::path(INCIPIT_SHARED_DATA) / "gsm8k";

bool is_there(const fs::path& path) {
  if (fs::exists(path)) return true;
  WARN("skipped: " << path.filename() << " is not there");
  return false;
}

std::optional<std::string> key_of(const Extractor& extract, const std::string& text) {
  const auto answer = extract(text);
  return answer ? keys::number()(*answer) : std::nullopt;
}

}  // namespace

TEST_CASE("each labelled solution of GSM8K has the right key exactly where its label says so") {
  const fs::path path = kFolder / "example_model_solutions.jsonl";
  if (!is_there(path)) return;
  const Extractor extract = extract::after("A:");
  std::ifstream lines(path);
  int solutions = 0, agree = 0, raw_agree = 0;
  for (std::string line; std::getline(lines, line);) {
    const json entry = json::parse(line);
    const std::string truth = entry.at("ground_truth");
    const auto expected = key_of(extract, truth);
    REQUIRE(expected);
    for (const char* model :
         {"6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"}) {
      const json& solution = entry.at(model);
      const std::string text = solution.at("solution");
      const bool is_correct = solution.at("is_correct");
      const bool same = key_of(extract, text) == expected;
      if (same != is_correct) UNSCOPED_INFO(model << ": " << text << "\nexpected " << *expected);
      ++solutions;
      agree += same == is_correct;
      raw_agree += (extract(text) == extract(truth)) == is_correct;
    }
  }
  CHECK(solutions == 5276);
  CHECK(agree == solutions);
  CHECK(raw_agree < solutions);  // the keys are what does it
}

TEST_CASE("each problem of GSM8K has a number behind its marker, which is also its last number") {
  const fs::path path = kFolder / "test.jsonl";
  if (!is_there(path)) return;
  std::ifstream lines(path);
  int problems = 0, equal = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string answer = json::parse(line).at("answer");
    const auto marked = key_of(extract::after(), answer);
    ++problems;
    equal += marked && marked == key_of(extract::last_number(), answer);
  }
  CHECK(problems == 1319);
  CHECK(equal == problems);
}
