// SPDX-License-Identifier: Apache-2.0
// A million conversations, in pieces of some minutes, and one of 100,000 turns.
#include "compress/property_checks.h"
#include "support/catch.h"

namespace incipit::test {

TEMPLATE_TEST_CASE_SIG("a tenth of a million conversations", "", ((std::uint64_t piece), piece), 0,
                       1, 2, 3, 4, 5, 6, 7, 8, 9) {
  constexpr std::uint64_t kFirst = 1'000'000 + piece * 100'000;  // seeds that CI does not use
  CHECK(first_broken(check_one_shot, kFirst, 60'000) == "");
  CHECK(first_broken(check_growing, kFirst, 30'000) == "");
  CHECK(first_broken(check_fill, kFirst, 10'000) == "");
}

TEST_CASE("a chat of a hundred thousand turns stays in its budget") {
  CHECK(check_long_chat(100'000) == "");
}

}  // namespace incipit::test
