// SPDX-License-Identifier: Apache-2.0
#include "compress/near_duplicates.h"

#include <algorithm>
#include <chrono>

#include "compress/edited_texts.h"
#include "compress/mixed_text.h"
#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::compress {
namespace {

struct Rates {
  std::size_t found = 0, of = 0;
  double share() const { return static_cast<double>(found) / static_cast<double>(of); }
};

/// How many of `count` texts are found as duplicates of what `change` makes of them, among all.
template <class Make, class Change>
Rates duplicates(std::size_t count, Make make, Change change) {
  std::mt19937 random(11);
  NearDuplicates known;
  std::vector<std::string> changed;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = make(random);
    known.add(text);
    changed.push_back(change(text, random));
  }
  Rates rates;
  rates.of = count;
  for (std::size_t i = 0; i < count; ++i) {
    const auto found = known.find(changed[i]);
    if (found) ++rates.found;
  }
  return rates;
}

TEST_CASE("finds equal and almost equal texts, the earliest first") {
  const std::string text =
      "The quick brown fox jumps over the lazy dog while the cat sleeps near a warm red stove";
  NearDuplicates known;
  CHECK(!known.find(text));
  known.add("Something else that has a number of words but no fox at all, nor a stove.");
  known.add(text);
  known.add(text + "!");
  CHECK(known.find(text) == 1u);
  CHECK(known.find(text + " indeed") == 1u);
  CHECK(!known.find("The quick brown fox does other things on a day that begins without a dog"));
  CHECK(known.size() == 3);
}

TEST_CASE("the threshold counts exactly") {
  // 17 of 20 terms are common to both: a similarity of 0.85.
  std::string common;
  for (int i = 0; i < 17; ++i) common += std::string("w") + static_cast<char>('a' + i) + "x ";
  const std::string a = common + "onlyhere", b = common + "elsewhere twicehere";
  for (const double threshold : {0.849, 0.85, 0.851, 1.0}) {
    NearDuplicates known(threshold);
    known.add(a);
    if (known.find(b).has_value() != (threshold <= 0.85)) FAIL_CHECK(threshold);
    CHECK(known.find(a) == 0u);
  }
}

TEST_CASE("short texts are no duplicates") {
  NearDuplicates known;
  for (const std::string_view text : {"", "yes", "OK, thanks a lot!", "好的"}) {
    known.add(text);
    CHECK(!known.find(text));
  }
}

TEST_CASE("rejects thresholds that are none") {
  for (const double threshold : {0.0, -1.0, 1.01, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS(NearDuplicates(threshold), Error);
  }
}

TEST_CASE("finds Chinese near-duplicates, and none where a number or a negation changed") {
  const Rates edits = duplicates(1500, chinese_text, harmless_chinese_edit);
  INFO("found " << edits.found << " of " << edits.of);
  CHECK(edits.share() >= 0.95);
  CHECK(duplicates(1500, chinese_text, changed_number).found == 0);
  CHECK(duplicates(1500, chinese_text, changed_chinese_logic).found == 0);
}

TEST_CASE("finds English near-duplicates, and none where a number or a negation changed") {
  const Rates edits = duplicates(1500, english_text, harmless_english_edit);
  INFO("found " << edits.found << " of " << edits.of);
  CHECK(edits.share() >= 0.95);
  CHECK(duplicates(1500, english_text, changed_number).found == 0);
  CHECK(duplicates(1500, english_text, changed_english_logic).found == 0);
}

TEST_CASE("100,000 texts that are all alike take linear time") {
  const auto begin = std::chrono::steady_clock::now();
  NearDuplicates known;
  const std::string text = "Your order has been shipped and will arrive at your door within days: ";
  for (int i = 0; i < 100000; ++i) {
    // Half of them repeat an earlier one, the others have a number of their own.
    const std::string next = text + std::to_string(i % 50000);
    const auto found = known.find(next);
    if (found.has_value() != (i >= 50000)) FAIL("text " << i);
    known.add(next);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  CHECK(seconds.count() < 30);
}

TEST_CASE("any bytes repeat themselves") {
  std::mt19937 random(5);
  NearDuplicates known;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = mixed_text(random, below(random, 30));
    const Sketch sketch = make_sketch(text);
    known.add(sketch);
    const bool is_long = sketch.terms.size() >= NearDuplicates::kMinTerms;
    if (known.find(sketch).has_value() != is_long) FAIL(text);
  }
}

}  // namespace
}  // namespace incipit::compress
