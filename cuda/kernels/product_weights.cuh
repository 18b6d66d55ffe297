// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_PRODUCT_WEIGHTS_CUH_
#define INCIPIT_CUDA_KERNELS_PRODUCT_WEIGHTS_CUH_

#include "cuda/kernels/kv_tile.cuh"
#include "cuda/kernels/product_rows.cuh"
#include "cuda/prim/half_pair.cuh"
#include "cuda/prim/mma.cuh"

// Weights [N rows (outputs), K columns] of products: how a tile of them comes to shared memory, and
// how a warp makes fragments of it. Each kind has
//
//   T                   the type of the products
//   stage_bytes(n)      shared memory for n outputs and one step of kProductDepth columns
//   issue(...)          starts the copies of a step
//   load(...)           fragments b of 8 outputs and 32 columns: two steps of mma

namespace incipit::cuda {

/// F16 or BF16, row-major; rows are padded with zeros to whole 16 bytes.
template <class Value>
struct PlainWeight {
  using T = Value;
  static constexpr unsigned kChunks = kProductDepth / 8;
  static constexpr unsigned stage_bytes(unsigned outputs) { return outputs * kProductDepth * 2; }

  const T* data = nullptr;
  std::int64_t stride = 0;  // elements, a multiple of 8
  unsigned outputs = 0, columns = 0;

  template <unsigned kOutputs, unsigned kThreads>
  INCIPIT_DEVICE void issue(unsigned char* stage, unsigned first_output, unsigned step) const {
    INCIPIT_UNROLL
    for (unsigned i = prim::thread_x(); i < kOutputs * kChunks; i += kThreads) {
      const unsigned row = i / kChunks, chunk = i % kChunks;
      const unsigned output = first_output + row, column = step * kProductDepth + chunk * 8;
      const bool valid = output < outputs && column < columns;
      const T* const from = valid ? data + output * stride + column : data;
      prim::copy_async_16(reinterpret_cast<T*>(stage) + chunk_index<kProductDepth>(row, chunk),
                          from, valid);
    }
  }

  /// Outputs 8 * tile .. + 8 of the stage, columns 32 * block .. + 32.
  static INCIPIT_DEVICE void load(std::uint32_t (&b)[2][2], const unsigned char* stage,
                                  unsigned tile, unsigned block) {
    const unsigned place = chunk_index<kProductDepth>(prim::lane() % 8, prim::lane() / 8);
    std::uint32_t out[4];
    prim::load_matrix(out, reinterpret_cast<const T*>(stage) + tile * 8 * kProductDepth +
                               chunk_beyond(place, 4 * block));
    b[0][0] = out[0];
    b[0][1] = out[1];
    b[1][0] = out[2];
    b[1][1] = out[3];
  }
};

/// What a quantised weight is made of. Weights are (code - kOffset) * scale, rounded to F16, or
/// code * scale + minimum, rounded once; scales and minima are F16 themselves.
template <unsigned kBitsOfCode, unsigned kOffsetOfCode, unsigned kScalesOfBlock,
          bool kMinimumOfBlock>
struct Coding {
  static constexpr unsigned kBits = kBitsOfCode;  // 4, 6 or 8
  static constexpr unsigned kOffset = kOffsetOfCode;
  static constexpr unsigned kScales = kScalesOfBlock;  // of 32 columns: 1 or 2
  static constexpr bool kMinimum = kMinimumOfBlock;
};
using CodingQ8_0 = Coding<8, 128, 1, false>;
using CodingQ4_0 = Coding<4, 8, 1, false>;
using CodingQ4_1 = Coding<4, 0, 1, true>;  // and Q4_K, with the factors multiplied into the scales
using CodingQ6_K = Coding<6, 32, 2, false>;

/// Records [outputs / 8][columns / 64], so that a warp reads runs of neighbours and a lane finds
/// its part of the fragments in one word. With the lane's output lane / 4 and c = 2 (lane % 4), its
/// eight columns of a block of 32 are 8 j + c and one more, in pairs j = 0..3. A record is
///
///   codes   [2 blocks][32 lanes]   4 bits: pair j in nibbles j and j + 4 of a word
///                                  8 bits: pair j in bytes j % 2 and j % 2 + 2 of word j / 2
///   high    [2 blocks][32 lanes]   6 bits only: bits 2 j and 2 j + 8 of 16, two each
///   scales  [2 blocks][8 outputs]  1 or 2 scales, or a scale and a minimum
///
/// Outputs and columns that are missing to whole records are zeros.
template <class CodingOfWeight>
struct CodedWeight {
  using T = F16;
  using Code = CodingOfWeight;
  static constexpr unsigned kWords = Code::kBits == 8 ? 2 : 1;  // of a lane and block
  static constexpr unsigned kNumbers = Code::kScales + (Code::kMinimum ? 1 : 0);
  static constexpr unsigned kCodeBytes = 2 * 32 * kWords * 4;
  static constexpr unsigned kHighBytes = Code::kBits == 6 ? 2 * 32 * 2 : 0;
  static constexpr unsigned kRecordBytes = kCodeBytes + kHighBytes + 2 * 8 * kNumbers * 2;
  static_assert(kRecordBytes % 16 == 0 && kNumbers <= 2);

