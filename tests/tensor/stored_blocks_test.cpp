// SPDX-License-Identifier: Apache-2.0
#include "tensor/stored_blocks.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "support/catch.h"

namespace incipit::tensor {
namespace {

constexpr StoredType kTypes[] = {StoredType::kQ2_K, StoredType::kQ3_K, StoredType::kQ8_K,
                                 StoredType::kIQ4_NL};

struct Row {
  StoredType type;
  base::Bytes bytes;
  std::vector<float> values;  // as the gguf package reads it; Q8_K by its definition
};

std::vector<Row> read_rows(const std::string& file) {
  base::ByteReader in(base::as_bytes(file), "stored_blocks.bin");
  std::vector<Row> rows;
  for (const StoredType type : kTypes) {
    const base::Bytes letters = in.take(in.read<std::uint8_t>());
    REQUIRE(std::string_view(reinterpret_cast<const char*>(letters.data()), letters.size()) ==
            name(type));
    Row row{type, {}, std::vector<float>(in.read<std::uint32_t>())};
    row.bytes = in.take(row.values.size() / block_elements(type) * block_bytes(type));
    for (float& value : row.values) value = in.read<float>();
    rows.push_back(std::move(row));
  }
  CHECK(in.remaining() == 0);
  return rows;
}

std::vector<float> converted(StoredType type, const std::byte* in, std::size_t elements) {
  std::vector<BlockQ8_0> blocks(elements / kRun);
  convert_blocks(type, in, blocks);
  std::vector<float> values(elements);
  dequantize_row(DType::kQ8_0, reinterpret_cast<const std::byte*>(blocks.data()), values);
  return values;
}

// Written by make_blocks.py.
TEST_CASE("rows of stored types have the values that the gguf package gives them") {
  const std::string file =
      base::read_text_file(INCIPIT_TEST_DATA "/tensor/stored_blocks.bin", 1 << 20);
  for (const Row& row : read_rows(file)) {
    std::vector<float> values(row.values.size());
    dequantize_blocks(row.type, row.bytes.data(), values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      CAPTURE(name(row.type), i, values[i]);
      CHECK(std::bit_cast<std::uint32_t>(values[i]) == std::bit_cast<std::uint32_t>(row.values[i]));
    }
  }
}

TEST_CASE("what stands in for a stored type is as near as the header says") {
  const std::string file =
      base::read_text_file(INCIPIT_TEST_DATA "/tensor/stored_blocks.bin", 1 << 20);
  for (const Row& row : read_rows(file)) {
    const std::vector<float> values = converted(row.type, row.bytes.data(), row.values.size());
    for (std::size_t run = 0; run < values.size(); run += kRun) {
      float most = 0.0f;
      for (std::size_t i = run; i < run + kRun; ++i)
        most = std::max(most, std::fabs(row.values[i]));
      for (std::size_t i = run; i < run + kRun; ++i) {
        CAPTURE(name(row.type), i, values[i], row.values[i]);
        const float off = std::fabs(values[i] - row.values[i]);
        switch (row.type) {
          case StoredType::kQ3_K:
          case StoredType::kIQ4_NL:
            CHECK(values[i] == row.values[i]);
            break;
          case StoredType::kQ8_K:  // half a unit of f16, or of its subnormals times the code
            CHECK(off <= most * 0x1p-11f + 128 * 0x1p-25f);
            break;
          case StoredType::kQ2_K:  // half a step, and the scale's own rounding
            CHECK(off <= most / 127 * 0.51f + most * 0x1p-11f + 127 * 0x1p-25f);
            break;
        }
      }
    }
  }
}

TEST_CASE("every code of Q3_K fits") {
  BlockQ3_K block = {};
  block.d = f32_to_f16(1.0f);
  // The lowest factor (-32 + 0) with the lowest code (0 - 4): all bits are zero.
  std::vector<float> values(256);
  dequantize_blocks(StoredType::kQ3_K, reinterpret_cast<const std::byte*>(&block), values);
  CHECK(values == std::vector<float>(256, 128.0f));
  CHECK(converted(StoredType::kQ3_K, reinterpret_cast<const std::byte*>(&block), 256) == values);
}

TEST_CASE("what is not finite is still to be seen behind the conversion") {
  const auto scale_of = [](StoredType type, const auto& block) {
    std::vector<BlockQ8_0> out(block_elements(type) / kRun);
    convert_blocks(type, reinterpret_cast<const std::byte*>(&block), out);
    return f16_to_f32(out[0].d);
  };
  for (const std::uint16_t bad : std::initializer_list<std::uint16_t>{0x7C00, 0xFC00, 0x7E00}) {
    BlockQ2_K q2 = {}, q2_m = {};
    q2.d = bad;
    q2_m.m = bad;
    BlockQ3_K q3 = {};
    q3.d = bad;
    BlockIQ4_NL iq4 = {};
    iq4.d = bad;
    CHECK_FALSE(std::isfinite(scale_of(StoredType::kQ2_K, q2)));
    CHECK_FALSE(std::isfinite(scale_of(StoredType::kQ2_K, q2_m)));
    CHECK_FALSE(std::isfinite(scale_of(StoredType::kQ3_K, q3)));
    CHECK_FALSE(std::isfinite(scale_of(StoredType::kIQ4_NL, iq4)));
  }
  for (const float bad :
       {std::numeric_limits<float>::infinity(), 1e6f, std::numeric_limits<float>::quiet_NaN()}) {
    BlockQ8_K q8 = {};
    q8.d = bad;
    CHECK_FALSE(std::isfinite(scale_of(StoredType::kQ8_K, q8)));
  }
}

}  // namespace
}  // namespace incipit::tensor
