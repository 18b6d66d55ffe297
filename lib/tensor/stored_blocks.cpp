// SPDX-License-Identifier: Apache-2.0
#include "tensor/stored_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace incipit::tensor {
namespace {

constexpr std::size_t kSuper = 256;

constexpr std::int8_t kTable[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                    1,    13,   25,  38,  53,  69,  89,  113};

// Elements of a super-block are numbered through; two bits each.
int two_bits(const std::uint8_t (&q)[64], std::size_t i) noexcept {
  const std::size_t half = i / 128, run = i / 32 % 4;
  return q[half * 32 + i % 32] >> (2 * run) & 3;
}

int code_of(const BlockQ3_K& block, std::size_t i) noexcept {
  const bool is_high = (block.high[i % 32] >> (i / 32) & 1) != 0;
  return two_bits(block.q, i) - (is_high ? 0 : 4);
}

int factor_of(const BlockQ3_K& block, std::size_t group) noexcept {
  const int low = block.factors[group % 8] >> (group < 8 ? 0 : 4) & 15;
  const int high = block.factors[8 + group % 4] >> (2 * (group / 4)) & 3;
  return (low | high << 4) - 32;
}

std::int8_t code_of(const BlockIQ4_NL& block, std::size_t i) noexcept {
  return kTable[i < 16 ? block.q[i] & 15 : block.q[i - 16] >> 4];
}

void expand(const BlockQ2_K& block, std::span<float> out) noexcept {
  const float d = f16_to_f32(block.d), m = f16_to_f32(block.m);
  for (std::size_t i = 0; i < kSuper; ++i) {
    const int factors = block.factors[i / 16];
    const float scale = d * static_cast<float>(factors & 15);
    const float minimum = m * static_cast<float>(factors >> 4);
    out[i] = scale * static_cast<float>(two_bits(block.q, i)) - minimum;
  }
}

void expand(const BlockQ3_K& block, std::span<float> out) noexcept {
  const float d = f16_to_f32(block.d);
  for (std::size_t i = 0; i < kSuper; ++i) {
    const float scale = d * static_cast<float>(factor_of(block, i / 16));
    out[i] = scale * static_cast<float>(code_of(block, i));
  }
}

void expand(const BlockQ8_K& block, std::span<float> out) noexcept {
  for (std::size_t i = 0; i < kSuper; ++i) out[i] = block.d * static_cast<float>(block.q[i]);
}

void expand(const BlockIQ4_NL& block, std::span<float> out) noexcept {
  const float d = f16_to_f32(block.d);
  for (std::size_t i = 0; i < kRun; ++i) out[i] = d * static_cast<float>(code_of(block, i));
}

// Each value to the nearest of 255 steps; where that overflows f16, so does the scale.
BlockQ8_0 rounded(std::span<const float, kRun> values) noexcept {
  float most = 0.0f;
  bool is_finite = true;
  for (const float value : values) {
    most = std::max(most, std::fabs(value));
    is_finite &= std::isfinite(value);
  }
  BlockQ8_0 out = {};
  out.d = is_finite ? f32_to_f16(most / 127.0f) : std::uint16_t{0x7C00};
  const float step = f16_to_f32(out.d);
  if (!is_finite || step == 0.0f || !std::isfinite(step)) return out;
  for (std::size_t j = 0; j < kRun; ++j) {
    const float code = std::clamp(values[j] / step, -127.0f, 127.0f);
    out.q[j] = static_cast<std::int8_t>(static_cast<int>(code + (code < 0.0f ? -0.5f : 0.5f)));
  }
  return out;
}

void convert(const BlockQ2_K& block, std::span<BlockQ8_0> out) noexcept {
  float values[kSuper];
  expand(block, values);
  for (std::size_t run = 0; run < out.size(); ++run) {
    out[run] = rounded(std::span<const float, kSuper>(values).subspan(run * kRun).first<kRun>());
  }
}

void convert(const BlockQ3_K& block, std::span<BlockQ8_0> out) noexcept {
  for (std::size_t i = 0; i < kSuper; ++i) {
    BlockQ8_0& to = out[i / kRun];
    to.d = block.d ^ 0x8000;
    to.q[i % kRun] = static_cast<std::int8_t>(-factor_of(block, i / 16) * code_of(block, i));
  }
}

void convert(const BlockQ8_K& block, std::span<BlockQ8_0> out) noexcept {
  for (std::size_t run = 0; run < out.size(); ++run) {
    out[run].d = f32_to_f16(block.d);
    std::memcpy(out[run].q, block.q + run * kRun, kRun);
  }
}

void convert(const BlockIQ4_NL& block, std::span<BlockQ8_0> out) noexcept {
  out[0].d = block.d;
  for (std::size_t i = 0; i < kRun; ++i) out[0].q[i] = code_of(block, i);
}

template <class Block, class Visit>
void each_block(const std::byte* in, std::size_t count, const Visit& visit) {
  for (std::size_t i = 0; i < count; ++i) {
    Block block;
    std::memcpy(&block, in + i * sizeof(Block), sizeof(Block));
    visit(block, i);
  }
}

template <class Block>
void expand_all(const std::byte* in, std::span<float> out, std::size_t elements) {
  INCIPIT_CHECK(out.size() % elements == 0);
  each_block<Block>(in, out.size() / elements, [&](const Block& block, std::size_t i) {
    expand(block, out.subspan(i * elements, elements));
  });
}

template <class Block>
void convert_all(const std::byte* in, std::span<BlockQ8_0> out, std::size_t elements) {
  const std::size_t runs = elements / kRun;
  INCIPIT_CHECK(out.size() % runs == 0);
  each_block<Block>(in, out.size() / runs, [&](const Block& block, std::size_t i) {
    convert(block, out.subspan(i * runs, runs));
  });
}

}  // namespace

