// SPDX-License-Identifier: Apache-2.0
#include "cpu/packed_weight.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/quantized_rows.h"

namespace incipit::cpu {
namespace {

using tensor::Codes;
using tensor::DType;

constexpr std::size_t kLaneBytes = QuantPanel::kLineBytes / kPanelOutputs;

std::size_t bytes_of_panel(DType type, std::size_t columns, std::size_t panel_outputs) {
  const std::size_t row_bytes = tensor::row_bytes(type, columns);
  if (panel_outputs == 1) return row_bytes;
  if (tensor::is_quantized(type)) return QuantPanel(type).bytes(columns / kBlock);
  return (row_bytes * panel_outputs + 63) / 64 * 64;
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// One output's row into its lane of a panel.
void pack_f32(const std::byte* row, std::size_t columns, std::size_t lane, std::byte* panel) {
  for (std::size_t k = 0; k < columns; ++k) {
    std::memcpy(panel + (k * kPanelOutputs + lane) * sizeof(float), row + k * sizeof(float),
                sizeof(float));
  }
}

/// Where input k of a lane lies in a panel of 16-bit values, in units of them.
constexpr std::size_t place_of_16(DType type, std::size_t k, std::size_t lane) noexcept {
  if (type != DType::kBF16) return k * kPanelOutputs + lane;
  return (k / 2 * kPanelOutputs + lane) * 2 + k % 2;
}

template <DType kType>
void pack_16(const std::byte* row, std::size_t columns, std::size_t lane, std::byte* panel) {
  for (std::size_t k = 0; k < columns; ++k) {
    std::memcpy(panel + place_of_16(kType, k, lane) * 2, row + k * 2, 2);
  }
}

/// What an output has in the lines of a block.
using LaneLines = std::uint8_t[8][kLaneBytes];

template <DType kType>
void put_codes(const std::uint8_t (&q)[kBlock], LaneLines& lines) {
  if constexpr (kType == DType::kQ8_0) return static_cast<void>(std::memcpy(lines, q, kBlock));
  // Four bytes at a time.
  constexpr std::uint32_t kNibbles = 0x0f0f0f0f;
  constexpr std::size_t kBits = QuantPanel(kType).bit_lines;  // above the fourth
  std::uint32_t first_bits = 0, second_bits = 0;              // of inputs 0 to 15 and 16 to 31
  for (std::size_t g = 0; g < 4; ++g) {
    std::uint32_t first, second;
    std::memcpy(&first, q + 4 * g, sizeof(first));
    std::memcpy(&second, q + 16 + 4 * g, sizeof(second));
    const std::uint32_t pairs = (first & kNibbles) | (second & kNibbles) << 4;
    std::memcpy(lines[kBits + g], &pairs, sizeof(pairs));
    first_bits |= (first >> 4 & kNibbles) << (g * kBits);
    second_bits |= (second >> 4 & kNibbles) << (g * kBits);
  }
  if constexpr (kBits == 1) first_bits |= second_bits << 4;
  if constexpr (kBits > 0) std::memcpy(lines[0], &first_bits, sizeof(first_bits));
  if constexpr (kBits > 1) std::memcpy(lines[1], &second_bits, sizeof(second_bits));
}

void get_codes(DType type, const LaneLines& lines, std::uint8_t (&q)[kBlock]) {
  if (type == DType::kQ8_0) return static_cast<void>(std::memcpy(q, lines, kBlock));
  const QuantPanel layout(type);
  for (std::size_t k = 0; k < kBlock; ++k) {
    const std::size_t half = k / 16, g = k % 16 / kLaneBytes, i = k % kLaneBytes;
    int high = 0;
    if (layout.bit_lines == 1) high = (lines[0][i] >> (4 * half + g)) & 1;
    if (layout.bit_lines == 2) high = (lines[half][i] >> (2 * g)) & 3;
    q[k] = static_cast<std::uint8_t>(((lines[layout.bit_lines + g][i] >> (4 * half)) & 15) |
                                     (high << 4));
  }
}

template <DType kType>
void pack_codes(const std::byte* row, std::size_t columns, std::size_t lane, std::byte* panel) {
  constexpr QuantPanel kLayout(kType);
  const auto put = [&](std::size_t offset, auto value) {
    std::memcpy(panel + offset + lane * sizeof(value), &value, sizeof(value));
  };
  for (std::size_t b = 0; b < columns / kBlock; ++b) {
    const Codes codes = tensor::read_codes(kType, row, b);
    LaneLines lines;
    put_codes<kType>(codes.q, lines);
    for (std::size_t line = 0; line < kLayout.lines; ++line) {
      std::memcpy(panel + kLayout.line_offset(b, line) + lane * kLaneBytes, lines[line],
                  kLaneBytes);
    }
    const std::size_t scale = kLayout.scale_offset(b);
    put(scale, codes.d);
    if constexpr (tensor::has_minimum(kType)) put(scale + QuantPanel::kScaleBytes, codes.m);
    if constexpr (tensor::has_factors(kType)) {
      const std::size_t factor = kLayout.factor_offset(b);
      put(factor, codes.scale_factor[0]);
      put(factor + QuantPanel::kFactorBytes,
          tensor::has_minimum(kType) ? codes.minimum_factor
                                     : static_cast<std::uint8_t>(codes.scale_factor[1]));
    }
  }
}

using PackRow = void (*)(const std::byte* row, std::size_t columns, std::size_t lane,
                         std::byte* panel);

PackRow pack_row_of(DType type) {
  switch (type) {
    case DType::kF32:
      return pack_f32;
    case DType::kF16:
      return pack_16<DType::kF16>;
    case DType::kBF16:
      return pack_16<DType::kBF16>;
    case DType::kQ8_0:
      return pack_codes<DType::kQ8_0>;
    case DType::kQ4_0:
      return pack_codes<DType::kQ4_0>;
    case DType::kQ4_1:
      return pack_codes<DType::kQ4_1>;
    case DType::kQ5_0:
      return pack_codes<DType::kQ5_0>;
    case DType::kQ5_1:
      return pack_codes<DType::kQ5_1>;
    case DType::kQ4_K:
      return pack_codes<DType::kQ4_K>;
    case DType::kQ5_K:
      return pack_codes<DType::kQ5_K>;
    case DType::kQ6_K:
      return pack_codes<DType::kQ6_K>;
  }
  return nullptr;
}

void unpack_codes(DType type, const std::byte* panel, std::size_t lane, std::span<float> out) {
  const QuantPanel layout(type);
  const auto get = [&](std::size_t offset, auto& value) {
    std::memcpy(&value, panel + offset + lane * sizeof(value), sizeof(value));
  };
  for (std::size_t b = 0; b < out.size() / kBlock; ++b) {
    LaneLines lines;
    for (std::size_t line = 0; line < layout.lines; ++line) {
      std::memcpy(lines[line], panel + layout.line_offset(b, line) + lane * kLaneBytes, kLaneBytes);
    }
    Codes codes = {};
    get_codes(type, lines, codes.q);
    get(layout.scale_offset(b), codes.d);
    if (tensor::has_minimum(type)) get(layout.scale_offset(b) + QuantPanel::kScaleBytes, codes.m);
    if (tensor::has_factors(type)) {
      const std::size_t second = layout.factor_offset(b) + QuantPanel::kFactorBytes;
      get(layout.factor_offset(b), codes.scale_factor[0]);
      get(second, codes.scale_factor[1]);  // of Q6_K alone
      get(second, codes.minimum_factor);
      if (tensor::has_minimum(type)) codes.scale_factor[1] = codes.scale_factor[0];
    }
    tensor::expand(type, codes, out.subspan(b * kBlock).first<kBlock>());
  }
}

float value_at(DType type, const std::byte* panel, std::size_t k, std::size_t lane) {
  if (type == DType::kF32) return load<float>(panel + (k * kPanelOutputs + lane) * sizeof(float));
  const auto bits = load<std::uint16_t>(panel + place_of_16(type, k, lane) * 2);
  return type == DType::kF16 ? tensor::f16_to_f32(bits) : tensor::bf16_to_f32(bits);
}

}  // namespace

PackedWeight::PackedWeight(DType type, std::size_t rows, std::size_t columns,
                           std::size_t panel_outputs, WeightArena& arena)
    : Weight(rows, columns),
      type_(type),
      panel_outputs_(panel_outputs),
      panel_bytes_(bytes_of_panel(type, columns, panel_outputs)),
      memory_(arena.take(panels() * panel_bytes_)) {}

std::size_t PackedWeight::row_count(std::size_t panel) const noexcept {
  return std::min(panel_outputs_, rows() - first_row(panel));
}

void PackedWeight::pack(std::size_t panel, const std::byte* panel_rows) {
  const std::size_t row_bytes = tensor::row_bytes(type_, columns());
  std::byte* const out = memory_.data + panel * panel_bytes_;
  if (panel_outputs_ == 1) {
    std::memcpy(out, panel_rows, row_bytes);
    return;
  }
  const PackRow pack_row = pack_row_of(type_);
  for (std::size_t lane = 0; lane < row_count(panel); ++lane) {
    pack_row(panel_rows + lane * row_bytes, columns(), lane, out);
  }
}

void PackedWeight::unpack_row(std::size_t row, std::span<float> out) const {
  if (panel_outputs_ == 1) return tensor::dequantize_row(type_, panel(row), out);
  const std::byte* const from = panel(row / kPanelOutputs);
  const std::size_t lane = row % kPanelOutputs;
  if (tensor::is_quantized(type_)) return unpack_codes(type_, from, lane, out);
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k] = value_at(type_, from, k, lane);
  }
}

}  // namespace incipit::cpu
