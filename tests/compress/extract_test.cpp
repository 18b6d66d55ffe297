// SPDX-License-Identifier: Apache-2.0
#include "compress/extract.h"

#include "support/catch.h"

using namespace incipit::compress;

namespace {

using Numbers = std::vector<std::size_t>;

}  // namespace

TEST_CASE("an extract takes the most salient pieces that fit, in their order") {
  const std::vector<Candidate> pieces{{10, 5}, {10, 9}, {30, 8}, {10, 7}, {5, 1}};
  CHECK(extract(pieces, 20) == Numbers{1, 3});
  CHECK(extract(pieces, 40) == Numbers{1, 2});
  CHECK(extract(pieces, 25) == Numbers{1, 3, 4});
  CHECK(extract(pieces, 65) == Numbers{0, 1, 2, 3, 4});
  CHECK(extract(pieces, 0).empty());
  CHECK(extract({}, 10).empty());
}

TEST_CASE("an extract keeps what must be kept, before and beyond all else") {
  const std::vector<Candidate> pieces{{10, 9}, {10, 1, true}, {10, 8}};
  CHECK(extract(pieces, 20) == Numbers{0, 1});
  CHECK(extract(pieces, 10) == Numbers{1});
  CHECK(extract(pieces, 5) == Numbers{1});
}

TEST_CASE("one order serves any room") {
  const std::vector<Candidate> pieces{{10, 5}, {10, 9}, {30, 8}, {10, 7, true}, {5, 1}};
  const Numbers order = order_of(pieces);
  CHECK(order == Numbers{3, 1, 2, 0, 4});
  for (std::size_t room = 0; room < 80; ++room) {
    CHECK(extract(pieces, order, room) == extract(pieces, room));
  }
}

TEST_CASE("an extract prefers the newer of equals") {
  const std::vector<Candidate> pieces{{10, 3}, {10, 3}, {10, 3}};
  CHECK(extract(pieces, 20) == Numbers{1, 2});
}
