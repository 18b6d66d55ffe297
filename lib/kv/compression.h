// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_COMPRESSION_H_
#define INCIPIT_KV_COMPRESSION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "incipit/store.h"

// Lossless compression of KV, by zstd. Sign and exponent of a number say little, its other bits
// nearly all there is to know; so the bytes of the numbers are sorted first, all first bytes, then
// all second ones: planes.
//
//     compressed: bytes of the original 8 | bytes of a number 4 | a zstd frame of the planes

namespace incipit::kv {

bool have_compression() noexcept;

/// Compresses `body`, which consists of numbers of `value_bytes`, in place. Returns what is left of
/// it; none, and `body` as it was, where that is not a tenth less. Throws Error{kInvalidArgument}
/// in a build without zstd.
std::optional<std::size_t> compress(std::span<std::byte> body, std::size_t value_bytes);

/// A compressed body taken apart.
struct Planes {
  StoreBuffer bytes = {};
  std::size_t value_bytes = 1;
};
/// None where `compressed` is damaged or would become more than `most_bytes`, which is seen before
/// any memory is taken for it; and in a build without zstd.
std::optional<Planes> decompress(base::Bytes compressed, std::size_t most_bytes);

/// The original of planes: `body` has as many bytes.
void join(base::Bytes planes, std::size_t value_bytes, std::span<std::byte> body) noexcept;

}  // namespace incipit::kv

#endif  // INCIPIT_KV_COMPRESSION_H_
