// SPDX-License-Identifier: Apache-2.0
#include "support/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "support/gguf_writer.h"
#include "tensor/quantized_blocks.h"

namespace incipit::test {
namespace {

using tensor::DType;
using tensor::f16_to_f32;
using tensor::f32_to_f16;

using Block = std::span<const float, 32>;
using SuperBlock = std::span<const float, 256>;
using Codes = std::array<int, 32>;

// Divides by the scale as it is stored, so that no code leaves its range by much; clamps the rest.
int code(float value, float scale, int low, int high) {
  if (scale == 0.0f) return std::clamp(0, low, high);
  return std::clamp(static_cast<int>(std::lround(value / scale)), low, high);
}

float extreme_of(std::span<const float> x) {
  float extreme = 0.0f;
  for (const float value : x) {
    if (std::fabs(value) > std::fabs(extreme)) extreme = value;
  }
  return extreme;
}

// Codes of 4 and 5 bits as a block of 32 stores them.
void put_nibbles(const Codes& codes, std::uint8_t (&q)[16]) {
  for (std::size_t i = 0; i < 16; ++i) {
    q[i] = static_cast<std::uint8_t>((codes[i] & 15) | ((codes[i + 16] & 15) << 4));
  }
}
void put_fifth_bits(const Codes& codes, std::uint8_t (&high)[4]) {
  std::fill(std::begin(high), std::end(high), std::uint8_t{0});
  for (std::size_t i = 0; i < 32; ++i) {
    high[i / 8] = static_cast<std::uint8_t>(high[i / 8] | ((codes[i] >> 4) << (i % 8)));
  }
}

std::string encode_q8_0(Block x) {
  tensor::BlockQ8_0 block;
  block.d = f32_to_f16(std::fabs(extreme_of(x)) / 127.0f);
  const float scale = f16_to_f32(block.d);
  for (std::size_t i = 0; i < 32; ++i) {
    block.q[i] = static_cast<std::int8_t>(code(x[i], scale, -127, 127));
  }
  return raw_bytes(block);
}

// x = d * (code - middle), code below 2 * middle.
template <class T>
Codes centred_codes(Block x, int middle, T& block) {
  block.d = f32_to_f16(extreme_of(x) / static_cast<float>(-middle));
  const float scale = f16_to_f32(block.d);
  Codes codes;
  for (std::size_t i = 0; i < 32; ++i) {
    codes[i] = code(x[i], scale, -middle, middle - 1) + middle;
  }
  return codes;
}

// x = d * code + m.
template <class T>
Codes codes_from_minimum(Block x, int largest_code, T& block) {
  const auto [least, largest] = std::minmax_element(x.begin(), x.end());
  block.d = f32_to_f16((*largest - *least) / static_cast<float>(largest_code));
  block.m = f32_to_f16(*least);
  const float scale = f16_to_f32(block.d), minimum = f16_to_f32(block.m);
  Codes codes;
  for (std::size_t i = 0; i < 32; ++i) codes[i] = code(x[i] - minimum, scale, 0, largest_code);
  return codes;
}

std::string encode_q4_0(Block x) {
  tensor::BlockQ4_0 block;
  put_nibbles(centred_codes(x, 8, block), block.q);
  return raw_bytes(block);
}

std::string encode_q4_1(Block x) {
  tensor::BlockQ4_1 block;
  put_nibbles(codes_from_minimum(x, 15, block), block.q);
  return raw_bytes(block);
}

std::string encode_q5_0(Block x) {
  tensor::BlockQ5_0 block;
  const Codes codes = centred_codes(x, 16, block);
  put_nibbles(codes, block.q);
  put_fifth_bits(codes, block.high);
  return raw_bytes(block);
}

std::string encode_q5_1(Block x) {
  tensor::BlockQ5_1 block;
  const Codes codes = codes_from_minimum(x, 31, block);
  put_nibbles(codes, block.q);
  put_fifth_bits(codes, block.high);
  return raw_bytes(block);
}

// The 6-bit factors of eight runs in twelve bytes.
void put_factors(const std::array<int, 8>& scales, const std::array<int, 8>& minima,
                 std::uint8_t (&out)[12]) {
  for (std::size_t i = 0; i < 4; ++i) {
    out[i] = static_cast<std::uint8_t>(scales[i] | (scales[4 + i] >> 4 << 6));
    out[4 + i] = static_cast<std::uint8_t>(minima[i] | (minima[4 + i] >> 4 << 6));
    out[8 + i] = static_cast<std::uint8_t>((scales[4 + i] & 15) | ((minima[4 + i] & 15) << 4));
  }
}

// Q4_K and Q5_K but for the bits of the codes, which are the result.
template <class T>
std::array<int, 256> codes_and_factors(SuperBlock x, int largest_code, T& block) {
  std::array<float, 8> ranges, depths;
  for (std::size_t run = 0; run < 8; ++run) {
    const auto part = x.subspan(run * 32, 32);
    const auto [least, largest] = std::minmax_element(part.begin(), part.end());
    depths[run] = std::max(0.0f, -*least);
    ranges[run] = std::max(0.0f, *largest + depths[run]);
  }
  const auto largest_of = [](const std::array<float, 8>& values) {
    return *std::max_element(values.begin(), values.end());
  };
  block.d = f32_to_f16(largest_of(ranges) / static_cast<float>(63 * largest_code));
  block.m = f32_to_f16(largest_of(depths) / 63.0f);
  const float d = f16_to_f32(block.d), m = f16_to_f32(block.m);
  std::array<int, 8> scales, minima;
  std::array<int, 256> codes;
  for (std::size_t run = 0; run < 8; ++run) {
    scales[run] = code(ranges[run] / static_cast<float>(largest_code), d, 0, 63);
    minima[run] = code(depths[run], m, 0, 63);
    const float scale = d * static_cast<float>(scales[run]);
    const float depth = m * static_cast<float>(minima[run]);
    for (std::size_t i = run * 32; i < run * 32 + 32; ++i) {
      codes[i] = code(x[i] + depth, scale, 0, largest_code);
    }
  }
  put_factors(scales, minima, block.factors);
  for (std::size_t i = 0; i < 128; ++i) {
    const std::size_t first = i / 32 * 64 + i % 32;  // of the low nibble
    block.q[i] = static_cast<std::uint8_t>((codes[first] & 15) | ((codes[first + 32] & 15) << 4));
  }
  return codes;
}

std::string encode_q4_k(SuperBlock x) {
  tensor::BlockQ4_K block;
  codes_and_factors(x, 15, block);
  return raw_bytes(block);
}

std::string encode_q5_k(SuperBlock x) {
  tensor::BlockQ5_K block = {};
  const auto codes = codes_and_factors(x, 31, block);
  for (std::size_t i = 0; i < 256; ++i) {
    std::uint8_t& high = block.high[i % 32];
    high = static_cast<std::uint8_t>(high | ((codes[i] >> 4) << (i / 32)));
  }
  return raw_bytes(block);
}

std::string encode_q6_k(SuperBlock x) {
  tensor::BlockQ6_K block = {};
  block.d = f32_to_f16(std::fabs(extreme_of(x)) / static_cast<float>(32 * 127));
  const float d = f16_to_f32(block.d);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t part = i / 16;
    if (i % 16 == 0) {
      const float step = extreme_of(x.subspan(i, 16)) / -32.0f;
      block.factors[part] = static_cast<std::int8_t>(code(step, d, -128, 127));
    }
    const int q = 32 + code(x[i], d * static_cast<float>(block.factors[part]), -32, 31);
    const std::size_t half = i / 128, run = i / 32 % 4, j = i % 32;
    std::uint8_t& low = block.q[half * 64 + run % 2 * 32 + j];
    std::uint8_t& high = block.high[half * 32 + j];
    low = static_cast<std::uint8_t>(low | ((q & 15) << (run / 2 * 4)));
    high = static_cast<std::uint8_t>(high | ((q >> 4) << (2 * run)));
  }
  return raw_bytes(block);
}

std::string encode_floats(DType type, std::span<const float> values) {
  std::string bytes;
  for (const float value : values) {
    switch (type) {
      case DType::kF16:
        bytes += raw_bytes(f32_to_f16(value));
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

template <std::size_t kElements>
std::string encode_blocks(std::string (*encode_block)(std::span<const float, kElements>),
                          std::span<const float> values) {
  std::string bytes;
  for (std::size_t i = 0; i + kElements <= values.size(); i += kElements) {
    bytes += encode_block(values.subspan(i).first<kElements>());
  }
  return bytes;
}

}  // namespace

std::string encode(DType type, std::span<const float> values) {
  switch (type) {
    case DType::kQ8_0:
      return encode_blocks(encode_q8_0, values);
    case DType::kQ4_0:
      return encode_blocks(encode_q4_0, values);
    case DType::kQ4_1:
      return encode_blocks(encode_q4_1, values);
    case DType::kQ5_0:
      return encode_blocks(encode_q5_0, values);
    case DType::kQ5_1:
      return encode_blocks(encode_q5_1, values);
    case DType::kQ4_K:
      return encode_blocks(encode_q4_k, values);
    case DType::kQ5_K:
      return encode_blocks(encode_q5_k, values);
    case DType::kQ6_K:
      return encode_blocks(encode_q6_k, values);
    default:
      return encode_floats(type, values);
  }
}

}  // namespace incipit::test
