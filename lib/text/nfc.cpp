// SPDX-License-Identifier: Apache-2.0
#include "text/nfc.h"

#include "text/ascii.h"
#include "text/unicode_form.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

/// Length of the first character and of what may combine with it.
std::size_t first_segment(std::string_view text) {
  std::size_t size = first_unit(text).bytes;
  while (size < text.size()) {
    const Utf8Unit unit = first_unit(text.substr(size));
    if (is_closed_before(unit.code, UnicodeForm::kC)) break;
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
    if (!begins_character) continue;
    if (is_closed_before(first_unit(source.substr(end)).code, UnicodeForm::kC)) return end;
  }
  return 0;
}

}  // namespace incipit::text
