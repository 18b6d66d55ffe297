// SPDX-License-Identifier: Apache-2.0
#include "text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "text/utf8.h"

namespace incipit::text {
namespace {

constexpr bool is_visible(unsigned byte) noexcept {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

constexpr std::int16_t kNoByte = -1;

constexpr auto make_bytes_by_code() noexcept {
  std::array<std::int16_t, 0x144> bytes{};  // 0x100 and one for each of the 68 invisible bytes
  bytes.fill(kNoByte);
  std::size_t next = 0x100;
  for (unsigned byte = 0; byte < 0x100; ++byte) {
    bytes[is_visible(byte) ? byte : next++] = static_cast<std::int16_t>(byte);
  }
  return bytes;
}

constexpr auto kBytesByCode = make_bytes_by_code();

}  // namespace

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Unit unit = first_unit(text);
    if (unit.kind != Utf8Unit::Kind::kCharacter || unit.code >= kBytesByCode.size() ||
        kBytesByCode[unit.code] == kNoByte) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(kBytesByCode[unit.code]));
    text.remove_prefix(unit.bytes);
  }
  return bytes;
}

}  // namespace incipit::text
