// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_HASH_H_
#define INCIPIT_BASE_HASH_H_

#include <array>
#include <cstdint>

#include "base/bytes.h"

namespace incipit::base {

/// XXH3, 64 bits. Finds, never proves: whoever hits compares the real thing.
std::uint64_t xxh3_64(Bytes bytes, std::uint64_t seed = 0) noexcept;

using Digest128 = std::array<std::byte, 16>;

/// XXH3, 128 bits, canonical byte order.
Digest128 xxh3_128(Bytes bytes, std::uint64_t seed = 0) noexcept;

/// XXH3-128 of bytes that come in pieces.
class StreamHash128 {
 public:
  StreamHash128();
  ~StreamHash128();
  StreamHash128(const StreamHash128&) = delete;
  StreamHash128& operator=(const StreamHash128&) = delete;
  void update(Bytes bytes) noexcept;
  Digest128 digest() const noexcept;

 private:
  void* state_;
};

}  // namespace incipit::base

#endif  // INCIPIT_BASE_HASH_H_
