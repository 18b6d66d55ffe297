// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/product.cuh"

#include "cuda/kernel_test.h"
#include "cuda/kernels/pack_weight.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

using tensor::DType;
__extension__ using Int128 = __int128;

struct Sizes {
  unsigned rows = 1, outputs = 1, columns = 32;
};

/// Rounds x, multiplies it in the shape that its rows ask for, or in `Shape`.
template <class Weight, class Shape = void>
std::vector<float> multiply(cuda::Stream stream, const Sizes& sizes, const std::vector<float>& x,
                            const Weight& weight, const std::vector<float>& bias = {}) {
  using T = typename Weight::T;
  constexpr unsigned kGap = 3;  // rows of the result do not begin at even addresses
  const unsigned stride = sizes.outputs + kGap;
  DeviceArray<float> device_x(x), device_bias(bias), scales(sizes.rows, std::nanf(""));
  DeviceArray<T> rounded_x(std::size_t{sizes.rows} * cuda::product_columns(sizes.columns),
                           T{0xffff});
  DeviceArray<float> out(std::size_t{sizes.rows} * stride, -7.0f);
  cuda::RoundRowsParams<T> round;
  round.x = device_x.data();
  round.x_stride = sizes.columns;
  round.out = rounded_x.data();
  round.scales = scales.data();
  round.rows = sizes.rows;
  round.columns = sizes.columns;
  cuda::round_rows(stream, round);
  cuda::ProductParams<Weight> params;
  params.x = rounded_x.data();
  params.scales = scales.data();
  params.weight = weight;
  params.bias = bias.empty() ? nullptr : device_bias.data();
  params.out = out.data();
  params.out_stride = stride;
  params.rows = sizes.rows;
  if constexpr (std::is_void_v<Shape>) {
    cuda::product(stream, params);
  } else {
    cuda::product_in_shape<Shape>(stream, params);
  }
  std::vector<float> result;
  const std::vector<float> all = out.read();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % stride < sizes.outputs) {
      result.push_back(all[i]);
    } else if (all[i] != -7.0f) {
      FAIL_CHECK("wrote between the rows");
    }
  }
  return result;
}

/// A weight of F16 or BF16 on the device, and its values.
template <class T>
struct PlainMatrix {
  using Weight = cuda::PlainWeight<T>;
  PlainMatrix(const Sizes& sizes, unsigned seed)
      : stride((sizes.columns + 7) / 8 * 8), device(make(sizes, seed)) {
    weight.data = device.data();
    weight.stride = stride;
    weight.outputs = sizes.outputs;
    weight.columns = sizes.columns;
  }
  std::vector<T> make(const Sizes& sizes, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<T> padded(std::size_t{sizes.outputs} * stride, T{0});
    for (unsigned n = 0; n < sizes.outputs; ++n) {
      for (unsigned k = 0; k < sizes.columns; ++k) {
        padded[n * stride + k] = random_values<T>(random, 1)[0];
        values.push_back(value_of(padded[n * stride + k]));
      }
    }
    return padded;
  }
  static constexpr double kError = kRounding<T>;
  unsigned stride;
  std::vector<double> values;  // [outputs, columns]
  DeviceArray<T> device;
  Weight weight;
};

template <DType kType>
struct CodingOf;
template <>
struct CodingOf<DType::kQ8_0> {
  using Type = cuda::CodingQ8_0;
};
template <>
struct CodingOf<DType::kQ4_0> {
  using Type = cuda::CodingQ4_0;
};
template <>
struct CodingOf<DType::kQ4_1> {
  using Type = cuda::CodingQ4_1;
};
template <>
struct CodingOf<DType::kQ4_K> {
  using Type = cuda::CodingQ4_1;
};
template <>
struct CodingOf<DType::kQ6_K> {
  using Type = cuda::CodingQ6_K;
};

