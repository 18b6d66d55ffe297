// SPDX-License-Identifier: Apache-2.0
// A million conversations, and one of 100,000 turns.
#include "compress/property_checks.h"
#include "support/catch.h"

namespace incipit::test {

TEST_CASE("a million conversations keep their promises") {
  CHECK(first_broken(check_one_shot, 1'000'000, 600'000) == "");
  CHECK(first_broken(check_growing, 1'000'000, 300'000) == "");
  CHECK(first_broken(check_fill, 1'000'000, 100'000) == "");
}

TEST_CASE("a chat of 100,000 turns stays in its budget") { CHECK(check_long_chat(100'000) == ""); }

}  // namespace incipit::test
