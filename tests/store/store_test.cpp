// SPDX-License-Identifier: Apache-2.0
#include "incipit/store.h"

#include "support/catch.h"

using namespace incipit;

TEST_CASE("each status has a name", "[store]") {
  CHECK(to_string(StoreStatus::kOk) == "ok");
  CHECK(to_string(StoreStatus::kMiss) == "miss");
  CHECK(to_string(StoreStatus::kTooLarge) == "too_large");
  CHECK(to_string(StoreStatus::kUnavailable) == "unavailable");
}
