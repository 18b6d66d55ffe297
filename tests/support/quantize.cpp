// SPDX-License-Identifier: Apache-2.0
#include "support/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "support/gguf_writer.h"

namespace incipit::test {
namespace {

using tensor::BlockQ4_0;
using tensor::BlockQ4_1;
using tensor::BlockQ8_0;
using tensor::DType;

using Block = std::span<const float, 32>;

// Divides by the scale as it is stored, so that no code leaves its range by much; clamps the rest.
int code(float value, float scale, int low, int high) {
  if (scale == 0.0f) return std::clamp(0, low, high);
  return std::clamp(static_cast<int>(std::lround(value / scale)), low, high);
}

std::uint8_t nibbles(int low, int high) { return static_cast<std::uint8_t>(low | (high << 4)); }

std::string encode_q8_0(Block x) {
  float largest = 0.0f;
  for (const float value : x) largest = std::max(largest, std::fabs(value));
  BlockQ8_0 block;
  block.d = tensor::f32_to_f16(largest / 127.0f);
  const float scale = tensor::f16_to_f32(block.d);
  for (std::size_t i = 0; i < 32; ++i) {
    block.q[i] = static_cast<std::int8_t>(code(x[i], scale, -127, 127));
  }
  return raw_bytes(block);
}

std::string encode_q4_0(Block x) {
  float extreme = 0.0f;
  for (const float value : x) {
    if (std::fabs(value) > std::fabs(extreme)) extreme = value;
  }
  BlockQ4_0 block;
  block.d = tensor::f32_to_f16(extreme / -8.0f);
  const float scale = tensor::f16_to_f32(block.d);
  for (std::size_t i = 0; i < 16; ++i) {
    block.q[i] = nibbles(code(x[i], scale, -8, 7) + 8, code(x[i + 16], scale, -8, 7) + 8);
  }
  return raw_bytes(block);
}

std::string encode_q4_1(Block x) {
  const auto [least, largest] = std::minmax_element(x.begin(), x.end());
  BlockQ4_1 block;
  block.d = tensor::f32_to_f16((*largest - *least) / 15.0f);
  block.m = tensor::f32_to_f16(*least);
  const float scale = tensor::f16_to_f32(block.d);
  const float minimum = tensor::f16_to_f32(block.m);
  for (std::size_t i = 0; i < 16; ++i) {
    block.q[i] =
        nibbles(code(x[i] - minimum, scale, 0, 15), code(x[i + 16] - minimum, scale, 0, 15));
  }
  return raw_bytes(block);
}

}  // namespace

std::string encode(DType type, std::span<const float> values) {
  std::string bytes;
  if (!tensor::is_quantized(type)) {
    for (const float value : values) {
      switch (type) {
        case DType::kF16:
          bytes += raw_bytes(tensor::f32_to_f16(value));
          break;
        case DType::kBF16:
          bytes += raw_bytes(tensor::f32_to_bf16(value));
          break;
        default:
          bytes += raw_bytes(value);
      }
    }
    return bytes;
  }
  for (std::size_t i = 0; i + 32 <= values.size(); i += 32) {
    const Block block = values.subspan(i).first<32>();
    switch (type) {
      case DType::kQ8_0:
        bytes += encode_q8_0(block);
        break;
      case DType::kQ4_0:
        bytes += encode_q4_0(block);
        break;
      default:
        bytes += encode_q4_1(block);
    }
  }
  return bytes;
}

}  // namespace incipit::test
