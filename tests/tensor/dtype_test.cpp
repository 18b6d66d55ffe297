// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/machine.h"
#include "incipit/error.h"
#include "support/catch.h"
#include "tensor/quantized_blocks.h"

namespace incipit::tensor {
namespace {

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
float from_bits(std::uint32_t value) { return std::bit_cast<float>(value); }

// CHECK for loops of a million, where Catch's own would take seconds.
void require_equal(std::uint32_t got, std::uint32_t wanted, std::uint32_t input) {
  if (got == wanted) return;
  CAPTURE(input);
  REQUIRE(got == wanted);
}

// Floats whose rounding to 10 or 7 bits of fraction is hard: each exponent, and fractions at, just
// below and just above every kind of boundary, and random ones.
std::vector<std::uint32_t> hard_floats() {
  std::vector<std::uint32_t> out;
  std::minstd_rand random(7);
  for (std::uint32_t top = 0; top < 512; ++top) {  // sign and exponent
    for (int bit = 0; bit <= 23; ++bit) {
      for (const std::uint32_t fraction : {(1u << bit) - 1, 1u << bit, (1u << bit) + 1}) {
        for (const std::uint32_t high : {0u, 0x2000u, 0x10000u, 0x7FE000u, 0x7F0000u}) {
          out.push_back((top << 23) | ((fraction ^ high) & 0x7FFFFF));
        }
      }
    }
    for (int i = 0; i < 400; ++i) {
      out.push_back((top << 23) | (static_cast<std::uint32_t>(random()) & 0x7FFFFF));
    }
  }
  return out;
}

// The nearest of all values of a 16-bit format, found by brute force; ties go to the even one.
template <class Expand>
std::uint16_t nearest_of_all(float value, std::uint16_t infinity, Expand expand) {
  const double wanted = std::fabs(static_cast<double>(value));
  // Bits of finite, positive values are ordered; infinity counts as one step past the largest.
  const auto widened = [&](std::uint16_t b) {
    if (b < infinity) return static_cast<double>(expand(b));
    const auto largest = static_cast<std::uint16_t>(infinity - 1);
    const auto second = static_cast<std::uint16_t>(infinity - 2);
    return 2 * static_cast<double>(expand(largest)) - static_cast<double>(expand(second));
  };
  std::uint16_t low = 0, high = infinity;
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (widened(middle) <= wanted ? low : high) = middle;
  }
  const double below = wanted - widened(low), above = widened(high) - wanted;
  const bool up = above < below || (above == below && (high & 1) == 0);
  return static_cast<std::uint16_t>((up ? high : low) | (std::signbit(value) ? 0x8000 : 0));
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) std::uint16_t hardware_f16(float value) {
  return static_cast<std::uint16_t>(
      _mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT), 0));
}
__attribute__((target("avx,f16c"))) float hardware_f32(std::uint16_t value) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(value)));
}
#endif

TEST_CASE("formats have names and sizes") {
  CHECK(name(DType::kQ4_1) == "Q4_1");
  CHECK(name(DType::kBF16) == "BF16");
  CHECK(row_bytes(DType::kF32, 3) == 12);
  CHECK(row_bytes(DType::kF16, 3) == 6);
  CHECK(row_bytes(DType::kBF16, 0) == 0);
  CHECK(row_bytes(DType::kQ8_0, 64) == 68);
  CHECK(row_bytes(DType::kQ4_0, 64) == 36);
  CHECK(row_bytes(DType::kQ4_1, 32) == 20);
  CHECK(row_bytes(DType::kQ5_0, 64) == 44);
  CHECK(row_bytes(DType::kQ5_1, 64) == 48);
  CHECK(row_bytes(DType::kQ4_K, 512) == 288);
  CHECK(row_bytes(DType::kQ5_K, 512) == 352);
  CHECK(row_bytes(DType::kQ6_K, 512) == 420);
  CHECK(name(DType::kQ6_K) == "Q6_K");
  CHECK(is_quantized(DType::kQ8_0));
  CHECK(is_quantized(DType::kQ5_K));
  CHECK(!is_quantized(DType::kF16));
  CHECK(block_elements(DType::kQ4_0) == 32);
  CHECK(block_elements(DType::kQ4_K) == 256);
  CHECK(block_elements(DType::kF32) == 1);
}

TEST_CASE("a row that is no whole number of blocks is refused") {
  CHECK_THROWS_AS(row_bytes(DType::kQ4_1, 31), Error);
  CHECK_THROWS_AS(row_bytes(DType::kQ8_0, 33), Error);
  CHECK_THROWS_AS(row_bytes(DType::kQ6_K, 32), Error);
  CHECK_THROWS_AS(row_bytes(DType::kF32, std::numeric_limits<std::size_t>::max()), Error);
  CHECK(row_bytes(DType::kQ8_0, 0) == 0);
}

TEST_CASE("every f16 survives a round trip") {
  for (std::uint32_t b = 0; b <= 0xFFFF; ++b) {
    const auto half = static_cast<std::uint16_t>(b);
    const float wide = f16_to_f32(half);
    if (std::isnan(wide)) {
      require_equal(f32_to_f16(wide), b | 0x0200, b);  // quiet
    } else {
      require_equal(f32_to_f16(wide), b, b);
    }
  }
  CHECK(f16_to_f32(0x3C00) == 1.0f);
  CHECK(f16_to_f32(0x0001) == 0x1p-24f);
  CHECK(f16_to_f32(0x7BFF) == 65504.0f);
  CHECK(bits(f16_to_f32(0x8000)) == 0x80000000);
  CHECK(f16_to_f32(0xFC00) == -std::numeric_limits<float>::infinity());
}

