// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_GUARD_H_
#define INCIPIT_COMPRESS_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace incipit::compress {

/// Why a change of this part of a text may change what the text says.
enum class CriticalKind : std::uint8_t {
  kNumber,      // 7, 1,234.56, 0x7f, 三十, full-width digits, names of days and months
  kLogic,       // negations, quantifiers, modals, comparatives and words of direction
  kIdentifier,  // snake_case, camelCase, a::b, std.io, --no-cache, SIGILL, @user, AB-12
  kPath,        // /etc/x, C:\x, src/a.cpp, URLs, mail addresses
  kName,        // a capitalised word that does not begin a sentence
};

/// Calls `visit` for each critical token of a text, in order. `token` is normalised (lower case
/// for logic and days, ASCII digits without digit grouping) and only valid during the call.
/// O(length).
void for_each_critical(
    std::string_view text,
    base::FunctionRef<void(CriticalKind kind, std::string_view token, std::size_t position)> visit);

/// All critical tokens of a text with their kinds, in their order: texts with different ones differ
/// in something that matters, however alike they look.
std::string critical_tokens(std::string_view text);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_GUARD_H_
