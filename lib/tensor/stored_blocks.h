// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TENSOR_STORED_BLOCKS_H_
#define INCIPIT_TENSOR_STORED_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tensor/quantized_blocks.h"

// Quantised blocks of GGUF files that no kernel computes with. They become Q8_0 when they are read,
// the type with a kernel that is nearest to all of them:
//
//   IQ4_NL  without loss: its table holds numbers of 8 bits
//   Q3_K    without loss: scale factor times code are integers from -124 to 128, and the scale's
//           sign is turned so that they fit 8 bits
//   Q8_K    the scale is rounded from f32 to f16, the codes stay
//   Q2_K    rounded to 1 / 127 of the largest value of each 32

namespace incipit::tensor {

enum class StoredType : std::uint8_t { kQ2_K, kQ3_K, kQ8_K, kIQ4_NL };

// Super-blocks of 256 with a factor for each 16 elements. Each half has four runs of 32: element j
// of run r is bits 2r and 2r + 1 of q[j].
struct BlockQ2_K {  // x = d * (factor & 15) * q - m * (factor >> 4)
  std::uint8_t factors[16], q[64];
  std::uint16_t d, m;  // f16
};
// The same; element j of the super-block's run r is less by 4 where bit r of high[j] is not set.
// Factor i has its low 4 bits in a nibble of factors[i % 8] (the low one for i < 8), its high 2
// bits are bits 2 (i / 4) and above of factors[8 + i % 4].
struct BlockQ3_K {  // x = d * (factor - 32) * q
  std::uint8_t high[32], q[64], factors[12];
  std::uint16_t d;
};
struct BlockQ8_K {  // x = d * q
  float d;
  std::int8_t q[256];
  std::int16_t sums[16];  // of 16 codes each; not used
};
// A block of 32, its nibbles in Q4_0's order.
struct BlockIQ4_NL {  // x = d * table[q]
  std::uint16_t d;
  std::uint8_t q[16];
};
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ8_K) == 292 &&
              sizeof(BlockIQ4_NL) == 18);

std::string_view name(StoredType type) noexcept;       // "Q2_K"
std::size_t block_elements(StoredType type) noexcept;  // 32 or 256
std::size_t block_bytes(StoredType type) noexcept;

/// What blocks in a file's form, at any address, stand for: block_elements() values each.
void dequantize_blocks(StoredType type, const std::byte* in, std::span<float> out);
/// The same as Q8_0. What is not finite becomes a scale that is not, as does what f16 cannot hold.
void convert_blocks(StoredType type, const std::byte* in, std::span<BlockQ8_0> out);

}  // namespace incipit::tensor

#endif  // INCIPIT_TENSOR_STORED_BLOCKS_H_