std::string_view name(StoredType type) noexcept {
  switch (type) {
    case StoredType::kQ2_K:
      return "Q2_K";
    case StoredType::kQ3_K:
      return "Q3_K";
    case StoredType::kQ8_K:
      return "Q8_K";
    case StoredType::kIQ4_NL:
      return "IQ4_NL";
  }
  return "?";
}

std::size_t block_elements(StoredType type) noexcept {
  return type == StoredType::kIQ4_NL ? kRun : kSuper;
}

std::size_t block_bytes(StoredType type) noexcept {
  switch (type) {
    case StoredType::kQ2_K:
      return sizeof(BlockQ2_K);
    case StoredType::kQ3_K:
      return sizeof(BlockQ3_K);
    case StoredType::kQ8_K:
      return sizeof(BlockQ8_K);
    case StoredType::kIQ4_NL:
      return sizeof(BlockIQ4_NL);
  }
  return 0;
}

void dequantize_blocks(StoredType type, const std::byte* in, std::span<float> out) {
  switch (type) {
    case StoredType::kQ2_K:
      return expand_all<BlockQ2_K>(in, out, kSuper);
    case StoredType::kQ3_K:
      return expand_all<BlockQ3_K>(in, out, kSuper);
    case StoredType::kQ8_K:
      return expand_all<BlockQ8_K>(in, out, kSuper);
    case StoredType::kIQ4_NL:
      return expand_all<BlockIQ4_NL>(in, out, kRun);
  }
}

void convert_blocks(StoredType type, const std::byte* in, std::span<BlockQ8_0> out) {
  switch (type) {
    case StoredType::kQ2_K:
      return convert_all<BlockQ2_K>(in, out, kSuper);
    case StoredType::kQ3_K:
      return convert_all<BlockQ3_K>(in, out, kSuper);
    case StoredType::kQ8_K:
      return convert_all<BlockQ8_K>(in, out, kSuper);
    case StoredType::kIQ4_NL:
      return convert_all<BlockIQ4_NL>(in, out, kRun);
  }
}

}  // namespace incipit::tensor
