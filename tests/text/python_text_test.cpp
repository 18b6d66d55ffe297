// SPDX-License-Identifier: Apache-2.0
#include "text/chat/python_text.h"

#include "support/catch.h"

namespace incipit::text {
namespace {

TEST_CASE("texts are stripped of what Python takes for white space") {
  CHECK(python_stripped("").empty());
  CHECK(python_stripped(" \t\r\n\v\f\x1c\x1d\x1e\x1f").empty());
  CHECK(python_stripped(" a b ") == "a b");
  for (const char* const space : {"\u0085", "\u00a0", "\u1680", "\u2000", "\u200a", "\u2028",
                                  "\u2029", "\u202f", "\u205f", "\u3000"}) {
    const std::string text = std::string(space) + space + "\u00e9" + space;
    CHECK(python_stripped(text) == "\u00e9");
    CHECK(python_stripped(space).empty());
  }
  // Neither is a zero-width space, nor bytes that only look like one.
  for (const char* const text :
       {"\u200b", "\u180e", "\ufeff", "\x85", "\xa0", "\xe3\x80", "\x80\x80", "\xf0\x9f\x98\x80"}) {
    CHECK(python_stripped(text) == text);
  }
}

TEST_CASE("JSON is written as Python writes it") {
  const auto parsed = [](const char* text) { return nlohmann::ordered_json::parse(text); };
  const auto value = parsed(R"({"b":[1,2.5,{"a":null}],"a":"\u00e9\"\\\n\u0001","c":{},"d":[]})");
  CHECK(python_json(value) ==
        "{\"b\": [1, 2.5, {\"a\": null}], \"a\": \"\u00e9\\\"\\\\\\n\\u0001\", \"c\": {}, \"d\": "
        "[]}");
  CHECK(indented_json(parsed(R"({"a":[1,{}]})")) ==
        "{\n    \"a\": [\n        1,\n        {}\n    ]\n}");
  CHECK(python_json(nlohmann::ordered_json("\xff")) == "\"\ufffd\"");
}

}  // namespace
}  // namespace incipit::text
