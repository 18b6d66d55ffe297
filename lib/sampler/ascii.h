// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_SAMPLER_ASCII_H_
#define INCIPIT_SAMPLER_ASCII_H_

#include <string_view>

// ASCII alone, whatever the locale.

namespace incipit::sampler {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
constexpr char to_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

/// `text` without what `is_dropped` says at its ends.
template <class Predicate>
constexpr std::string_view trimmed(std::string_view text, Predicate is_dropped) {
  while (!text.empty() && is_dropped(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_dropped(text.back())) text.remove_suffix(1);
  return text;
}

/// `text` without white space at its ends.
constexpr std::string_view trimmed(std::string_view text) { return trimmed(text, is_space); }

}  // namespace incipit::sampler

#endif  // INCIPIT_SAMPLER_ASCII_H_
