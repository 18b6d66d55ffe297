// SPDX-License-Identifier: Apache-2.0
#include "model/json_file.h"

#include <string>
#include <vector>

#include "support/catch.h"
#include "support/memory_file.h"
#include "support/unreadable.h"

namespace incipit::model {
namespace {

using test::check_unreadable;
using test::MemoryFile;

JsonFile read(const std::string& text) { return JsonFile(MemoryFile(text).path()); }

TEST_CASE("Members of a JSON object are read by type") {
  const JsonFile file = read(R"({"count": 7, "number": 0.5, "flag": true, "text": "t",
                                 "counts": [1, 2], "texts": ["a", "b"], "object": {"in": 1}})");
  const JsonObject root = file.root();
  CHECK(root.find_count("count") == 7u);
  CHECK(root.get_count("count") == 7u);
  CHECK(root.find_number("count") == 7.0);
  CHECK(root.get_number("number") == 0.5);
  CHECK(root.find_flag("flag") == true);
  CHECK(root.find_text("text") == "t");
  CHECK(root.find_counts("count") == std::vector<std::uint64_t>{7});
  CHECK(root.find_counts("counts") == std::vector<std::uint64_t>{1, 2});
  CHECK(root.find_texts("texts") == std::vector<std::string>{"a", "b"});
  REQUIRE(root.find_object("object").has_value());
  CHECK(root.find_object("object")->get_count("in") == 1);
}

TEST_CASE("A missing member and null are nothing to find and an error to get") {
  const JsonFile file = read(R"({"nothing": null})");
  const JsonObject root = file.root();
  for (const char* key : {"nothing", "absent"}) {
    CHECK_FALSE(root.find_count(key).has_value());
    CHECK_FALSE(root.find_number(key).has_value());
    CHECK_FALSE(root.find_flag(key).has_value());
    CHECK_FALSE(root.find_text(key).has_value());
    CHECK_FALSE(root.find_object(key).has_value());
    CHECK(root.find_counts(key).empty());
    CHECK(root.find_texts(key).empty());
    check_unreadable("is missing", [&] { return root.get_count(key); });
    check_unreadable("is missing", [&] { return root.get_number(key); });
  }
}

TEST_CASE("A member of another type than is wanted is an error") {
  const JsonFile file = read(R"({"text": "1", "minus": -1, "half": 0.5,
                                 "mixed": [1, "a"], "big": 18446744073709551616})");
  const JsonObject root = file.root();
  for (const char* key : {"text", "minus", "half", "big", "mixed"}) {
    check_unreadable(std::string("'") + key + "'", [&] { return root.find_count(key); });
    check_unreadable(std::string("'") + key + "'", [&] { return root.find_flag(key); });
    check_unreadable(std::string("'") + key + "'", [&] { return root.find_object(key); });
    check_unreadable(std::string("'") + key + "'", [&] { return root.find_counts(key); });
    check_unreadable(std::string("'") + key + "'", [&] { return root.find_texts(key); });
  }
  check_unreadable("'minus'", [&] { return root.find_text("minus"); });
  check_unreadable("'text'", [&] { return root.find_number("text"); });
}

TEST_CASE("What is no JSON object is refused") {
  for (const char* text : {"", "{", "[]", "7", "{}x", "{\"a\": \"\xff\"}", "{\"a\": 1e999}"}) {
    check_unreadable("no valid JSON object", [&] { return read(text); });
  }
}

TEST_CASE("Deep nesting and large files are refused") {
  const std::string deep(1 << 20, '[');
  check_unreadable("nested too deeply", [&] { return read("{\"a\":" + deep); });
  check_unreadable("at most", [] { return read(std::string((8 << 20) + 1, ' ')); });
}

}  // namespace
}  // namespace incipit::model
