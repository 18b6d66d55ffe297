// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_ROLE_NAME_H_
#define INCIPIT_TEXT_ROLE_NAME_H_

#include <string_view>

#include "incipit/message.h"

namespace incipit::text {

/// What chat templates and the JSON of chats call a role. Throws Error{kInvalidArgument} for a
/// value that is none.
std::string_view role_name(Role role);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_ROLE_NAME_H_
