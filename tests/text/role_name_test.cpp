// SPDX-License-Identifier: Apache-2.0
#include "text/role_name.h"

#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::text {

TEST_CASE("roles have the names of chat templates, and other values none") {
  CHECK(role_name(Role::kSystem) == "system");
  CHECK(role_name(Role::kUser) == "user");
  CHECK(role_name(Role::kAssistant) == "assistant");
  CHECK(role_name(Role::kTool) == "tool");
  try {
    static_cast<void>(role_name(static_cast<Role>(99)));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
  }
}

}  // namespace incipit::text
