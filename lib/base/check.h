// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_CHECK_H_
#define INCIPIT_BASE_CHECK_H_

#include <string>

#include "incipit/error.h"

namespace incipit::base {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);
[[noreturn]] void throw_error(ErrorCode code, const std::string& message);

}  // namespace incipit::base

/// A promise between modules: throws Error{kInternal} where it is broken, in every build. Not for
/// data from outside, which gets an Error that says what is wrong with it.
#define INCIPIT_CHECK(condition)      \
  ((condition) ? static_cast<void>(0) \
               : ::incipit::base::check_failed(#condition, __FILE__, __LINE__))

#endif  // INCIPIT_BASE_CHECK_H_
