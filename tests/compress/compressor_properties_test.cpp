// SPDX-License-Identifier: Apache-2.0
#include "compress/property_checks.h"
#include "support/catch.h"

namespace incipit::test {

TEST_CASE("one-shot compression keeps its promises") {
  CHECK(first_broken(check_one_shot, 0, 6000) == "");
}

TEST_CASE("a growing conversation keeps its promises") {
  CHECK(first_broken(check_growing, 0, 3000) == "");
}

TEST_CASE("a conversation that is too long fills the budget") {
  CHECK(first_broken(check_fill, 0, 1000) == "");
}

TEST_CASE("a long chat stays in its budget") { CHECK(check_long_chat(3000) == ""); }

}  // namespace incipit::test