/// Random codes as a file has them, packed in two parts.
template <DType kType>
struct CodedMatrix {
  using Code = typename CodingOf<kType>::Type;
  using Weight = cuda::CodedWeight<Code>;
  CodedMatrix(const Sizes& sizes, unsigned seed) : device(make(sizes, seed)) {
    weight.data = device.data();
    weight.outputs = sizes.outputs;
    weight.columns = sizes.columns;
  }
  std::vector<unsigned char> make(const Sizes& sizes, unsigned seed) {
    std::mt19937 random(seed);
    const std::size_t row_bytes = tensor::row_bytes(kType, sizes.columns);
    std::vector<std::byte> file(sizes.outputs * row_bytes);
    for (std::byte& byte : file) byte = static_cast<std::byte>(random() & 0xffu);
    const auto number = [&](std::size_t at, float scale) {
      const auto bits = rounded<cuda::F16>(random_values<float>(random, 1)[0] * scale).bits;
      std::memcpy(&file[at], &bits, sizeof bits);
    };
    const std::size_t block = tensor::block_bytes(kType);
    for (std::size_t at = 0; at < file.size(); at += block) {
      if (kType == DType::kQ6_K) {
        number(at + block - 2, 2e-4f);
      } else {
        number(at, kType == DType::kQ4_K ? 0.003f : kType == DType::kQ8_0 ? 0.01f : 0.1f);
        if (tensor::has_minimum(kType)) number(at + 2, kType == DType::kQ4_K ? 0.02f : 1.0f);
      }
    }
    values.resize(std::size_t{sizes.outputs} * sizes.columns);
    for (std::size_t n = 0; n < sizes.outputs; ++n) {
      for (std::size_t run = 0; run < sizes.columns / tensor::kRun; ++run) {
        const auto codes = tensor::read_codes(kType, &file[n * row_bytes], run);
        for (std::size_t j = 0; j < tensor::kRun; ++j) {
          double& value = values[n * sizes.columns + run * tensor::kRun + j];
          value = value_of(codes.scale(j / 16)) * (codes.q[j] - tensor::code_offset(kType));
          if (tensor::has_minimum(kType)) value += value_of(codes.minimum(kType));
        }
      }
    }
    std::vector<unsigned char> packed(Weight::bytes(sizes.outputs, sizes.columns), 0);
    const std::size_t half = sizes.outputs / 2;
    const std::span<const std::byte> bytes(file);
    cuda::pack_rows<Code>(kType, 0, half, sizes.columns, bytes.first(half * row_bytes), packed);
    cuda::pack_rows<Code>(kType, half, sizes.outputs - half, sizes.columns,
                          bytes.subspan(half * row_bytes), packed);
    return packed;
  }
  // The weight's own rounding, and that of scales and minima with factors.
  static constexpr double kError = kRounding<cuda::F16> * (tensor::has_factors(kType) ? 3 : 1);
  std::vector<double> values;
  DeviceArray<unsigned char> device;
  Weight weight;
};

template <class Matrix>
void check_product(const Sizes& sizes, float scale = 1.0f) {
  CAPTURE(sizes.rows, sizes.outputs, sizes.columns, scale);
  std::mt19937 random(sizes.rows + sizes.columns);
  Matrix matrix(sizes, sizes.outputs);
  const auto x = random_values<float>(random, std::size_t{sizes.rows} * sizes.columns, scale);
  const auto bias = random_values<float>(random, sizes.outputs, scale);
  const auto got = run([&](cuda::Stream s) { return multiply(s, sizes, x, matrix.weight, bias); });
  REQUIRE(got.size() == std::size_t{sizes.rows} * sizes.outputs);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t row = i / sizes.outputs, output = i % sizes.outputs;
    double sum = value_of(bias[output]), allowed = 0.0, largest = 0.0;
    for (std::size_t k = 0; k < sizes.columns; ++k) {
      largest = std::max(largest, std::abs(matrix.values[output * sizes.columns + k]));
    }
    for (std::size_t k = 0; k < sizes.columns; ++k) {
      const double weight = matrix.values[output * sizes.columns + k];
      sum += value_of(x[row * sizes.columns + k]) * weight;
      allowed += std::abs(value_of(x[row * sizes.columns + k])) * largest;
    }
    if (!is_near(value_of(got[i]), sum, 0.0, 1.5 * Matrix::kError * allowed)) {
      CAPTURE(row, output, got[i], sum);
      FAIL_CHECK("not near");
      return;
    }
  }
}

template <class Matrix>
void check_products(unsigned unit) {
  check_product<Matrix>({1, 40, 3 * unit});
  check_product<Matrix>({5, 37, unit});
  check_product<Matrix>({16, 64, 2 * unit});
  check_product<Matrix>({23, 72, 5 * unit}, 3e4f);
  check_product<Matrix>({2, 8, unit}, 1e-30f);
}

