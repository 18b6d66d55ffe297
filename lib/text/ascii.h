// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_ASCII_H_
#define INCIPIT_TEXT_ASCII_H_

#include <cstddef>
#include <string_view>

namespace incipit::text {

// Of one byte, whatever the locale; false for bytes beyond ASCII.
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr bool is_letter(char c) noexcept { return is_upper(c) || is_lower(c); }
constexpr bool is_word(char c) noexcept { return is_letter(c) || is_digit(c) || c == '_'; }
constexpr bool is_hex_digit(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }
constexpr bool is_space(char c) noexcept { return is_blank(c) || (c >= '\n' && c <= '\r'); }
constexpr bool is_ascii(char c) noexcept { return static_cast<unsigned char>(c) < 0x80; }
constexpr char to_lower(char c) noexcept {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr char to_upper(char c) noexcept {
  return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
}

/// `text` without what `is_dropped` says at its ends.
template <class Predicate>
constexpr std::string_view trimmed(std::string_view text, Predicate is_dropped) {
  while (!text.empty() && is_dropped(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_dropped(text.back())) text.remove_suffix(1);
  return text;
}

/// `text` without white space at its ends.
constexpr std::string_view trimmed(std::string_view text) noexcept {
  return trimmed(text, is_space);
}

/// The end of the line that begins at `begin`, its line feed included.
constexpr std::size_t line_end(std::string_view text, std::size_t begin) noexcept {
  const std::size_t feed = text.find('\n', begin);
  return feed == std::string_view::npos ? text.size() : feed + 1;
}

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_ASCII_H_
