// SPDX-License-Identifier: Apache-2.0
#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/utf8.h"

namespace incipit::text {
namespace {

bool begins_with_white_space(std::string_view text) noexcept {
  const Utf8Unit first = first_unit(text);
  return first.kind == Utf8Unit::Kind::kCharacter && is_white_space(first.code);
}

/// Symbols that count as letters (Other_Alphabetic): letters in circles and squares.
constexpr bool is_enclosed_letter(char32_t code) noexcept {
  return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
         (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

}  // namespace

bool is_word_character(char32_t code) noexcept {
  constexpr char32_t kNonJoiner = 0x200C, kJoiner = 0x200D;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return code == kNonJoiner || code == kJoiner || is_enclosed_letter(code);
  }
}

bool is_mark(char32_t code) noexcept {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
         category == UTF8PROC_CATEGORY_ME;
}

std::size_t last_character(std::string_view text) noexcept {
  const std::size_t most = std::min<std::size_t>(4, text.size());
  for (std::size_t size = 1; size <= most; ++size) {
    const Utf8Unit unit = first_unit(text.substr(text.size() - size));
    if (unit.kind == Utf8Unit::Kind::kCharacter) return unit.bytes == size ? size : 1;
  }
  return 1;
}

std::size_t white_space_at_front(std::string_view text) noexcept {
  std::size_t size = 0;
  while (size < text.size() && begins_with_white_space(text.substr(size))) {
    size += first_unit(text.substr(size)).bytes;
  }
  return size;
}

std::size_t white_space_at_back(std::string_view text) noexcept {
  std::size_t size = 0;
  while (size < text.size()) {
    const std::string_view before = text.substr(0, text.size() - size);
    const std::size_t last = last_character(before);
    if (!begins_with_white_space(before.substr(before.size() - last))) break;
    size += last;
  }
  return size;
}

}  // namespace incipit::text
