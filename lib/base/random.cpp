// SPDX-License-Identifier: Apache-2.0
#include <sys/random.h>

#include <cerrno>

#include "base/check.h"
#include "base/crypto.h"

namespace incipit::base {

void fill_random(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = getrandom(out.data(), out.size(), 0);
    if (got > 0) {
      out = out.subspan(static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      throw_error(ErrorCode::kInternal, "the system gives no random bytes");
    }
  }
}

}  // namespace incipit::base
