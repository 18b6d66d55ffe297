// SPDX-License-Identifier: Apache-2.0
#include "cpu/packed_weight.h"

#include "cpu/kernel_fixture.h"
#include "incipit/error.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::testing;
using tensor::DType;

TEST_CASE("a packed row unpacks to the values of the file, bit for bit") {
  std::mt19937 random(1);
  for (const DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
    const std::size_t unit = tensor::block_elements(type);
    for (const std::size_t columns : {unit, 3 * unit, 18 * unit}) {
      for (const std::size_t rows : {1u, 15u, 16u, 17u, 33u}) {
        const auto bytes = random_weight(random, type, rows, columns);
        for (const KernelPath& path : kernel_paths()) {
          const TestWeight weight(*path.kernels, type, rows, columns, bytes);
          std::vector<float> expected(columns), out(columns);
          for (std::size_t row = 0; row < rows; ++row) {
            CAPTURE(path.name, tensor::name(type), columns, rows, row);
            tensor::dequantize_row(type, bytes.data() + row * tensor::row_bytes(type, columns),
                                   expected);
            (*weight).unpack_row(row, out);
            CHECK(same_bits(out, expected));
          }
        }
      }
    }
  }
}

TEST_CASE("panels hold the rows in order, the last one what is left") {
  cpu::WeightArena arena;
  const cpu::PackedWeight weight(DType::kQ4_0, 35, 64, cpu::kPanelOutputs, arena);
  CHECK(weight.panels() == 3);
  CHECK(weight.first_row(2) == 32);
  CHECK(weight.row_count(1) == 16);
  CHECK(weight.row_count(2) == 3);
  CHECK(weight.panel_bytes() % 64 == 0);
  CHECK(weight.panel(1) - weight.panel(0) == static_cast<std::ptrdiff_t>(weight.panel_bytes()));

  const cpu::PackedWeight rows(DType::kQ4_0, 35, 64, 1, arena);
  CHECK(rows.panels() == 35);
  CHECK(rows.panel_bytes() == tensor::row_bytes(DType::kQ4_0, 64));
}

TEST_CASE("a quantised panel is a stream of whole lines, with no gap and no overlap") {
  for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
    constexpr cpu::QuantPanel kQ4_1(DType::kQ4_1);
    static_assert(kQ4_1.chunk_bytes() == 320);
    const cpu::QuantPanel panel(type);
    for (const std::size_t blocks : {1u, 2u, 5u}) {
      std::vector<int> uses(panel.bytes(blocks));
      for (std::size_t b = 0; b < blocks; ++b) {
        for (std::size_t line = 0; line < panel.lines; ++line) {
          for (std::size_t i = 0; i < 64; ++i) ++uses[panel.line_offset(b, line) + i];
        }
        const std::size_t scales = type == DType::kQ4_1 ? 64 : 32;
        for (std::size_t i = 0; i < scales; ++i) ++uses[panel.scale_offset(b) + i];
      }
      std::size_t unused = 0;
      bool once = true;
      for (const int use : uses) {
        unused += use == 0;
        once = once && use <= 1;
      }
      CAPTURE(tensor::name(type), blocks);
      CHECK(once);
      // Behind an odd last block the second half of its chunk.
      const std::size_t half = panel.lines * 64 + 32;
      CHECK(unused == (panel.chunk_blocks == 2 && blocks % 2 == 1 ? half : 0));
    }
  }
}

TEST_CASE("columns that are no whole blocks are refused") {
  cpu::WeightArena arena;
  for (const std::size_t outputs : {std::size_t{1}, cpu::kPanelOutputs}) {
    CHECK_THROWS_AS(cpu::PackedWeight(DType::kQ4_1, 16, 33, outputs, arena), Error);
  }
}
