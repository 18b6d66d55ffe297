// SPDX-License-Identifier: Apache-2.0
#include "tensor/quantized_blocks.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "incipit/error.h"
#include "support/catch.h"
#include "support/weight_types.h"

namespace incipit::tensor {
namespace {

const std::uint16_t kOne = f32_to_f16(1.0f);

template <class Block>
std::vector<float> values_of(DType type, const Block& block) {
  CHECK(block_bytes(type) == sizeof(Block));
  std::vector<float> out(block_elements(type));
  dequantize_row(type, reinterpret_cast<const std::byte*>(&block), out);
  return out;
}

// Sets each bit of a field in turn, and checks that it moves the element that `place_of` names by
// the power of two that it names, and no other.
struct Place {
  std::size_t element;
  int value;
};
template <class Block, std::size_t kBytes, class PlaceOf>
void check_bits(DType type, Block& block, std::uint8_t (&field)[kBytes], PlaceOf place_of) {
  const std::vector<float> before = values_of(type, block);
  for (std::size_t bit = 0; bit < kBytes * 8; ++bit) {
    std::uint8_t& byte = field[bit / 8];
    byte = static_cast<std::uint8_t>(1 << (bit % 8));
    const Place place = place_of(bit / 8, static_cast<int>(bit % 8));
    std::vector<float> expected = before;
    expected[place.element] += static_cast<float>(place.value);
    CAPTURE(name(type), bit);
    CHECK(values_of(type, block) == expected);
    byte = 0;
  }
}

Place nibble_of_32(std::size_t byte, int bit) {
  return {bit < 4 ? byte : byte + 16, 1 << (bit % 4)};
}
Place fifth_bit_of_32(std::size_t byte, int bit) {
  return {byte * 8 + static_cast<std::size_t>(bit), 16};
}
Place nibble_of_256(std::size_t byte, int bit) {
  const std::size_t low = byte / 32 * 64 + byte % 32;
  return {bit < 4 ? low : low + 32, 1 << (bit % 4)};
}

TEST_CASE("each bit of a block of 32 belongs to one element") {
  BlockQ4_0 q4_0 = {};
  BlockQ4_1 q4_1 = {};
  BlockQ5_0 q5_0 = {};
  BlockQ5_1 q5_1 = {};
  q4_0.d = q4_1.d = q5_0.d = q5_1.d = kOne;
  q4_1.m = q5_1.m = f32_to_f16(-3.0f);
  CHECK(values_of(DType::kQ4_0, q4_0) == std::vector<float>(32, -8.0f));
  CHECK(values_of(DType::kQ4_1, q4_1) == std::vector<float>(32, -3.0f));
  CHECK(values_of(DType::kQ5_0, q5_0) == std::vector<float>(32, -16.0f));
  CHECK(values_of(DType::kQ5_1, q5_1) == std::vector<float>(32, -3.0f));
  check_bits(DType::kQ4_0, q4_0, q4_0.q, nibble_of_32);
  check_bits(DType::kQ4_1, q4_1, q4_1.q, nibble_of_32);
  check_bits(DType::kQ5_0, q5_0, q5_0.q, nibble_of_32);
  check_bits(DType::kQ5_0, q5_0, q5_0.high, fifth_bit_of_32);
  check_bits(DType::kQ5_1, q5_1, q5_1.q, nibble_of_32);
  check_bits(DType::kQ5_1, q5_1, q5_1.high, fifth_bit_of_32);
}

TEST_CASE("each bit of a super-block's codes belongs to one element") {
  BlockQ4_K q4 = {};
  BlockQ5_K q5 = {};
  BlockQ6_K q6 = {};
  q4.d = q5.d = q6.d = kOne;
  for (std::size_t i = 0; i < 4; ++i) {  // every factor of a scale is 1
    q4.factors[i] = q4.factors[8 + i] = q5.factors[i] = q5.factors[8 + i] = 1;
  }
  for (std::int8_t& factor : q6.factors) factor = 1;
  check_bits(DType::kQ4_K, q4, q4.q, nibble_of_256);
  check_bits(DType::kQ5_K, q5, q5.q, nibble_of_256);
  check_bits(DType::kQ5_K, q5, q5.high, [](std::size_t byte, int bit) -> Place {
    return {static_cast<std::size_t>(bit) * 32 + byte, 16};
  });
  check_bits(DType::kQ6_K, q6, q6.q, [](std::size_t byte, int bit) -> Place {
    const std::size_t low = byte / 64 * 128 + byte % 64;
    return {bit < 4 ? low : low + 64, 1 << (bit % 4)};
  });
  check_bits(DType::kQ6_K, q6, q6.high, [](std::size_t byte, int bit) -> Place {
    const auto run = static_cast<std::size_t>(bit / 2);
    return {byte / 32 * 128 + run * 32 + byte % 32, bit % 2 == 0 ? 16 : 32};
  });
}

// Factors of 6 bits, with the bits that lie apart (above the fourth) unlike the rest.
constexpr std::uint8_t kScales[8] = {63, 1, 32, 21, 0b10'0001, 0b01'1110, 0b11'0000, 0b00'1111};
constexpr std::uint8_t kMinima[8] = {2, 62, 0, 42, 0b01'0100, 0b10'1011, 0b00'0110, 0b11'1001};
constexpr std::uint8_t kFactors[12] = {
    0b10'111111, 0b01'000001, 0b11'100000, 0b00'010101,  // scales 0 to 3, tops of 4 to 7
    0b01'000010, 0b10'111110, 0b00'000000, 0b11'101010,  // minima, the same
    0b0100'0001, 0b1011'1110, 0b0110'0000, 0b1001'1111,  // minima and scales 4 to 7
};

template <class Block>
void check_factors(DType type) {
  Block block = {};
  block.d = f32_to_f16(-0.5f);
  block.m = f32_to_f16(0.25f);
  std::memcpy(block.factors, kFactors, sizeof(kFactors));
  for (std::uint8_t& pair : block.q) pair = 0x93;  // 3 in runs of even number, else 9
  const std::vector<float> values = values_of(type, block);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t run = i / 32;
    CAPTURE(name(type), i);
    CHECK(values[i] == -0.5f * kScales[run] * (run % 2 == 0 ? 3.0f : 9.0f) - 0.25f * kMinima[run]);
  }
}

TEST_CASE("the 6-bit factors of a super-block are put together") {
  check_factors<BlockQ4_K>(DType::kQ4_K);
  check_factors<BlockQ5_K>(DType::kQ5_K);
}

TEST_CASE("the factors of Q6_K are signed and hold for 16 elements") {
  BlockQ6_K block = {};
  block.d = f32_to_f16(0.125f);
  for (int i = 0; i < 16; ++i) block.factors[i] = static_cast<std::int8_t>(i * 17 - 128);
  const std::vector<float> values = values_of(DType::kQ6_K, block);
  for (std::size_t i = 0; i < 256; ++i) {
    CAPTURE(i);
    CHECK(values[i] == 0.125f * (static_cast<float>(i / 16) * 17.0f - 128.0f) * -32.0f);
  }
}

TEST_CASE("zeros keep their sign where nothing is added") {
  BlockQ5_0 q5 = {};
  q5.d = f32_to_f16(-1.0f);
  for (std::uint8_t& bits : q5.high) bits = 0xff;  // 16 - 16
  CHECK(std::signbit(values_of(DType::kQ5_0, q5)[5]));
  BlockQ4_K q4 = {};
  q4.d = f32_to_f16(-1.0f);
  q4.factors[0] = 1;
  CHECK(std::signbit(values_of(DType::kQ4_K, q4)[0]));  // -0 less 0
  BlockQ5_1 q5_1 = {};
  q5_1.d = f32_to_f16(-1.0f);
  CHECK_FALSE(std::signbit(values_of(DType::kQ5_1, q5_1)[0]));  // -0 plus 0
}

TEST_CASE("codes are those of the run, and float formats have none") {
  BlockQ6_K block = {};
  for (std::uint8_t& byte : block.q) byte = 0xff;
  block.high[32 + 7] = 0b11'01'10'00;  // element 7 of runs 4 to 7
  block.d = f32_to_f16(2.0f);
  block.factors[13] = -5;
  const auto* const row = reinterpret_cast<const std::byte*>(&block);
  CHECK(read_codes(DType::kQ6_K, row, 4).q[7] == 15);
  CHECK(read_codes(DType::kQ6_K, row, 5).q[7] == 15 + 32);
  CHECK(read_codes(DType::kQ6_K, row, 6).q[7] == 15 + 16);
  CHECK(read_codes(DType::kQ6_K, row, 7).q[7] == 15 + 48);
  CHECK(read_codes(DType::kQ6_K, row, 6).scale(0) == 0.0f);
  CHECK(read_codes(DType::kQ6_K, row, 6).scale(1) == -10.0f);
  for (const DType type : test::kFloatTypes) CHECK_THROWS_AS(read_codes(type, row, 0), Error);
}

// Written by make_blocks.py.
TEST_CASE("rows of every quantised type have the values that the gguf package gives them") {
  const std::string file = base::read_text_file(INCIPIT_TEST_DATA "/tensor/blocks.bin", 1 << 20);
  base::ByteReader in(base::as_bytes(file), "blocks.bin");
  for (const DType type : test::kQuantizedTypes) {
    const base::Bytes letters = in.take(in.read<std::uint8_t>());
    REQUIRE(std::string_view(reinterpret_cast<const char*>(letters.data()), letters.size()) ==
            name(type));
    const auto elements = in.read<std::uint32_t>();
    const base::Bytes row = in.take(row_bytes(type, elements));
    std::vector<float> values(elements);
    dequantize_row(type, row.data(), values);
    for (std::size_t i = 0; i < elements; ++i) {
      CAPTURE(name(type), i, values[i]);
      CHECK(std::bit_cast<std::uint32_t>(values[i]) == in.read<std::uint32_t>());
    }
  }
  CHECK(in.remaining() == 0);
}

}  // namespace
}  // namespace incipit::tensor
