// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <cstring>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "tensor/quantized_blocks.h"

namespace incipit::tensor {
namespace {

struct Format {
  std::string_view name;
  std::size_t elements;  // of one block
  std::size_t bytes;     // of one block
};

constexpr Format format_of(DType type) noexcept {
  switch (type) {
    case DType::kF32:
      return {"F32", 1, 4};
    case DType::kF16:
      return {"F16", 1, 2};
    case DType::kBF16:
      return {"BF16", 1, 2};
    case DType::kQ8_0:
      return {"Q8_0", 32, sizeof(BlockQ8_0)};
    case DType::kQ4_0:
      return {"Q4_0", 32, sizeof(BlockQ4_0)};
    case DType::kQ4_1:
      return {"Q4_1", 32, sizeof(BlockQ4_1)};
    case DType::kQ5_0:
      return {"Q5_0", 32, sizeof(BlockQ5_0)};
    case DType::kQ5_1:
      return {"Q5_1", 32, sizeof(BlockQ5_1)};
    case DType::kQ4_K:
      return {"Q4_K", 256, sizeof(BlockQ4_K)};
    case DType::kQ5_K:
      return {"Q5_K", 256, sizeof(BlockQ5_K)};
    case DType::kQ6_K:
      return {"Q6_K", 256, sizeof(BlockQ6_K)};
  }
  return {"?", 1, 0};
}

// Rows of a file may begin at any byte.
template <class T>
T load(const std::byte* in, std::size_t index) noexcept {
  T value;
  std::memcpy(&value, in + index * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

std::string_view name(DType type) noexcept { return format_of(type).name; }
std::size_t block_elements(DType type) noexcept { return format_of(type).elements; }
std::size_t block_bytes(DType type) noexcept { return format_of(type).bytes; }
bool is_quantized(DType type) noexcept { return block_elements(type) > 1; }

std::size_t row_bytes(DType type, std::size_t columns) {
  const Format format = format_of(type);
  if (columns % format.elements != 0) {
    base::throw_error(ErrorCode::kModelUnreadable,
                      "a row of " + std::to_string(columns) + " elements cannot be " +
                          std::string(format.name) + ", which comes in blocks of " +
                          std::to_string(format.elements));
  }
  return base::checked_mul(columns / format.elements, format.bytes, "the length of a row");
}

std::uint16_t f32_to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) {  // NaN: rounding could carry it into infinity
    return static_cast<std::uint16_t>((bits >> 16) | 0x0040);
  }
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float f16_to_f32(std::uint16_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1F;
  const std::uint32_t fraction = bits & 0x3FF;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24, which is exact
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) {
    const std::uint32_t quiet = fraction != 0 ? 0x00400000 : 0;
    return std::bit_cast<float>(sign | 0x7F800000 | quiet | (fraction << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

std::uint16_t f32_to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  std::uint32_t out;
  if (magnitude > 0x7F800000) {  // NaN, made quiet
    out = 0x7E00 | ((magnitude >> 13) & 0x3FF);
  } else if (magnitude >= 0x477FF000) {  // 65520 and up: halfway past the largest
    out = 0x7C00;
  } else if (magnitude >= 0x38800000) {  // 2^-14 and up: normal
    out = (magnitude + 0xFFF + ((magnitude >> 13) & 1) - (112u << 23)) >> 13;
  } else if (magnitude >= 0x33000000) {  // 2^-25 and up: subnormal, in units of 2^-24
    const std::uint32_t shift = 126 - (magnitude >> 23);
    const std::uint32_t significand = (magnitude & 0x7FFFFF) | 0x800000;
    out = (significand + (1u << (shift - 1)) - 1 + ((significand >> shift) & 1)) >> shift;
  } else {
    out = 0;
  }
  return static_cast<std::uint16_t>(sign | out);
}

void dequantize_row(DType type, const std::byte* in, std::span<float> out) {
  INCIPIT_CHECK(out.size() % block_elements(type) == 0);
  switch (type) {
    case DType::kF32:
      if (!out.empty()) std::memcpy(out.data(), in, out.size_bytes());
      return;
    case DType::kF16:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = f16_to_f32(load<std::uint16_t>(in, i));
      return;
    case DType::kBF16:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = bf16_to_f32(load<std::uint16_t>(in, i));
      return;
    default:
      for (std::size_t i = 0; i < out.size() / kRun; ++i) {
        expand(type, read_codes(type, in, i), out.subspan(i * kRun).first<kRun>());
      }
  }
}

}  // namespace incipit::tensor
