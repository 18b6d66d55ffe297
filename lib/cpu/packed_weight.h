// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_PACKED_WEIGHT_H_
#define INCIPIT_CPU_PACKED_WEIGHT_H_

#include <cstddef>
#include <span>

#include "cpu/memory.h"
#include "device/device.h"
#include "tensor/quantized_blocks.h"

// A weight matrix as the kernels read it.
//
// The fast paths want panels of 16 outputs, one output per lane of a vector; lanes past the last
// output are zero. A panel of F32 or F16 is [inputs][16 outputs], one of BF16 [pairs of
// inputs][16 outputs][2], the last pair filled up with zeros. One of a quantised type is a stream
// of cache lines in the order in which they are read, so that it comes from memory as one: chunks
// of 1, 2 or 8 blocks along K, each the lines of its scales, then those of its blocks' codes.
// Nothing is lost or rounded.
//
//   scales of    blocks per chunk, lines
//   Q8_0, Q*_0   2, 1: d of [2 blocks][16 outputs] in f16
//   Q*_1         1, 1: [d, m][16 outputs] in f16
//   Q*_K         8, 5: [d, m][16 outputs] in f16, then factors of [8 blocks][2][16 outputs] in 8
//                bits: of d and m, or in Q6_K of d for inputs 0 to 15 and 16 to 31
//
//   codes of     lines per block, each [16 outputs][4 bytes]
//   Q8_0         8: byte i of line g is input 4g + i, plus 128
//   all others   4: byte i of line g has the low 4 bits of inputs 4g + i (in its own low bits) and
//                16 + 4g + i
//   Q5_*         before them 1: bits g and 4 + g of byte i are the fifth bits of those two inputs
//   Q6_K         before them 2, for inputs 0 to 15 and 16 to 31: bits 2g and 2g + 1 of byte i are
//                the high bits of input 4g + i of these
//
// The scalar path keeps the rows as they are in the file: panels of one output.

namespace incipit::cpu {

inline constexpr std::size_t kPanelOutputs = 16;

/// Where things lie in a panel of 16 outputs of a quantised type.
struct QuantPanel {
  static constexpr std::size_t kLineBytes = 4 * kPanelOutputs;
  static constexpr std::size_t kScaleBytes = 2 * kPanelOutputs;  // of an f16 per output
  static constexpr std::size_t kFactorBytes = kPanelOutputs;

  std::size_t bit_lines;     // of one block: what codes have above their fourth bit
  std::size_t code_lines;    // of one block, behind those
  std::size_t lines;         // both
  std::size_t chunk_blocks;  // that share lines of scales
  std::size_t scale_lines;   // of one chunk

  constexpr explicit QuantPanel(tensor::DType type) noexcept
      : bit_lines(bit_lines_of(type)),
        code_lines(type == tensor::DType::kQ8_0 ? 8 : 4),
        lines(bit_lines + code_lines),
        chunk_blocks(chunk_blocks_of(type)),
        scale_lines(tensor::has_factors(type) ? 5 : 1) {}

  constexpr std::size_t chunk_bytes() const noexcept {
    return (chunk_blocks * lines + scale_lines) * kLineBytes;
  }
  constexpr std::size_t bytes(std::size_t blocks) const noexcept {
    return (blocks + chunk_blocks - 1) / chunk_blocks * chunk_bytes();
  }
  constexpr std::size_t line_offset(std::size_t block, std::size_t line) const noexcept {
    return chunk_offset(block) + (scale_lines + block % chunk_blocks * lines + line) * kLineBytes;
  }
  /// Of d; m is kScaleBytes behind it.
  constexpr std::size_t scale_offset(std::size_t block) const noexcept {
    const std::size_t own = scale_lines > 1 ? 0 : block % chunk_blocks;  // else the chunk's
    return chunk_offset(block) + own * kScaleBytes;
  }
  /// Of the first factors; the second ones are kFactorBytes behind them.
  constexpr std::size_t factor_offset(std::size_t block) const noexcept {
    return chunk_offset(block) + kLineBytes + block % chunk_blocks * 2 * kFactorBytes;
  }

 private:
  static constexpr std::size_t bit_lines_of(tensor::DType type) noexcept {
    switch (type) {
      case tensor::DType::kQ5_0:
      case tensor::DType::kQ5_1:
      case tensor::DType::kQ5_K:
        return 1;
      case tensor::DType::kQ6_K:
        return 2;
      default:
        return 0;
    }
  }
  static constexpr std::size_t chunk_blocks_of(tensor::DType type) noexcept {
    if (tensor::has_factors(type)) return 8;
    return tensor::has_minimum(type) ? 1 : 2;
  }
  constexpr std::size_t chunk_offset(std::size_t block) const noexcept {
    return block / chunk_blocks * chunk_bytes();
  }
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
