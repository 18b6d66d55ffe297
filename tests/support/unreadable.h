// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_UNREADABLE_H_
#define INCIPIT_TESTS_SUPPORT_UNREADABLE_H_

#include <string>

#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::test {

/// Checks that the call throws Error{kModelUnreadable} and that the message has `part` in it.
template <class Call>
void check_unreadable(const std::string& part, Call&& call) {
  std::string message;
  try {
    static_cast<void>(call());
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kModelUnreadable);
    message = error.what();
  }
  INFO("thrown: " << message);
  INFO("wanted: " << part);
  CHECK(!message.empty());
  CHECK(message.find(part) != std::string::npos);
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_UNREADABLE_H_
