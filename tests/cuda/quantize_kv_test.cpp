// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/quantize_kv.cuh"

#include <limits>

#include "cuda/kernel_test.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

constexpr std::size_t kTokens = device::kBlockTokens;

template <class T>
std::vector<std::byte> quantized(const std::vector<T>& dense, unsigned records, unsigned head_dim) {
  return run([&](cuda::Stream stream) {
    DeviceArray<T> device_dense(dense);
    DeviceArray<std::byte> int8(records * kTokens * (head_dim + 4), std::byte{0xa5});
    cuda::quantize_kv<T>(stream, {device_dense.data(), int8.data(), records, head_dim});
    return int8.read();
  });
}

template <class T>
std::vector<T> dequantized(const std::vector<std::byte>& int8, unsigned records,
                           unsigned head_dim) {
  return run([&](cuda::Stream stream) {
    DeviceArray<std::byte> device_int8(int8);
    DeviceArray<T> dense(records * kTokens * head_dim, rounded<T>(-1.0f));
    cuda::dequantize_kv<T>(stream, {dense.data(), device_int8.data(), records, head_dim});
    return dense.read();
  });
}

int integer_of(const std::vector<std::byte>& int8, unsigned head_dim, std::size_t record,
               std::size_t token, std::size_t i) {
  const std::size_t start = record * kTokens * (head_dim + 4);
  return static_cast<std::int8_t>(int8[start + token * head_dim + i]);
}

float scale_of(const std::vector<std::byte>& int8, unsigned head_dim, std::size_t record,
               std::size_t token) {
  const std::size_t start = record * kTokens * (head_dim + 4);
  float scale = 0.0f;
  std::memcpy(&scale, &int8[start + kTokens * head_dim + 4 * token], sizeof scale);
  return scale;
}

}  // namespace

TEMPLATE_TEST_CASE("quantize_kv rounds to the nearest of 255 integers", "", float, cuda::F16,
                   cuda::BF16) {
  for (const unsigned head_dim : {2u, 30u, 64u, 80u, 96u, 112u, 128u, 256u}) {
    CAPTURE(head_dim);
    std::mt19937 random(head_dim);
    const unsigned records = 3;
    auto dense = random_values<TestType>(random, records * kTokens * head_dim, 3.0f);
    std::fill_n(dense.begin() + head_dim, head_dim, rounded<TestType>(0.0f));  // a token of zeros
    const auto int8 = quantized(dense, records, head_dim);
    const auto back = dequantized<TestType>(int8, records, head_dim);
    std::vector<double> wanted(back.size());
    bool right = true;
    for (std::size_t row = 0; row < records * kTokens; ++row) {
      float top = 0.0f;
      for (std::size_t i = 0; i < head_dim; ++i) {
        const auto value = static_cast<float>(value_of(dense[row * head_dim + i]));
        top = std::max(top, std::abs(value));
      }
      const float scale = scale_of(int8, head_dim, row / kTokens, row % kTokens);
      CHECK(scale == top / 127.0f);
      for (std::size_t i = 0; i < head_dim; ++i) {
        const auto value = static_cast<float>(value_of(dense[row * head_dim + i]));
        const int q = integer_of(int8, head_dim, row / kTokens, row % kTokens, i);
        right &= q == (top == 0.0f ? 0 : static_cast<int>(std::nearbyint(value * (127.0f / top))));
        wanted[row * head_dim + i] = value_of(rounded<TestType>(scale * static_cast<float>(q)));
      }
    }
    CHECK(right);
    check_near(back, wanted, 0.0, 0.0);
  }
}

TEST_CASE("a damaged token shows, a tiny one is zero, and neither hurts its neighbours") {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> dense(kTokens * 64, 1.0f);
  dense[0 * 64 + 63] = std::nanf("");
  dense[1 * 64 + 1] = -infinity;
  std::fill_n(dense.begin() + 2 * 64, 64, 0x1p-101f);
  dense[3 * 64] = -127.0f;
  const auto int8 = quantized(dense, 1, 64);
  CHECK(std::isnan(scale_of(int8, 64, 0, 0)));
  CHECK(std::isnan(scale_of(int8, 64, 0, 1)));
  CHECK(scale_of(int8, 64, 0, 2) == 0.0f);
  CHECK(scale_of(int8, 64, 0, 3) == 1.0f);
  CHECK(integer_of(int8, 64, 0, 3, 0) == -127);
  CHECK(integer_of(int8, 64, 0, 3, 1) == 1);
  CHECK(integer_of(int8, 64, 0, 4, 1) == 127);
  const auto back = dequantized<float>(int8, 1, 64);
  CHECK(std::isnan(back[5]));
  CHECK(back[2 * 64 + 5] == 0.0f);
  CHECK(back[3 * 64] == -127.0f);
}
