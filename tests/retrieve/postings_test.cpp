// SPDX-License-Identifier: Apache-2.0
#include "retrieve/postings.h"

#include <array>
#include <vector>

#include "support/catch.h"

using incipit::retrieve::Posting;
using incipit::retrieve::Postings;

namespace {

/// Of the documents `step`, 2 `step`... up to `count` of them, document i with a count of i.
void fill(Postings& postings, std::size_t list, std::uint32_t step, std::uint32_t count) {
  for (std::uint32_t i = 1; i <= count; ++i) {
    for (std::uint32_t times = 0; times < i; ++times) {
      const bool is_new = postings.count(list, i * step);
      if (is_new != (times == 0)) FAIL(i);
    }
  }
}

std::vector<std::uint32_t> last(const Postings& postings, std::size_t list, std::size_t most) {
  std::vector<std::uint32_t> documents;
  postings.for_last(list, most, [&](const Posting& one) { documents.push_back(one.document); });
  return documents;
}

}  // namespace

TEST_CASE("lists of postings keep order and counts as they grow side by side") {
  Postings postings;
  constexpr std::array<std::uint32_t, 4> kCounts{0, 1, 16, 1200};
  for (std::size_t i = 0; i < kCounts.size(); ++i) postings.add_list({0, 7});
  CHECK(postings.lists() == kCounts.size());
  for (std::size_t i = 0; i < kCounts.size(); ++i) {
    fill(postings, i, static_cast<std::uint32_t>(i + 1), kCounts[i]);
  }
  for (std::size_t list = 0; list < kCounts.size(); ++list) {
    std::uint32_t expected = kCounts[list];
    bool good = true;
    std::size_t seen = 0;
    postings.for_last(list, SIZE_MAX, [&](const Posting& one) {
      const std::uint32_t count = expected == 0 ? 7 : expected;
      good = good && one.document == expected * (list + 1) && one.count == count;
      --expected;
      ++seen;
    });
    CHECK(good);
    CHECK(seen == kCounts[list] + 1);
  }
}

TEST_CASE("the last postings of a list are all, or as many as asked for") {
  Postings postings;
  postings.add_list({1, 1});
  CHECK(last(postings, 0, 0).empty());
  CHECK(last(postings, 0, 5) == std::vector<std::uint32_t>{1});
  for (std::uint32_t document = 2; document <= 5; ++document) postings.count(0, document);
  // Blocks hold 1, 3, 7...
  CHECK(last(postings, 0, 1) == std::vector<std::uint32_t>{5});
  CHECK(last(postings, 0, 2) == std::vector<std::uint32_t>{5, 4});
  CHECK(last(postings, 0, 4) == std::vector<std::uint32_t>{5, 4, 3, 2});
  CHECK(last(postings, 0, 5) == std::vector<std::uint32_t>{5, 4, 3, 2, 1});
}
