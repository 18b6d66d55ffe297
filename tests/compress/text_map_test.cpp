// SPDX-License-Identifier: Apache-2.0
#include "compress/text_map.h"

#include <string>
#include <vector>

#include "support/catch.h"

namespace incipit::compress {
namespace {

TEST_CASE("a map of texts keeps the first number of each, until it is changed") {
  TextMap map;
  CHECK(map.emplace("", 3).second);
  CHECK(map.emplace("a", 0).second);
  const auto [number, is_new] = map.emplace("a", 5);
  CHECK(!is_new);
  CHECK(*number == 0);
  *number = 9;
  CHECK(*map.emplace("a", 1).first == 9);
  CHECK(*map.emplace("", 1).first == 3);
}

TEST_CASE("a map of texts grows") {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 1000; ++i) texts.push_back(std::to_string(i * i));
  TextMap map;
  bool good = true;
  for (std::size_t i = 0; i < texts.size(); ++i) good = good && map.emplace(texts[i], i).second;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto [number, is_new] = map.emplace(texts[i], 0);
    good = good && !is_new && *number == i;
  }
  CHECK(good);
}

}  // namespace
}  // namespace incipit::compress
