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
using Decomposition = std::array<utf8proc_int32_t, 32>;

utf8proc_option_t options_of(UnicodeForm form) {
  int options = UTF8PROC_STABLE;
  const bool composed = form == UnicodeForm::kC || form == UnicodeForm::kKC;
  const bool compatible = form == UnicodeForm::kKC || form == UnicodeForm::kKD;
  options |= composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (compatible) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

utf8proc_int32_t as_code(char32_t code) { return static_cast<utf8proc_int32_t>(code); }

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

/// A stretch that ends before an ASCII character, or with the text. No form joins one of those to
/// what stands before it.
std::size_t stretch(std::string_view text) {
  constexpr std::size_t kMany = std::size_t{1} << 16;
  std::size_t end = std::min(kMany, text.size());
  while (end < text.size() && !is_ascii(text[end])) ++end;
  return end;
}

}  // namespace

void append_form(std::string& out, std::string_view text, UnicodeForm form, std::u32string& codes) {
  const utf8proc_option_t options = options_of(form);
  codes.clear();
  while (!text.empty()) {
    const Utf8Unit unit = first_unit(text);
    Decomposition parts;
    int last_class = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(as_code(unit.code), parts.data(),
                                static_cast<utf8proc_ssize_t>(parts.size()), options, &last_class);
    INCIPIT_CHECK(count > 0 && static_cast<std::size_t>(count) <= parts.size());
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      codes.push_back(static_cast<char32_t>(parts[i]));
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

std::string in_form(std::string_view text, UnicodeForm form) {
  std::string out;
  std::u32string codes;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, stretch(text));
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
