// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ERROR_H_
#define INCIPIT_ERROR_H_

#include <stdexcept>
#include <string>
#include <string_view>

#include "incipit/export.h"

namespace incipit::inline v0 {

/// What a caller can do about a failure, not where it happened.
enum class ErrorCode {
  kInvalidArgument,   ///< The call or its options are wrong; fix the caller.
  kModelUnreadable,   ///< The model is missing, damaged or not supported.
  kPromptTooLong,     ///< The prompt cannot fit the context; shorten it.
  kBudgetInfeasible,  ///< What must stay in a prompt exceeds its token budget; raise it.
  kOutOfMemory,       ///< The block pool or the host cannot hold the request.
  kForked,            ///< Used in a child of fork(); make the object there.
  kDeviceLost,        ///< The GPU failed; make a new Engine, if need be in a new process.
  kInternal,          ///< A bug in incipit; please report it.
};

/// The enumerator's name without its `k`, in lower case with underscores: "prompt_too_long".
INCIPIT_API std::string_view to_string(ErrorCode code) noexcept;

/// The only exception type that incipit throws on purpose. `what()` says what is wrong and what to
/// do about it. (std::bad_alloc and what a caller's callback throws pass through.)
class INCIPIT_API Error : public std::runtime_error {
 public:
  /// `message` becomes what().
  Error(ErrorCode code, const std::string& message);
  ~Error() override;

  /// What the caller can do about it.
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace incipit::inline v0

#endif  // INCIPIT_ERROR_H_
