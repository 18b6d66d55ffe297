// SPDX-License-Identifier: Apache-2.0
#include "text/chat/python_text.h"

#include "text/utf8.h"

namespace incipit::text {
namespace {

using Json = nlohmann::ordered_json;

// What str.isspace() says of one character.
bool is_python_space(char32_t code) noexcept {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 ||
         code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

/// Bytes of the white space that ends `text`; 0: it ends with something else.
std::size_t last_space_bytes(std::string_view text) noexcept {
  std::size_t begin = text.size();
  while (begin > 0 && text.size() - begin < 3) {
    --begin;
    if ((static_cast<unsigned char>(text[begin]) & 0xC0) != 0x80) break;
  }
  if (begin == text.size()) return 0;
  const Utf8Unit unit = first_unit(text.substr(begin));
  const bool is_last = unit.kind == Utf8Unit::Kind::kCharacter && begin + unit.bytes == text.size();
  return is_last && is_python_space(unit.code) ? unit.bytes : 0;
}

std::string dump(const Json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

// Recursive: callers bound the depth.
void append_spaced(const Json& value, std::string& out) {
  if (!value.is_structured()) {
    out += dump(value, -1);
    return;
  }
  out += value.is_object() ? '{' : '[';
  bool is_first = true;
  for (const auto& member : value.items()) {
    if (!is_first) out += ", ";
    is_first = false;
    if (value.is_object()) out += dump(Json(member.key()), -1) + ": ";
    append_spaced(member.value(), out);
  }
  out += value.is_object() ? '}' : ']';
}

}  // namespace

std::string_view python_stripped(std::string_view text) noexcept {
  while (!text.empty()) {
    const Utf8Unit unit = first_unit(text);
    if (unit.kind != Utf8Unit::Kind::kCharacter || !is_python_space(unit.code)) break;
    text.remove_prefix(unit.bytes);
  }
  while (const std::size_t bytes = last_space_bytes(text)) text.remove_suffix(bytes);
  return text;
}

std::string python_json(const Json& value) {
  std::string out;
  append_spaced(value, out);
  return out;
}

std::string indented_json(const Json& value) { return dump(value, 4); }

}  // namespace incipit::text
