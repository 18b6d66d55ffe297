// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_PACKED_WEIGHT_H_
#define INCIPIT_CPU_PACKED_WEIGHT_H_

#include <cstddef>
#include <span>

#include "cpu/memory.h"
#include "device/device.h"
#include "tensor/dtype.h"

// A weight matrix as the kernels read it.
//
// The fast paths want panels of 16 outputs, one output per lane of a vector; lanes past the last
// output are zero. A panel of a float type is [inputs][16 outputs]. One of a quantised type is a
// stream of cache lines, so that it comes from memory as one: chunks of one (Q4_1) or two blocks
// along K, the lines of their integers, then one line of their scales in f16.
//
//   Q8_0         8 lines per block; line g: [16 outputs][4 bytes], byte i is input 4g + i, plus 128
//   Q4_0, Q4_1   4 lines per block; line g: [16 outputs][4 bytes], byte i is input 4g + i in the
//                low bits and input 16 + 4g + i in the high ones
//   scales       Q4_1: [d, m][16 outputs]; else [2 blocks][16 outputs]
//
// The scalar path keeps the rows as they are in the file: panels of one output.

namespace incipit::cpu {

inline constexpr std::size_t kPanelOutputs = 16;

/// Where things lie in a panel of 16 outputs of a quantised type.
struct QuantPanel {
  static constexpr std::size_t kLineBytes = 4 * kPanelOutputs;

  std::size_t lines;         // of one block
  std::size_t chunk_blocks;  // that share a line of scales

  constexpr explicit QuantPanel(tensor::DType type) noexcept
      : lines(type == tensor::DType::kQ8_0 ? 8 : 4),
        chunk_blocks(type == tensor::DType::kQ4_1 ? 1 : 2) {}

  constexpr std::size_t chunk_bytes() const noexcept {
    return (chunk_blocks * lines + 1) * kLineBytes;
  }
  constexpr std::size_t bytes(std::size_t blocks) const noexcept {
    return (blocks + chunk_blocks - 1) / chunk_blocks * chunk_bytes();
  }
  constexpr std::size_t line_offset(std::size_t block, std::size_t line) const noexcept {
    return block / chunk_blocks * chunk_bytes() +
           (block % chunk_blocks * lines + line) * kLineBytes;
  }
  /// Of d; m of Q4_1 is behind it.
  constexpr std::size_t scale_offset(std::size_t block) const noexcept {
    return block / chunk_blocks * chunk_bytes() + chunk_blocks * lines * kLineBytes +
           block % chunk_blocks * kScaleBytes;
  }

  static constexpr std::size_t kScaleBytes = 2 * kPanelOutputs;  // of one block, d or m
};

class PackedWeight final : public device::Weight {
 public:
  /// A matrix yet to be packed, in memory from the arena.
  PackedWeight(tensor::DType type, std::size_t rows, std::size_t columns, std::size_t panel_outputs,
               WeightArena& arena);

  tensor::DType type() const noexcept { return type_; }
  std::size_t panels() const noexcept { return (rows() + panel_outputs_ - 1) / panel_outputs_; }
  std::size_t panel_bytes() const noexcept { return panel_bytes_; }
  const std::byte* panel(std::size_t index) const noexcept {
    return memory_.data + index * panel_bytes_;
  }

  /// First of the rows of a panel, and how many they are.
  std::size_t first_row(std::size_t panel) const noexcept { return panel * panel_outputs_; }
  std::size_t row_count(std::size_t panel) const noexcept;

  /// Fills a panel from its rows in the file's layout.
  void pack(std::size_t panel, const std::byte* panel_rows);
  /// The values of a row, exactly as tensor::dequantize_row gives them.
  void unpack_row(std::size_t row, std::span<float> out) const;

 private:
  tensor::DType type_;
  std::size_t panel_outputs_;  // 1 or kPanelOutputs
  std::size_t panel_bytes_;    // a multiple of 64 for kPanelOutputs
  WeightArena::Piece memory_;
};

}  // namespace incipit::cpu

#endif  // INCIPIT_CPU_PACKED_WEIGHT_H_
