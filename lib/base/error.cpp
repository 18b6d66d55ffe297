// SPDX-License-Identifier: Apache-2.0
#include "incipit/error.h"

namespace incipit::inline v0 {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kModelUnreadable:
      return "model_unreadable";
    case ErrorCode::kPromptTooLong:
      return "prompt_too_long";
    case ErrorCode::kBudgetInfeasible:
      return "budget_infeasible";
    case ErrorCode::kOutOfMemory:
      return "out_of_memory";
    case ErrorCode::kForked:
      return "forked";
    case ErrorCode::kDeviceLost:
      return "device_lost";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

Error::Error(ErrorCode code, const std::string& message)
    : std::runtime_error(message), code_(code) {}

// Here, so that the type's vtable and type info have one home that the shared library exports.
Error::~Error() = default;

}  // namespace incipit::inline v0
