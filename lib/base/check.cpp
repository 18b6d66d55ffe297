// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

namespace incipit::base {

void check_failed(const char* condition, const char* file, int line) {
  throw Error(ErrorCode::kInternal, std::string(file) + ":" + std::to_string(line) + ": `" +
                                        condition +
                                        "` does not hold; this is a bug in incipit, please report");
}

void throw_error(ErrorCode code, const std::string& message) { throw Error(code, message); }

}  // namespace incipit::base
