// SPDX-License-Identifier: Apache-2.0
#include "text/lower_case.h"

#include <utf8proc.h>

#include "text/ascii.h"
#include "text/utf8.h"

namespace incipit::text {

std::string lower_case(std::string_view text) {
  // The one character whose lower case is two (SpecialCasing.txt).
  constexpr char32_t kCapitalIWithDot = 0x130;
  constexpr std::string_view kSmallIWithDot = "i\xCC\x87";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Unit unit = first_unit(text);
    if (unit.code < 0x80) {
      out += to_lower(text.front());
    } else if (unit.code == kCapitalIWithDot) {
      out += kSmallIWithDot;
    } else {
      append_utf8(
          out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(unit.code))));
    }
    text.remove_prefix(unit.bytes);
  }
  return out;
}

}  // namespace incipit::text
