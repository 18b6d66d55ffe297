// SPDX-License-Identifier: Apache-2.0
#include "retrieve/hash_table.h"

#include <memory>

#include "support/catch.h"

using incipit::retrieve::HashTable;

TEST_CASE("a table finds what was added, and nothing else") {
  HashTable<int> table;
  CHECK(table.find(5) == nullptr);
  table.find_or_add(5) = 7;
  CHECK(table.find_or_add(0) == 0);
  CHECK(table.find_or_add(5) == 7);
  REQUIRE(table.find(0) != nullptr);
  CHECK(table.find(6) == nullptr);
  CHECK(table.find(~std::uint64_t{0}) == nullptr);
  CHECK(table.size() == 2);
}

TEST_CASE("the key 0 is one like others") {
  HashTable<int> table;
  CHECK(table.find(0) == nullptr);
  table.find_or_add(0) = 4;
  CHECK(table.find_or_add(0) == 4);
  CHECK(table.size() == 1);
  table.prefetch(0);  // neither this nor what is missing does anything
  table.prefetch(~std::uint64_t{0});
  CHECK(table.size() == 1);
}

TEST_CASE("values stay as the table grows, keys that collide included") {
  // Of one part, spread over all parts, and of one place in each part.
  for (const std::uint64_t step :
       {std::uint64_t{1}, std::uint64_t{1} << 52, std::uint64_t{1} << 44}) {
    HashTable<std::unique_ptr<std::uint64_t>> table;
    bool good = true;
    constexpr std::uint64_t kKeys = 4000;
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      auto& value = table.find_or_add(i * step);
      good = good && value == nullptr;
      value = std::make_unique<std::uint64_t>(i);
    }
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const auto* value = table.find(i * step);
      good = good && value != nullptr && **value == i;
    }
    CHECK(good);
    CHECK(table.find(kKeys * step) == nullptr);
    CHECK(table.size() == kKeys);
  }
}
