// SPDX-License-Identifier: Apache-2.0
#include "incipit/error.h"

#include "support/catch.h"

namespace incipit {
namespace {

TEST_CASE("error codes have names") {
  CHECK(to_string(ErrorCode::kInvalidArgument) == "invalid_argument");
  CHECK(to_string(ErrorCode::kModelUnreadable) == "model_unreadable");
  CHECK(to_string(ErrorCode::kPromptTooLong) == "prompt_too_long");
  CHECK(to_string(ErrorCode::kBudgetInfeasible) == "budget_infeasible");
  CHECK(to_string(ErrorCode::kOutOfMemory) == "out_of_memory");
  CHECK(to_string(ErrorCode::kForked) == "forked");
  CHECK(to_string(ErrorCode::kDeviceLost) == "device_lost");
  CHECK(to_string(ErrorCode::kInternal) == "internal");
  CHECK(to_string(static_cast<ErrorCode>(99)) == "unknown");
}

TEST_CASE("an Error is a runtime_error with a code") {
  const Error error(ErrorCode::kPromptTooLong, "too long");
  const std::runtime_error& base = error;
  CHECK(base.what() == std::string("too long"));
  CHECK(error.code() == ErrorCode::kPromptTooLong);
}

}  // namespace
}  // namespace incipit