TEST_CASE("f32 rounds to the nearest f16") {
  for (const std::uint32_t b : hard_floats()) {
    const float value = from_bits(b);
    if (std::isnan(value)) continue;
    require_equal(f32_to_f16(value), nearest_of_all(value, 0x7C00, f16_to_f32), b);
  }
}

TEST_CASE("f32 rounds to the nearest bf16, and NaN stays a quiet NaN") {
  for (const std::uint32_t b : hard_floats()) {
    const float value = from_bits(b);
    if (std::isnan(value)) {
      require_equal(f32_to_bf16(value), (b >> 16) | 0x0040, b);
    } else {
      require_equal(f32_to_bf16(value), nearest_of_all(value, 0x7F80, bf16_to_f32), b);
    }
  }
  for (std::uint32_t b = 0; b <= 0xFFFF; ++b) {
    const auto brain = static_cast<std::uint16_t>(b);
    const bool is_nan = std::isnan(bf16_to_f32(brain));
    require_equal(f32_to_bf16(bf16_to_f32(brain)), is_nan ? b | 0x0040 : b, b);
  }
}

#if defined(__x86_64__)
TEST_CASE("f16 conversions are those of F16C to the bit") {
  if (!base::cpu_features().avx2) {
    WARN("skipped: this CPU has no F16C");
    return;
  }
  for (std::uint32_t b = 0; b <= 0xFFFF; ++b) {
    const auto half = static_cast<std::uint16_t>(b);
    require_equal(bits(f16_to_f32(half)), bits(hardware_f32(half)), b);
  }
  for (const std::uint32_t b : hard_floats()) {
    require_equal(f32_to_f16(from_bits(b)), hardware_f16(from_bits(b)), b);
  }
}
#endif

std::vector<float> expand(DType type, const std::vector<std::byte>& bytes, std::size_t count) {
  REQUIRE(bytes.size() == row_bytes(type, count));
  std::vector<float> out(count);
  dequantize_row(type, bytes.data(), out);
  return out;
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

TEST_CASE("float rows expand element by element") {
  const std::vector<float> wanted = {1.0f, -2.5f, 0.0f};
  CHECK(expand(DType::kF32, bytes_of(wanted), 3) == wanted);
  CHECK(expand(DType::kF16, bytes_of<std::uint16_t>({0x3C00, 0xC100, 0}), 3) == wanted);
  CHECK(expand(DType::kBF16, bytes_of<std::uint16_t>({0x3F80, 0xC020, 0}), 3) == wanted);
  CHECK(expand(DType::kF32, {}, 0).empty());
  CHECK(expand(DType::kQ4_1, {}, 0).empty());
}

TEST_CASE("quantised rows follow their formula") {
  const std::uint16_t scale[2] = {f32_to_f16(0.5f), f32_to_f16(-3.0f)};
  const std::uint16_t minimum[2] = {f32_to_f16(-0.25f), f32_to_f16(100.0f)};
  std::vector<BlockQ8_0> q8(2);
  std::vector<BlockQ4_0> q4_0(2);
  std::vector<BlockQ4_1> q4_1(2);
  for (std::size_t b = 0; b < 2; ++b) {
    q8[b].d = q4_0[b].d = q4_1[b].d = scale[b];
    q4_1[b].m = minimum[b];
    for (std::size_t j = 0; j < 32; ++j) q8[b].q[j] = static_cast<std::int8_t>(j * 8 - 128);
    for (std::size_t j = 0; j < 16; ++j) {  // low nibble j, high nibble 15 - j
      q4_0[b].q[j] = q4_1[b].q[j] = static_cast<std::uint8_t>(j | ((15 - j) << 4));
    }
  }
  const auto r8 = expand(DType::kQ8_0, bytes_of(q8), 64);
  const auto r4_0 = expand(DType::kQ4_0, bytes_of(q4_0), 64);
  const auto r4_1 = expand(DType::kQ4_1, bytes_of(q4_1), 64);
  for (int i = 0; i < 64; ++i) {
    const int b = i / 32, j = i % 32;
    const float d = b == 0 ? 0.5f : -3.0f;
    const float m = b == 0 ? -0.25f : 100.0f;
    const int nibble = j < 16 ? j : 15 - (j - 16);
    const auto at = static_cast<std::size_t>(i);
    CAPTURE(i);
    CHECK(r8[at] == d * static_cast<float>(j * 8 - 128));
    CHECK(r4_0[at] == d * static_cast<float>(nibble - 8));
    CHECK(r4_1[at] == d * static_cast<float>(nibble) + m);
  }
}

TEST_CASE("a row may begin at any address") {
  std::vector<BlockQ8_0> block(1);
  block[0].d = f32_to_f16(1.0f);
  for (std::size_t j = 0; j < 32; ++j) block[0].q[j] = static_cast<std::int8_t>(j);
  std::vector<std::byte> shifted(sizeof(BlockQ8_0) + 1);
  std::memcpy(shifted.data() + 1, block.data(), sizeof(BlockQ8_0));
  std::vector<float> out(32);
  dequantize_row(DType::kQ8_0, shifted.data() + 1, out);
  CHECK(out[31] == 31.0f);
}

TEST_CASE("a row that is no whole number of blocks is not expanded") {
  std::vector<float> out(31);
  CHECK_THROWS_AS(dequantize_row(DType::kQ4_0, nullptr, out), Error);
}

}  // namespace
}  // namespace incipit::tensor
