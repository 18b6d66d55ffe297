// SPDX-License-Identifier: Apache-2.0
#include "cpu/packed_weight.h"

#include "cpu/kernel_fixture.h"
#include "incipit/error.h"
#include "support/catch.h"
#include "support/weight_types.h"

using namespace incipit;
using namespace incipit::testing;
using tensor::DType;

TEST_CASE("a packed row unpacks to the values of the file, bit for bit") {
  std::mt19937 random(1);
  for (const DType type : test::kWeightTypes) {
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
  for (const DType type : test::kQuantizedTypes) {
    const cpu::QuantPanel panel(type);
    const bool factors = tensor::has_factors(type), minimum = tensor::has_minimum(type);
    const std::size_t unit = tensor::block_elements(type) / 32;
    for (const std::size_t blocks : {unit, 2 * unit, 5 * unit}) {
      std::vector<int> uses(panel.bytes(blocks));
      const auto use = [&](std::size_t at, std::size_t bytes) {
        for (std::size_t i = 0; i < bytes; ++i) ++uses.at(at + i);
      };
      for (std::size_t b = 0; b < blocks; ++b) {
        for (std::size_t line = 0; line < panel.lines; ++line) use(panel.line_offset(b, line), 64);
        // Scales of a super-block are those of all its blocks.
        if (!factors || b % 8 == 0) use(panel.scale_offset(b), minimum ? 64 : 32);
        if (factors) CHECK(panel.scale_offset(b) == panel.scale_offset(b / 8 * 8));
        if (factors) use(panel.factor_offset(b), 32);
      }
      std::size_t unused = 0;
      bool once = true;
      for (const int count : uses) {
        unused += count == 0;
        once = once && count <= 1;
      }
      CAPTURE(tensor::name(type), blocks);
      CHECK(once);
      // Behind an odd last block the second half of its chunk; behind the d of Q6_K half a line.
      const std::size_t half =
          panel.chunk_blocks == 2 && blocks % 2 == 1 ? panel.lines * 64 + 32 : 0;
      CHECK(unused == half + (type == DType::kQ6_K ? blocks / 8 * 32 : 0));
    }
  }
}

TEST_CASE("panels take at most 3 % more memory than the file") {
  cpu::WeightArena arena;
  for (const DType type : test::kWeightTypes) {
    const cpu::PackedWeight weight(type, 16, 1536, cpu::kPanelOutputs, arena);
    CAPTURE(tensor::name(type));
    CHECK(weight.panel_bytes() * 100 <= tensor::row_bytes(type, 1536) * 16 * 103);
  }
}

TEST_CASE("columns that are no whole blocks are refused") {
  cpu::WeightArena arena;
  for (const std::size_t outputs : {std::size_t{1}, cpu::kPanelOutputs}) {
    CHECK_THROWS_AS(cpu::PackedWeight(DType::kQ4_1, 16, 33, outputs, arena), Error);
  }
}
