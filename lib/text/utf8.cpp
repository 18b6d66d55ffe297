// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.h"

#include <cstring>

namespace incipit::text {
namespace {

/// What a lead byte says about the bytes behind it (Unicode 15, table 3-7).
struct Lead {
  unsigned length = 0;                    // of the character; 0: no lead byte
  unsigned char low = 0x80, high = 0xBF;  // bounds of the second byte
};

constexpr Lead lead_of(unsigned char byte) noexcept {
  if (byte >= 0xC2 && byte <= 0xDF) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};  // no surrogates
  if (byte >= 0xE1 && byte <= 0xEF) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  if (byte >= 0xF1 && byte <= 0xF3) return {4};
  return {};
}

constexpr std::uint64_t kHighBits = 0x8080808080808080;

std::size_t ascii_front(std::string_view bytes) noexcept {
  std::size_t size = 0;
  for (std::uint64_t word = 0; size + sizeof word <= bytes.size(); size += sizeof word) {
    std::memcpy(&word, bytes.data() + size, sizeof word);
    if ((word & kHighBits) != 0) break;
  }
  while (size < bytes.size() && static_cast<unsigned char>(bytes[size]) < 0x80) ++size;
  return size;
}

}  // namespace

Utf8Unit first_unit(std::string_view bytes) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (at(0) < 0x80) return {Utf8Unit::Kind::kCharacter, 1, at(0)};
  // Most of Chinese, Japanese and Korean, whose second byte has no bounds of its own.
  const bool is_plain_lead = at(0) >= 0xE1 && at(0) <= 0xEF && at(0) != 0xED;
  if (is_plain_lead && bytes.size() > 2 && (at(1) & 0xC0) == 0x80 && (at(2) & 0xC0) == 0x80) {
    return {Utf8Unit::Kind::kCharacter, 3,
            ((at(0) & 0x0Fu) << 12) | ((at(1) & 0x3Fu) << 6) | (at(2) & 0x3Fu)};
  }
  const Lead lead = lead_of(at(0));
  if (lead.length == 0) return {Utf8Unit::Kind::kInvalid, 1};

  char32_t code = at(0) & (0x7Fu >> lead.length);
  for (unsigned i = 1; i < lead.length; ++i) {
    const auto length = static_cast<std::uint8_t>(i);
    if (i == bytes.size()) return {Utf8Unit::Kind::kIncomplete, length};
    const unsigned char low = i == 1 ? lead.low : 0x80;
    const unsigned char high = i == 1 ? lead.high : 0xBF;
    if (at(i) < low || at(i) > high) return {Utf8Unit::Kind::kInvalid, length};
    code = (code << 6) | (at(i) & 0x3Fu);
  }
  return {Utf8Unit::Kind::kCharacter, static_cast<std::uint8_t>(lead.length), code};
}

bool is_one_character(std::string_view bytes) noexcept {
  if (bytes.empty()) return false;
  const Utf8Unit unit = first_unit(bytes);
  return unit.kind == Utf8Unit::Kind::kCharacter && unit.bytes == bytes.size();
}

std::size_t valid_front(std::string_view bytes) noexcept {
  std::size_t size = 0;
  while (true) {
    size += ascii_front(bytes.substr(size));
    if (size == bytes.size()) return size;
    const Utf8Unit unit = first_unit(bytes.substr(size));
    if (unit.kind != Utf8Unit::Kind::kCharacter) return size;
    size += unit.bytes;
  }
}

void append_utf8(std::string& out, char32_t code) {
  const auto tail = [&](unsigned shift) {
    out.push_back(static_cast<char>(0x80u | ((code >> shift) & 0x3Fu)));
  };
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xC0u | (code >> 6)));
    tail(0);
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xE0u | (code >> 12)));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0u | (code >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::size_t append_replaced(std::string& out, std::string_view bytes) {
  std::size_t done = 0;
  while (true) {
    const std::size_t valid = valid_front(bytes.substr(done));
    out.append(bytes.substr(done, valid));
    done += valid;
    if (done == bytes.size()) return done;
    const Utf8Unit unit = first_unit(bytes.substr(done));
    if (unit.kind == Utf8Unit::Kind::kIncomplete) return done;
    out.append(kReplacementCharacter);
    done += unit.bytes;
  }
}

}  // namespace incipit::text