/// Rows of one 1 each read every weight as it was rounded.
template <DType kType>
void check_weights(unsigned columns) {
  const Sizes sizes = {columns, 11, columns};
  CodedMatrix<kType> matrix(sizes, 5);
  std::vector<float> x(std::size_t{columns} * columns, 0.0f);
  for (unsigned k = 0; k < columns; ++k) x[k * columns + k] = 1.0f;
  const auto got = run([&](cuda::Stream s) { return multiply(s, sizes, x, matrix.weight); });
  unsigned wrong = 0;
  for (unsigned k = 0; k < columns; ++k) {
    for (unsigned n = 0; n < sizes.outputs; ++n) {
      const double weight = matrix.values[n * columns + k];
      // Where a weight is a small difference, the parts' own rounding shows.
      const double error = kType == DType::kQ4_K ? 5 * kRounding<cuda::F16> : 0x1p-25;
      if (!is_near(value_of(got[k * sizes.outputs + n]), weight, matrix.kError, error)) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

/// All shapes of tiles, and all numbers of rows, give a row the same bits.
template <class Matrix>
void check_rows_alone(unsigned columns) {
  const Sizes all = {70, 43, columns};
  std::mt19937 random(columns);
  Matrix matrix(all, 3);
  const auto x = random_values<float>(random, std::size_t{all.rows} * columns, 2.0f);
  const auto& weight = matrix.weight;
  using Weight = typename Matrix::Weight;
  const auto wanted = run([&](cuda::Stream s) { return multiply(s, all, x, weight); });
  const auto once = [&](const auto& body) {
#if INCIPIT_CUDA_EMULATED
    simt::Machine machine;
    machine.options.schedule = simt::Schedule::kRandom;
    return body(&machine);
#else
    return body(cuda::Stream());
#endif
  };
  CHECK(same_bits(
      once([&](cuda::Stream s) { return multiply<Weight, cuda::FewRowsShape>(s, all, x, weight); }),
      wanted));
  CHECK(same_bits(once([&](cuda::Stream s) {
                    return multiply<Weight, cuda::ManyRowsShape>(s, all, x, weight);
                  }),
                  wanted));
  for (const unsigned first : {0u, 1u, 33u, 53u, 69u}) {
    Sizes part = all;
    part.rows = first == 53 ? 17 : 1;
    const std::vector<float> rows(x.begin() + first * columns,
                                  x.begin() + (first + part.rows) * columns);
    const auto got = once([&](cuda::Stream s) { return multiply(s, part, rows, weight); });
    CHECK(std::memcmp(got.data(), &wanted[first * all.outputs], got.size() * 4) == 0);
  }
}

}  // namespace

TEST_CASE("products of 16-bit weights against float64") {
  check_products<PlainMatrix<cuda::BF16>>(40);
  check_products<PlainMatrix<cuda::F16>>(40);
  check_product<PlainMatrix<cuda::BF16>>({3, 9, 13});
  check_product<PlainMatrix<cuda::F16>>({300, 130, 64});
}

TEST_CASE("products of quantised weights against float64") {
  check_products<CodedMatrix<DType::kQ8_0>>(32);
  check_products<CodedMatrix<DType::kQ4_0>>(32);
  check_products<CodedMatrix<DType::kQ4_1>>(32);
  check_products<CodedMatrix<DType::kQ4_K>>(256);
  check_products<CodedMatrix<DType::kQ6_K>>(256);
}

TEST_CASE("each quantised weight is rounded once") {
  check_weights<DType::kQ8_0>(96);
  check_weights<DType::kQ4_0>(96);
  check_weights<DType::kQ4_1>(96);
  check_weights<DType::kQ4_K>(256);
  check_weights<DType::kQ6_K>(256);
}

TEST_CASE("a row's product does not depend on how many rows there are") {
  check_rows_alone<PlainMatrix<cuda::BF16>>(200);
  check_rows_alone<PlainMatrix<cuda::F16>>(72);
  check_rows_alone<CodedMatrix<DType::kQ8_0>>(160);
  check_rows_alone<CodedMatrix<DType::kQ4_0>>(96);
  check_rows_alone<CodedMatrix<DType::kQ4_1>>(64);
  check_rows_alone<CodedMatrix<DType::kQ6_K>>(256);
}

TEST_CASE("F16 products of rows that F16 could not hold") {
  const Sizes sizes = {4, 8, 64};
  PlainMatrix<cuda::F16> matrix(sizes, 1);
  std::vector<float> x(4 * 64, 0.0f);  // the first row stays zero
  for (unsigned k = 0; k < 64; ++k) {
    x[64 + k] = k % 2 == 0 ? 3e38f : -1e36f;
    x[128 + k] = 1e-38f;
    x[192 + k] = k == 7 ? HUGE_VALF : 1.0f;
  }
  const auto got = run([&](cuda::Stream s) { return multiply(s, sizes, x, matrix.weight); });
  for (unsigned n = 0; n < 8; ++n) {
    double tiny = 0.0;
    for (unsigned k = 0; k < 64; ++k) tiny += value_of(1e-38f) * matrix.values[n * 64 + k];
    CHECK(got[n] == 0.0f);
    CHECK(!std::isnan(got[8 + n]));
    CHECK(is_near(value_of(got[16 + n]), tiny, 0.0, 64e-38 * kRounding<cuda::F16>));
    CHECK(!std::isfinite(got[24 + n]));  // the damage shows
  }
}

#if INCIPIT_CUDA_EMULATED
TEST_CASE("products read weights once") {
  const Sizes sizes = {16, 64, 256};
  std::mt19937 random(1);
  const auto x = random_values<float>(random, 16 * 256);
  const CodedMatrix<DType::kQ4_0> matrix(sizes, 2);
  const auto counters = count([&](cuda::Stream s) { multiply(s, sizes, x, matrix.weight); });
  // The rows come once for each of the two tiles of 32 outputs.
  CHECK(counters.async_copy_bytes == 64 * 256 * 9 / 16 + 2 * 16 * 256 * 2);
  CHECK(counters.products == 8 * 16);
  // One row against 16 and against 9 bits.
  const Sizes one = {1, 64, 256};
  const std::vector<float> row(x.begin(), x.begin() + 256);
  const auto read = [&](const auto& weights) {
    return count([&](cuda::Stream s) { multiply(s, one, row, weights.weight); }).async_copy_bytes;
  };
  CHECK(read(PlainMatrix<cuda::BF16>(one, 3)) == 64 * 256 * 2 + 2 * 256 * 2);
  CHECK(read(CodedMatrix<DType::kQ8_0>(one, 3)) == 64 * 256 * 17 / 16 + 2 * 256 * 2);
}

namespace {

template <class Matrix, class Shape>
void check_before_sm_80() {
  using Weight = typename Matrix::Weight;
  const Sizes sizes = {16, 64, 512};
  std::mt19937 random(1);
  const auto x = random_values<float>(random, 16 * 512);
  const Matrix matrix(sizes, 2);
  simt::Machine older, newer;
  older.options.architecture = 75;
  const auto before = multiply<Weight, Shape>(&older, sizes, x, matrix.weight);
  const auto after = multiply<Weight, Shape>(&newer, sizes, x, matrix.weight);
  check_near(before, std::vector<double>(after.begin(), after.end()), 1e-4, 1e-4);
}

}  // namespace

TEMPLATE_TEST_CASE("products before sm_80, in 64 KiB", "", PlainMatrix<cuda::F16>,
                   CodedMatrix<DType::kQ8_0>, CodedMatrix<DType::kQ4_0>,
                   CodedMatrix<DType::kQ6_K>) {
  check_before_sm_80<TestType, cuda::FewRowsShape>();
  check_before_sm_80<TestType, cuda::SomeRowsShape>();
  check_before_sm_80<TestType, cuda::ManyRowsShape>();
}

TEST_CASE("pairs of F16 are rounded once") {
  std::mt19937 random(7);
  const auto scaled = [](std::uint32_t bits) {  // exact in units of 2^-24
    return static_cast<long long>(
        std::ldexp(value_of(cuda::F16{static_cast<std::uint16_t>(bits)}), 24));
  };
  unsigned wrong = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto finite = [&] {
      const auto bits = static_cast<std::uint32_t>(random() & 0xffffu);
      return (bits & 0x7c00u) == 0x7c00u ? bits ^ 0x4000u : bits;
    };
    const std::uint32_t a = finite(), b = finite(), c = finite();
    const std::uint32_t got = cuda::prim::fma_halves(a | b << 16, b | a << 16, c * 0x10001u);
    if (got >> 16 != (got & 0xffffu)) ++wrong;
    if ((got & 0x7fffu) >= 0x7bffu) continue;  // the largest, or infinity
    // In units of 2^-48: no neighbour may be nearer, and of two equally near ones the even is it.
    const Int128 exact =
        static_cast<Int128>(scaled(a)) * scaled(b) + static_cast<Int128>(scaled(c)) * (1LL << 24);
    const auto distance = [&](std::uint32_t bits) {
      const Int128 value = static_cast<Int128>(scaled(bits)) * (1LL << 24);
      return value > exact ? value - exact : exact - value;
    };
    const std::uint32_t half = got & 0xffffu;
    const auto here = distance(half);
    const std::uint32_t larger = half + 1;
    const std::uint32_t smaller = (half & 0x7fffu) == 0 ? half ^ 0x8001u : half - 1;
    for (const std::uint32_t other : {larger, smaller}) {
      const auto there = distance(other);
      if (there < here || (there == here && half % 2 != 0)) ++wrong;
    }
  }
  CHECK(wrong == 0);
}
#endif
