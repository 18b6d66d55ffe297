// SPDX-License-Identifier: Apache-2.0
#include "sampler/json_field.h"

#include <string>

#include "incipit/self_consistency.h"
#include "support/catch.h"

namespace {

std::string answer_in(std::string_view text) {
  return incipit::sampler::last_json_field(text, "answer").value_or("none");
}

}  // namespace

TEST_CASE("a member of an object, whatever stands around it") {
  CHECK(answer_in(R"({"answer": "Oslo"})") == "Oslo");
  CHECK(answer_in("Sure!\n```json\n{\"answer\": \"Oslo\"}\n```\nAnything else?") == "Oslo");
  CHECK(answer_in(R"(say "hi {" then {"answer": 5} and } so on)") == "5");
  CHECK(answer_in(R"({"other": {"x": [1, {"answer": 3}]}, "answer": 4})") == "3");
  CHECK(answer_in(R"({"answer": 4, "meta": {"x": 1}})") == "4");
  CHECK(answer_in(R"({"answer": 1} {"answer": 2} {"other": 3})") == "2");
  CHECK(answer_in(R"({"answer": 1, "answer": 2})") == "2");
  CHECK(answer_in(R"({"result": {"answer": "a \"b\" \u00e4"}})") == "a \"b\" \xC3\xA4");
}

TEST_CASE("values keep their digits, and lists and objects become compact") {
  CHECK(answer_in(R"({"answer": 2.50})") == "2.50");
  CHECK(answer_in(R"({"answer": -7})") == "-7");
  CHECK(answer_in(R"({"answer": 123456789012345678901234567890})") ==
        "123456789012345678901234567890");
  CHECK(answer_in(R"({"answer": 0.1000000000000000055511151231257827})") ==
        "0.1000000000000000055511151231257827");
  CHECK(answer_in(R"({"answer": true})") == "true");
  CHECK(answer_in(R"({"answer": ""})").empty());
  CHECK(answer_in(R"({"answer": [1, "a", [], {"b": [2, 3], "c": null}, {}], "z": 1})") ==
        R"([1,"a",[],{"b":[2,3],"c":null},{}])");
  CHECK(answer_in(R"({"answer": [[1], [2]]})") == "[[1],[2]]");
}

TEST_CASE("no member, no object, or a damaged one is no answer") {
  for (const std::string text :
       {"", "{}", "none", R"({"answer": null})", R"({"answer": 5)", R"({"answer" 5})",
        R"("answer": 5)", R"({"Answer": 5})", R"([{"x": "answer"}])", "{\"answer\": \"\xFF\"}",
        R"({answer: 5})"}) {
    CAPTURE(text);
    CHECK(answer_in(text) == "none");
  }
  // An earlier object does where a later one was cut off.
  CHECK(answer_in(R"({"answer": 5} {"answer": 6)") == "5");
}

TEST_CASE("deep and many objects take bounded work") {
  std::string deep;
  for (int i = 0; i < 20'000; ++i) deep += R"({"answer":)";
  CHECK(answer_in(deep) == "none");
  CHECK(answer_in(deep + "1" + std::string(20'000, '}')) == "1");  // the inner ones
  std::string nested = R"({"answer": )" + std::string(40, '[') + std::string(40, ']') + "}";
  CHECK(answer_in(nested) == "none");
  CHECK(answer_in(R"({"answer": )" + std::string(31, '[') + std::string(31, ']') + "}") ==
        std::string(31, '[') + std::string(31, ']'));
  CHECK(answer_in(std::string(1'000'000, '{')) == "none");
  std::string open_text = "{\"";
  for (int i = 0; i < 100'000; ++i) open_text += "{\\\"";
  CHECK(answer_in(open_text) == "none");
}

TEST_CASE("json_field is there as an extractor") {
  CHECK(incipit::extract::json_field("city")(R"({"city": "Oslo"})") == "Oslo");
}
