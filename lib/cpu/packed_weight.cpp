// SPDX-License-Identifier: Apache-2.0
#include "cpu/packed_weight.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/quantized_rows.h"

namespace incipit::cpu {
namespace {

using tensor::BlockQ4_0;
using tensor::BlockQ4_1;
using tensor::BlockQ8_0;
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

void store_scale(std::byte* scales, std::size_t lane, std::uint16_t value) {
  std::memcpy(scales + lane * sizeof(value), &value, sizeof(value));
}
float load_scale(const std::byte* scales, std::size_t lane) {
  return tensor::f16_to_f32(load<std::uint16_t>(scales + lane * sizeof(std::uint16_t)));
}

/// One output's row into its lane of a panel.
template <class T>
void pack_values(const std::byte* row, std::size_t columns, std::size_t lane, std::byte* panel) {
  for (std::size_t k = 0; k < columns; ++k) {
    std::memcpy(panel + (k * kPanelOutputs + lane) * sizeof(T), row + k * sizeof(T), sizeof(T));
  }
}

void pack_q8_0(const std::byte* row, std::size_t columns, std::size_t lane, std::byte* panel) {
  constexpr QuantPanel kPanel(DType::kQ8_0);
  for (std::size_t b = 0; b < columns / kBlock; ++b, row += sizeof(BlockQ8_0)) {
    const auto block = load<BlockQ8_0>(row);
    for (std::size_t k = 0; k < kBlock; ++k) {
      panel[kPanel.line_offset(b, k / kLaneBytes) + lane * kLaneBytes + k % kLaneBytes] =
          static_cast<std::byte>(block.q[k] + 128);
    }
    store_scale(panel + kPanel.scale_offset(b), lane, block.d);
  }
}

template <DType kType, class Block>
void pack_q4(const std::byte* row, std::size_t columns, std::size_t lane, std::byte* panel) {
  constexpr QuantPanel kPanel(kType);
  for (std::size_t b = 0; b < columns / kBlock; ++b, row += sizeof(Block)) {
    const auto block = load<Block>(row);
    for (std::size_t line = 0; line < kPanel.lines; ++line) {
      std::memcpy(panel + kPanel.line_offset(b, line) + lane * kLaneBytes,
                  block.q + line * kLaneBytes, kLaneBytes);
    }
    std::byte* const scales = panel + kPanel.scale_offset(b);
    store_scale(scales, lane, block.d);
    if constexpr (kType == DType::kQ4_1) {
      store_scale(scales + QuantPanel::kScaleBytes, lane, block.m);
    }
  }
}

using PackRow = void (*)(const std::byte* row, std::size_t columns, std::size_t lane,
                         std::byte* panel);

PackRow pack_row_of(DType type) {
  switch (type) {
    case DType::kF32:
      return pack_values<float>;
    case DType::kF16:
    case DType::kBF16:
      return pack_values<std::uint16_t>;
    case DType::kQ8_0:
      return pack_q8_0;
    case DType::kQ4_0:
      return pack_q4<DType::kQ4_0, BlockQ4_0>;
    case DType::kQ4_1:
      return pack_q4<DType::kQ4_1, BlockQ4_1>;
  }
  return nullptr;
}

/// The integers of one block of an output, as they are stored: without their offset.
void unpack_integers(DType type, const std::byte* panel, std::size_t block, std::size_t lane,
                     std::uint8_t (&q)[kBlock]) {
  const QuantPanel layout(type);
  for (std::size_t j = 0; j < layout.lines * kLaneBytes; ++j) {
    const std::size_t line = layout.line_offset(block, j / kLaneBytes);
    const auto byte =
        std::to_integer<std::uint8_t>(panel[line + lane * kLaneBytes + j % kLaneBytes]);
    if (type == DType::kQ8_0) {
      q[j] = byte;
    } else {
      q[j] = byte & 15;
      q[16 + j] = byte >> 4;
    }
  }
}

void unpack_quantized(DType type, const std::byte* panel, std::size_t lane, std::span<float> out) {
  const int offset = type == DType::kQ8_0 ? 128 : type == DType::kQ4_0 ? 8 : 0;
  for (std::size_t b = 0; b < out.size() / kBlock; ++b) {
    std::uint8_t q[kBlock];
    unpack_integers(type, panel, b, lane, q);
    const std::byte* const scales = panel + QuantPanel(type).scale_offset(b);
    const float d = load_scale(scales, lane);
    for (std::size_t k = 0; k < kBlock; ++k) {
      out[b * kBlock + k] = d * static_cast<float>(q[k] - offset);
    }
    if (type == DType::kQ4_1) {
      const float m = load_scale(scales + QuantPanel::kScaleBytes, lane);
      for (std::size_t k = 0; k < kBlock; ++k) out[b * kBlock + k] += m;
    }
  }
}

float value_at(DType type, const std::byte* panel, std::size_t index) {
  if (type == DType::kF32) return load<float>(panel + index * sizeof(float));
  const auto bits = load<std::uint16_t>(panel + index * sizeof(std::uint16_t));
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
  if (tensor::is_quantized(type_)) return unpack_quantized(type_, from, lane, out);
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k] = value_at(type_, from, k * kPanelOutputs + lane);
  }
}

}  // namespace incipit::cpu
