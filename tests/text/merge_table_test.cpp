// SPDX-License-Identifier: Apache-2.0
#include "text/merge_table.h"

#include <map>
#include <random>

#include "support/catch.h"

namespace incipit::text {
namespace {

TEST_CASE("a merge table finds what was inserted and nothing else") {
  MergeTable table(1000, 5);
  std::mt19937 random(3);
  std::map<std::pair<TokenId, TokenId>, std::uint32_t> expected;
  std::uniform_int_distribution<TokenId> any(0, 60);
  for (std::uint32_t rank = 0; rank < 1000; ++rank) {
    const std::pair pair(any(random), any(random));
    table.insert(pair.first, pair.second, {rank, static_cast<TokenId>(rank)});
    expected[pair] = rank;
  }
  for (TokenId left = 0; left <= 61; ++left) {
    for (TokenId right = 0; right <= 61; ++right) {
      const auto found = expected.find({left, right});
      const std::uint32_t rank = found == expected.end() ? MergeTable::kNever : found->second;
      if (table.find(left, right).rank != rank) FAIL_CHECK(left << " " << right);
    }
  }
  CHECK(MergeTable(0, 0).find(0, 0).rank == MergeTable::kNever);
}

}  // namespace
}  // namespace incipit::text
