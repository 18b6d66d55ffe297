// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_VALUE_NAME_H_
#define INCIPIT_STORE_VALUE_NAME_H_

#include <array>
#include <optional>
#include <string_view>

#include "incipit/store.h"

namespace incipit::store {

/// Folders that the values are spread over: one for each first byte of a key.
inline constexpr unsigned kShards = 256;

/// Where a value's file is: the key in hex as "ab/cdef...". Both end in a zero byte.
struct ValueName {
  std::array<char, 3> shard = {};
  std::array<char, 63> file = {};
};

ValueName value_name(const StoreKey& key) noexcept;
std::array<char, 3> shard_name(unsigned shard) noexcept;

/// The key of a file of a shard; none where its name is no value's.
std::optional<StoreKey> key_of(unsigned shard, std::string_view file) noexcept;

}  // namespace incipit::store

#endif  // INCIPIT_STORE_VALUE_NAME_H_
