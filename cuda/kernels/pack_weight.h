// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_PACK_WEIGHT_H_
#define INCIPIT_CUDA_KERNELS_PACK_WEIGHT_H_

#include <cstring>
#include <span>

#include "base/check.h"
#include "cuda/kernels/product_weights.cuh"
#include "tensor/quantized_blocks.h"

// On the host: GGUF's quantised rows to the records of CodedWeight.

namespace incipit::cuda {

/// Whether rows of this type become a CodedWeight<Code>. Q4_K does as Q4_1: the factors of its runs
/// are multiplied into the scales and minima, each rounded to F16, which takes 5 bits a weight
/// instead of 4.5; those of Q6_K likewise, 7 instead of 6.56.
template <class Code>
constexpr bool has_coding(tensor::DType type) {
  using tensor::DType;
  constexpr unsigned kScales = Code::kScales;
  if (Code::kBits == 8) return type == DType::kQ8_0;
  if (Code::kBits == 6) return type == DType::kQ6_K && kScales == 2;
  return Code::kMinimum ? type == DType::kQ4_1 || type == DType::kQ4_K : type == DType::kQ4_0;
}

/// Puts rows first_output, first_output + 1, ... (all of a tile of 8, or the last) into `out`,
/// which holds the whole weight: CodedWeight<Code>::bytes(outputs, columns) bytes, zeros at first.
template <class Code>
void pack_rows(tensor::DType type, std::size_t first_output, std::size_t rows, std::size_t columns,
               std::span<const std::byte> bytes, std::span<unsigned char> out) {
  using Weight = CodedWeight<Code>;
  INCIPIT_CHECK(has_coding<Code>(type));
  const std::size_t row_bytes = tensor::row_bytes(type, columns);
  INCIPIT_CHECK(bytes.size() == rows * row_bytes);
  const std::size_t records = product_columns(static_cast<unsigned>(columns)) / kProductDepth;
  const auto put = [](unsigned char* to, auto value) { std::memcpy(to, &value, sizeof value); };
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t output = first_output + row;
    for (std::size_t run = 0; run < columns / tensor::kRun; ++run) {
      const tensor::Codes codes = tensor::read_codes(type, bytes.data() + row * row_bytes, run);
      const std::size_t index = output / 8 * records + run / 2;
      unsigned char* const record = out.data() + index * Weight::kRecordBytes;
      for (std::size_t quad = 0; quad < 4; ++quad) {
        std::uint32_t words[2] = {}, high = 0;
        for (std::size_t j = 0; j < 4; ++j) {
          for (std::size_t side = 0; side < 2; ++side) {
            const std::uint32_t code = codes.q[8 * j + 2 * quad + side];
            if (Code::kBits == 8) {
              words[j / 2] |= code << (8 * (j % 2 + 2 * side));
            } else {
              words[0] |= (code & 15) << (4 * (j + 4 * side));
              high |= code >> 4 << (2 * j + 8 * side);
            }
          }
        }
        const std::size_t place = run % 2 * 32 + output % 8 * 4 + quad;
        for (std::size_t w = 0; w < Weight::kWords; ++w) {
          put(record + (place * Weight::kWords + w) * 4, words[w]);
        }
        if (Code::kBits == 6) {
          put(record + Weight::kCodeBytes + place * 2, static_cast<std::uint16_t>(high));
        }
      }
      unsigned char* const numbers = record + Weight::kCodeBytes + Weight::kHighBytes +
                                     (run % 2 * 8 + output % 8) * Weight::kNumbers * 2;
      for (std::size_t s = 0; s < Code::kScales; ++s) {
        put(numbers + s * 2, tensor::f32_to_f16(codes.scale(s)));
      }
      if (Code::kMinimum) {
        put(numbers + Code::kScales * 2, tensor::f32_to_f16(codes.minimum(type)));
      }
    }
  }
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_PACK_WEIGHT_H_
