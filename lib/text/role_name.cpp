// SPDX-License-Identifier: Apache-2.0
#include "text/role_name.h"

#include "base/check.h"

namespace incipit::text {

std::string_view role_name(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      return "tool";
  }
  base::throw_error(ErrorCode::kInvalidArgument, "a message has an unknown role");
}

}  // namespace incipit::text
