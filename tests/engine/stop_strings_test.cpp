// SPDX-License-Identifier: Apache-2.0
#include "engine/stop_strings.h"

#include <algorithm>
#include <random>
#include <vector>

#include "support/catch.h"

using incipit::engine::StopStrings;

TEST_CASE("without stop strings everything passes at once") {
  StopStrings stops({});
  CHECK(stops.push("abc") == "abc");
  CHECK(stops.finish().empty());
  CHECK_FALSE(stops.matched());
}

TEST_CASE("what may become a stop string is held back until that is decided") {
  const std::vector<std::string> strings = {"\n\n", "END"};
  StopStrings stops(strings);
  CHECK(stops.push("a\n") == "a");
  CHECK(stops.push("bE") == "\nb");
  CHECK(stops.push("NE") == "EN");
  CHECK(stops.push("N") == "");
  CHECK(stops.push("Dx") == "");
  CHECK(stops.matched());
  CHECK(stops.push("more").empty());
  CHECK(stops.finish().empty());
}

TEST_CASE("text that ends in a begun stop string comes out at the end") {
  const std::vector<std::string> strings = {"<stop>"};
  StopStrings stops(strings);
  CHECK(stops.push("x<sto") == "x");
  CHECK(stops.finish() == "<sto");
  CHECK(stops.finish().empty());
}

TEST_CASE("the first stop string in the text wins, in whatever pieces the text comes") {
  std::mt19937 random(3);
  const std::vector<std::string> strings = {"aba", "bb", "cabc"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t i = random() % 12; i > 0; --i) text += static_cast<char>('a' + random() % 3);
    // The reference: the shortest front of the text that contains a stop string ends it.
    std::string expected = text;
    bool found = false;
    for (std::size_t end = 1; end <= text.size() && !found; ++end) {
      for (const std::string& stop : strings) {
        if (!std::string_view(text).substr(0, end).ends_with(stop)) continue;
        expected = text.substr(0, end - stop.size());
        found = true;
        break;
      }
    }
    StopStrings stops(strings);
    std::string shown;
    for (std::size_t i = 0; i < text.size(); ++i) shown += stops.push(text.substr(i, 1));
    shown += stops.finish();
    CHECK(stops.matched() == found);
    CHECK(shown == expected);
  }
}
