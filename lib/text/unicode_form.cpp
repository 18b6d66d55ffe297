// SPDX-License-Identifier: Apache-2.0
#include "text/unicode_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "text/ascii.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

// The longest decomposition of one character has 18 (U+FDFA; Unicode stability policy).
struct Decomposition {
  std::array<utf8proc_int32_t, 32> codes;
  std::size_t count = 0;
};

utf8proc_option_t options_of(UnicodeForm form) {
  int options = UTF8PROC_STABLE;
  const bool composed = form == UnicodeForm::kC || form == UnicodeForm::kKC;
  const bool compatible = form == UnicodeForm::kKC || form == UnicodeForm::kKD;
  options |= composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (compatible) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

utf8proc_int32_t as_code(char32_t code) { return static_cast<utf8proc_int32_t>(code); }

/// The full decomposition of one character.
Decomposition decompose(char32_t code, utf8proc_option_t options) {
  Decomposition parts;
  int last_class = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      as_code(code), parts.codes.data(), static_cast<utf8proc_ssize_t>(parts.codes.size()), options,
      &last_class);
  INCIPIT_CHECK(count > 0 && static_cast<std::size_t>(count) <= parts.codes.size());
  parts.count = static_cast<std::size_t>(count);
  return parts;
}

/// Canonical ordering; utf8proc's own is quadratic in the number of marks.
void reorder(std::u32string& codes) {
  const auto mark_class = [](char32_t code) {
    return utf8proc_get_property(as_code(code))->combining_class;
  };
  const auto is_starter = [&](char32_t code) { return mark_class(code) == 0; };
  for (auto begin = codes.begin(); begin != codes.end();) {
    begin = std::find_if_not(begin, codes.end(), is_starter);
    const auto end = std::find_if(begin, codes.end(), is_starter);
    std::stable_sort(begin, end, [&](auto a, auto b) { return mark_class(a) < mark_class(b); });
    begin = end;
  }
}

/// A stretch at the front whose form nothing behind it changes.
std::size_t stretch(std::string_view text, UnicodeForm form) {
  constexpr std::size_t kMany = std::size_t{1} << 16;
  for (std::size_t end = kMany; end < text.size(); ++end) {
    const Utf8Unit unit = first_unit(text.substr(end));
    const bool begins_character = unit.kind == Utf8Unit::Kind::kCharacter;
    if (begins_character && is_closed_before(unit.code, form)) return end;
  }
  return text.size();
}

}  // namespace

bool is_closed_before(char32_t code, UnicodeForm form) {
  constexpr char32_t kFirstMark = 0x300;
  constexpr char32_t kFirstJamoVowel = 0x1160, kLastJamoFinal = 0x11FF;
  constexpr char32_t kFirstBeyondPlane0 = 0x10000;
  if (code < kFirstMark) return true;
  // What composes with a character before it is a mark or a jamo; beyond plane 0, letters do, too
  // (Kirat Rai of Unicode 16).
  if (code >= kFirstBeyondPlane0) return false;
  const utf8proc_int32_t first = decompose(code, options_of(form)).codes[0];
  if (first >= as_code(kFirstJamoVowel) && first <= as_code(kLastJamoFinal)) return false;
  switch (utf8proc_category(first)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return false;
    default:
      return true;
  }
}

void append_form(std::string& out, std::string_view text, UnicodeForm form, std::u32string& codes) {
  const utf8proc_option_t options = options_of(form);
  codes.clear();
  while (!text.empty()) {
    const Utf8Unit unit = first_unit(text);
    const Decomposition parts = decompose(unit.code, options);
    for (std::size_t i = 0; i < parts.count; ++i) {
      codes.push_back(static_cast<char32_t>(parts.codes[i]));
    }
    text.remove_prefix(unit.bytes);
  }
  reorder(codes);
  if ((options & UTF8PROC_COMPOSE) != 0) {
    static_assert(sizeof(char32_t) == sizeof(utf8proc_int32_t));
    const utf8proc_ssize_t count =
        utf8proc_normalize_utf32(reinterpret_cast<utf8proc_int32_t*>(codes.data()),
                                 static_cast<utf8proc_ssize_t>(codes.size()), options);
    INCIPIT_CHECK(count >= 0);
    codes.resize(static_cast<std::size_t>(count));
  }
  for (const char32_t code : codes) append_utf8(out, code);
}

std::string in_form(std::string_view text, UnicodeForm form, std::size_t max_bytes) {
  std::string out;
  std::u32string codes;
  while (!text.empty() && out.size() <= max_bytes) {
    const std::string_view part = text.substr(0, stretch(text, form));
    if (std::all_of(part.begin(), part.end(), is_ascii)) {
      out += part;
    } else {
      append_form(out, part, form, codes);
    }
    text.remove_prefix(part.size());
  }
  return out;
}

}  // namespace incipit::text
