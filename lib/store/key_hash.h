// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_KEY_HASH_H_
#define INCIPIT_STORE_KEY_HASH_H_

#include <cstddef>
#include <cstring>

#include "incipit/store.h"

namespace incipit::store {

/// Of a key in a table: it is a digest already.
struct KeyHash {
  std::size_t operator()(const StoreKey& key) const noexcept {
    std::size_t hash = 0;
    std::memcpy(&hash, key.bytes.data(), sizeof hash);
    return hash;
  }
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_KEY_HASH_H_
