// SPDX-License-Identifier: Apache-2.0
#include "kv/ghost_list.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>

#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::GhostList;

TEST_CASE("a ghost list without room knows nothing") {
  GhostList ghosts(0);
  ghosts.push(7);
  CHECK(ghosts.size() == 0);
  CHECK_FALSE(ghosts.take(7));
  CHECK_THROWS_AS(ghosts.drop_oldest(), Error);
}

TEST_CASE("the oldest ghost makes room for the newest") {
  GhostList ghosts(2);
  for (const std::uint64_t identity : {1u, 2u, 3u}) ghosts.push(identity);
  CHECK(ghosts.size() == 2);
  CHECK_FALSE(ghosts.take(1));
  CHECK(ghosts.take(3));
  CHECK_FALSE(ghosts.take(3));
  ghosts.push(4);
  ghosts.drop_oldest();
  CHECK_FALSE(ghosts.take(2));
  CHECK(ghosts.take(4));
}

TEST_CASE("identities that are equal are so many ghosts") {
  GhostList ghosts(3);
  ghosts.push(5);
  ghosts.push(5);
  CHECK(ghosts.take(5));
  CHECK(ghosts.take(5));
  CHECK_FALSE(ghosts.take(5));
}

TEST_CASE("a ghost list agrees with a deque") {
  constexpr std::size_t kCapacity = 17;
  std::mt19937_64 random(2);
  GhostList ghosts(kCapacity);
  std::deque<std::uint64_t> expected;  // of different identities
  for (int i = 0; i < 20'000; ++i) {
    // Half of them collide in what the hash table sees of them.
    const std::uint64_t identity = (random() % 20) + ((random() % 2) << 40);
    const auto known = std::find(expected.begin(), expected.end(), identity);
    if (random() % 50 == 0) {
      ghosts.clear();
      expected.clear();
    } else if (known != expected.end() || random() % 4 == 0) {
      REQUIRE(ghosts.take(identity) == (known != expected.end()));
      if (known != expected.end()) expected.erase(known);
    } else {
      ghosts.push(identity);
      if (expected.size() == kCapacity) expected.pop_front();
      expected.push_back(identity);
    }
    REQUIRE(ghosts.size() == expected.size());
  }
}

}  // namespace
}  // namespace incipit::test
