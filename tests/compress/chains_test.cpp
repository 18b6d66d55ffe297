// SPDX-License-Identifier: Apache-2.0
#include "compress/chains.h"

#include <string_view>
#include <vector>

#include "support/catch.h"

namespace incipit::compress {
namespace {

constexpr auto kWords = std::to_array<std::string_view>({"a", "bb", "cc", "d", "eeeee"});
constexpr auto kBySize = chains_of<4>(kWords, [](std::string_view word) { return word.size(); });

std::vector<std::size_t> found(std::size_t hash) {
  std::vector<std::size_t> entries;
  kBySize.for_each(hash, [&](std::size_t i) { entries.push_back(i); });
  return entries;
}

TEST_CASE("chains name all entries that may have a hash, from the last one to the first") {
  CHECK(found(2) == std::vector<std::size_t>{2, 1});
  CHECK(found(1) == std::vector<std::size_t>{4, 3, 0});  // 5 is 1 of 4 slots
  CHECK(found(0).empty());
  CHECK(found(6) == found(2));
  CHECK(kBySize.has(2));
  CHECK(!kBySize.has(3));
}

}  // namespace
}  // namespace incipit::compress