  static constexpr unsigned stage_bytes(unsigned outputs) { return outputs / 8 * kRecordBytes; }
  static constexpr std::size_t bytes(std::size_t outputs, std::size_t columns) {
    return (outputs + 7) / 8 * ((columns + 63) / 64) * kRecordBytes;
  }

  const unsigned char* data = nullptr;  // 16-byte aligned
  unsigned outputs = 0, columns = 0;

  template <unsigned kOutputs, unsigned kThreads>
  INCIPIT_DEVICE void issue(unsigned char* stage, unsigned first_output, unsigned step) const {
    constexpr unsigned kChunks = kRecordBytes / 16;
    const unsigned steps = (columns + kProductDepth - 1) / kProductDepth;
    INCIPIT_UNROLL
    for (unsigned i = prim::thread_x(); i < kOutputs / 8 * kChunks; i += kThreads) {
      const unsigned tile = i / kChunks, chunk = i % kChunks;
      const unsigned first = first_output + tile * 8;
      const bool valid = first < outputs && step < steps;
      const std::int64_t record = static_cast<std::int64_t>(first / 8) * steps + step;
      const unsigned char* const from = valid ? data + record * kRecordBytes + chunk * 16 : data;
      prim::copy_async_16(stage + i * 16, from, valid);
    }
  }

  static INCIPIT_DEVICE void load(std::uint32_t (&b)[2][2], const unsigned char* stage,
                                  unsigned tile, unsigned block) {
    const unsigned char* const record = stage + tile * kRecordBytes;
    const unsigned place = block * 32 + prim::lane();
    const auto words = prim::shared_load(
        reinterpret_cast<const prim::Pack<std::uint32_t, kWords>*>(record) + place);
    std::uint32_t high = 0;
    if constexpr (Code::kBits == 6) {
      const std::uint32_t pairs =
          prim::shared_load(reinterpret_cast<const std::uint16_t*>(record + kCodeBytes) + place);
      high = (pairs & 0xffu) | (pairs & 0xff00u) << 8;
    }
    const auto numbers = prim::shared_load(
        reinterpret_cast<const prim::Pack<F16, kNumbers>*>(record + kCodeBytes + kHighBytes) +
        block * 8 + prim::lane() / 4);
    INCIPIT_UNROLL
    for (unsigned j = 0; j < 4; ++j) {
      b[j / 2][j % 2] = value_of(codes_of(words, high, j), numbers, j / 2);
    }
  }

 private:
  static INCIPIT_DEVICE std::uint32_t codes_of(const prim::Pack<std::uint32_t, kWords>& words,
                                               std::uint32_t high, unsigned j) {
    if constexpr (Code::kBits == 8) return words[j / 2] >> (8 * (j % 2)) & 0x00ff00ffu;
    const std::uint32_t low = words[0] >> (4 * j) & 0x000f000fu;
    if constexpr (Code::kBits == 4) return low;
    return low | (high >> (2 * j) & 0x00030003u) << 4;
  }

  /// A pair of codes, as the low bits of F16 numbers from 1024 on, becomes a pair of weights.
  static INCIPIT_DEVICE std::uint32_t value_of(std::uint32_t codes,
                                               const prim::Pack<F16, kNumbers>& numbers,
                                               unsigned half) {
    constexpr std::uint32_t kFrom = (0x6400u + Code::kOffset) * 0x10001u;
    const std::uint32_t code = prim::subtract_halves(codes | 0x64006400u, kFrom);  // exact
    const std::uint32_t scale = prim::both_halves(numbers[Code::kScales == 2 ? half : 0]);
    if constexpr (!Code::kMinimum) return prim::multiply_halves(code, scale);
    return prim::fma_halves(code, scale, prim::both_halves(numbers[kNumbers - 1]));
  }
};

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_PRODUCT_WEIGHTS_CUH_
