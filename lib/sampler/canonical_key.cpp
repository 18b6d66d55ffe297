// SPDX-License-Identifier: Apache-2.0
#include <utf8proc.h>

#include <optional>
#include <string>
#include <string_view>

#include "incipit/self_consistency.h"
#include "sampler/invisible.h"
#include "sampler/letter.h"
#include "sampler/number.h"
#include "text/nfc.h"
#include "text/utf8.h"

namespace incipit::inline v0::keys {
namespace {

std::string nfc(const std::string& text) { return std::string(text::NfcText(text).text()); }

/// Valid UTF-8; a character that the end cuts counts as damage, too.
std::string valid(std::string_view source) {
  std::string out;
  if (text::append_replaced(out, source) < source.size()) out += text::kReplacementCharacter;
  return out;
}

bool is_blank(char32_t code) {
  if (code == 0x200B || code == 0xFEFF || code == 0x85) return true;  // zero width, next line
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool is_dot(char32_t code) {
  return code == '.' || code == 0x2026 || code == 0x3002 || code == 0xFF0E || code == 0xFF61;
}

/// Lower case, each stretch of white space one space, none at the ends, no dots at the end, nothing
/// invisible.
std::string folded(std::string_view source) {
  std::string out, held;  // dots and a space that count only where something follows
  bool space = false;
  while (!source.empty()) {
    const text::Utf8Unit unit = text::first_unit(source);
    source.remove_prefix(unit.bytes);
    if (is_blank(unit.code)) {
      space = true;
      continue;
    }
    if (sampler::is_invisible(unit.code)) continue;
    if (space && !(out.empty() && held.empty())) held += ' ';
    space = false;
    if (is_dot(unit.code)) {
      text::append_utf8(held, unit.code);
      continue;
    }
    out += held;
    held.clear();
    text::append_utf8(
        out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(unit.code))));
  }
  return out;
}

std::optional<std::string> text_key(std::string_view answer) {
  // Once more at the end, since lower case may leave the form C.
  std::string key = nfc(folded(nfc(valid(answer))));
  if (key.empty()) return std::nullopt;
  return key;
}

}  // namespace

KeyFunction number() { return sampler::fraction_of; }

KeyFunction letter() { return sampler::single_letter; }

KeyFunction text() { return text_key; }

KeyFunction number_or_text() {
  return [](std::string_view answer) {
    auto key = sampler::fraction_of(answer);
    return key ? key : text_key(answer);
  };
}

}  // namespace incipit::inline v0::keys
