// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TENSOR_DTYPE_H_
#define INCIPIT_TENSOR_DTYPE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace incipit::tensor {

/// Element formats of files, weights and KV. The quantised ones are GGUF's: a row is cut into
/// blocks of 32 or 256 elements that share scales (and minima); see quantized_blocks.h.
enum class DType : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K
};

std::string_view name(DType type) noexcept;       // "Q4_1"
std::size_t block_elements(DType type) noexcept;  // 1, 32 or 256
std::size_t block_bytes(DType type) noexcept;
bool is_quantized(DType type) noexcept;

/// Bytes of a row. Throws Error{kModelUnreadable} where `columns` is no multiple of the block.
std::size_t row_bytes(DType type, std::size_t columns);

inline float bf16_to_f32(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
/// Round to nearest even; NaN stays NaN; subnormals are kept.
std::uint16_t f32_to_bf16(float value) noexcept;
float f16_to_f32(std::uint16_t bits) noexcept;
/// Round to nearest even, as F16C does.
std::uint16_t f32_to_f16(float value) noexcept;

/// Expands one row of out.size() elements. `in` holds row_bytes(type, out.size()) bytes.
void dequantize_row(DType type, const std::byte* in, std::span<float> out);

}  // namespace incipit::tensor

#endif  // INCIPIT_TENSOR_DTYPE_H_
