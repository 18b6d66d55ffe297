// SPDX-License-Identifier: Apache-2.0
#include "text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "text/ascii.h"
#include "text/unicode_form.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

// The longest canonical decomposition of one character has 4 (Unicode stability policy).
using Decomposition = std::array<utf8proc_int32_t, 8>;

/// Fills in the full canonical decomposition of one character and returns its length.
std::size_t decompose(char32_t code, Decomposition& out) {
  int last_class = 0;
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), out.data(),
                              static_cast<utf8proc_ssize_t>(out.size()), kCompose, &last_class);
  INCIPIT_CHECK(count > 0 && static_cast<std::size_t>(count) <= out.size());
  return static_cast<std::size_t>(count);
}

/// True where the form C of a text is that of what stands before this character and that of what
/// begins with it. (False for some where it would be true, too.)
bool is_closed_before(char32_t code) {
  constexpr char32_t kFirstMark = 0x300;
  constexpr char32_t kFirstJamoVowel = 0x1160, kLastJamoFinal = 0x11FF;
  constexpr char32_t kFirstBeyondPlane0 = 0x10000;
  if (code < kFirstMark) return true;
  // What composes with a character before it is a mark or a jamo; beyond plane 0, letters do, too
  // (Kirat Rai of Unicode 16).
  if (code >= kFirstBeyondPlane0) return false;
  Decomposition parts;
  decompose(code, parts);
  if (parts[0] >= utf8proc_int32_t{kFirstJamoVowel} &&
      parts[0] <= utf8proc_int32_t{kLastJamoFinal}) {
    return false;
  }
  switch (utf8proc_category(parts[0])) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return false;
    default:
      return true;
  }
}

/// Length of the first character and of what may combine with it.
std::size_t first_segment(std::string_view text) {
  std::size_t size = first_unit(text).bytes;
  while (size < text.size()) {
    const Utf8Unit unit = first_unit(text.substr(size));
    if (is_closed_before(unit.code)) break;
    size += unit.bytes;
  }
  return size;
}

}  // namespace

NfcText::NfcText(std::string_view source) : source_(source) {
  std::string form;
  std::u32string codes;
  std::size_t copied = 0;  // of the source
  for (std::size_t begin = 0; begin < source.size();) {
    const std::size_t size = first_segment(source.substr(begin));
    const std::string_view segment = source.substr(begin, size);
    if (size > 1 || !is_ascii(segment[0])) {
      form.clear();
      append_form(form, segment, UnicodeForm::kC, codes);
      if (form != segment) {
        text_.append(source.substr(copied, begin - copied));
        changes_.push_back({begin, begin + size, text_.size(), text_.size() + form.size()});
        text_.append(form);
        copied = begin + size;
      }
    }
    begin += size;
  }
  if (!changes_.empty()) text_.append(source.substr(copied));
}

std::optional<std::size_t> NfcText::source_position(std::size_t position) {
  while (passed_ < changes_.size() && changes_[passed_].end <= position) ++passed_;
  if (passed_ < changes_.size() && changes_[passed_].begin < position) return std::nullopt;
  const std::size_t behind = passed_ == 0 ? 0 : changes_[passed_ - 1].end;
  const std::size_t source_behind = passed_ == 0 ? 0 : changes_[passed_ - 1].source_end;
  // Between two changes a text is in form C, and so is each part of it.
  return source_behind + (position - behind);
}

std::size_t NfcText::closed_front(std::string_view source) {
  for (std::size_t end = source.size(); end > 0;) {
    --end;
    const bool begins_character = (static_cast<unsigned char>(source[end]) & 0xC0) != 0x80;
    if (begins_character && is_closed_before(first_unit(source.substr(end)).code)) return end;
  }
  return 0;
}

}  // namespace incipit::text
