// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MESSAGE_H_
#define INCIPIT_MESSAGE_H_

#include <string>

namespace incipit::inline v0 {

/// Who speaks.
enum class Role { kSystem, kUser, kAssistant };

/// One message of a conversation. Whatever the text contains, it never yields special tokens.
struct Message {
  Role role = Role::kUser;  ///< Who says it.
  std::string text = {};    ///< UTF-8; other bytes are kept as they are.
};

}  // namespace incipit::inline v0

#endif  // INCIPIT_MESSAGE_H_
