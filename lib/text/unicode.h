// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_UNICODE_H_
#define INCIPIT_TEXT_UNICODE_H_

#include <cstddef>
#include <string_view>

namespace incipit::text {

/// Unicode's White_Space.
constexpr bool is_white_space(char32_t code) noexcept {
  return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

/// What \w stands for in regular expressions (UTS 18, annex C): letters, marks, decimal digits,
/// connectors and joiners.
bool is_word_character(char32_t code) noexcept;

/// A mark: Mn, Mc or Me.
bool is_mark(char32_t code) noexcept;

/// Length in bytes of the white space at an end of `text`, at least where it is valid UTF-8.
std::size_t white_space_at_front(std::string_view text) noexcept;
std::size_t white_space_at_back(std::string_view text) noexcept;

/// Length of the last character of `text`, which must not be empty; 1 where it is invalid.
std::size_t last_character(std::string_view text) noexcept;

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_UNICODE_H_
