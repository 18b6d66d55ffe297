// SPDX-License-Identifier: Apache-2.0
#include "store/value_name.h"

#include <cstddef>

namespace incipit::store {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

void put_hex(unsigned byte, char* out) noexcept {
  out[0] = kDigits[byte >> 4];
  out[1] = kDigits[byte & 15];
}

}  // namespace

ValueName value_name(const StoreKey& key) noexcept {
  ValueName name;
  name.shard = shard_name(std::to_integer<unsigned>(key.bytes[0]));
  for (std::size_t i = 1; i < key.bytes.size(); ++i) {
    put_hex(std::to_integer<unsigned>(key.bytes[i]), &name.file[2 * (i - 1)]);
  }
  return name;
}

std::array<char, 3> shard_name(unsigned shard) noexcept {
  std::array<char, 3> name = {};
  put_hex(shard, name.data());
  return name;
}

std::optional<StoreKey> key_of(unsigned shard, std::string_view file) noexcept {
  StoreKey key;
  if (file.size() != 2 * (key.bytes.size() - 1)) return std::nullopt;
  key.bytes[0] = static_cast<std::byte>(shard);
  for (std::size_t i = 0; i < file.size(); i += 2) {
    const std::size_t high = kDigits.find(file[i]);
    const std::size_t low = kDigits.find(file[i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
    key.bytes[1 + i / 2] = static_cast<std::byte>(high << 4 | low);
  }
  return key;
}

}  // namespace incipit::store
