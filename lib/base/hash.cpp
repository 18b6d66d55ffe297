// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <new>

// Compiled in here and nowhere else: no symbol of xxHash is defined or needed by the library.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace incipit::base {
namespace {

Digest128 canonical(XXH128_hash_t hash) noexcept {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  Digest128 digest;
  static_assert(sizeof digest == sizeof bytes);
  std::memcpy(digest.data(), &bytes, sizeof bytes);
  return digest;
}

XXH3_state_t* state_of(void* state) noexcept { return static_cast<XXH3_state_t*>(state); }

}  // namespace

std::uint64_t xxh3_64(Bytes bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

Digest128 xxh3_128(Bytes bytes, std::uint64_t seed) noexcept {
  return canonical(XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed));
}

StreamHash128::StreamHash128() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_of(state_));
}

StreamHash128::~StreamHash128() { XXH3_freeState(state_of(state_)); }

void StreamHash128::update(Bytes bytes) noexcept {
  if (!bytes.empty()) XXH3_128bits_update(state_of(state_), bytes.data(), bytes.size());
}

Digest128 StreamHash128::digest() const noexcept {
  return canonical(XXH3_128bits_digest(state_of(state_)));
}

}  // namespace incipit::base
