// SPDX-License-Identifier: Apache-2.0
// Each operation of the seam, one body for every CPU path, against double precision; and the rule
// that a row's result depends neither on the other rows nor on the number of threads.
#include "cpu/cpu_device.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/machine.h"
#include "cpu/kv_order.h"
#include "incipit/error.h"
#include "support/catch.h"
#include "support/quantize.h"

using namespace incipit;
using tensor::ConstMatrix;
using tensor::DType;
using tensor::Matrix;

namespace {

constexpr DType kTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16,
                            DType::kQ8_0, DType::kQ4_0, DType::kQ4_1};

std::vector<CpuPath> paths() {
  std::vector<CpuPath> out = {CpuPath::kScalar};
  if (base::cpu_features().avx2) out.push_back(CpuPath::kAvx2);
  if (base::cpu_features().avx512) out.push_back(CpuPath::kAvx512);
  return out;
}

std::unique_ptr<device::Device> make(CpuPath path, unsigned threads = 2,
                                     Activations activations = Activations::kInt8) {
  return cpu::make_cpu_device({path, activations, threads});
}

class Numbers {
 public:
  explicit Numbers(std::uint32_t seed) : random_(seed) {}
  std::vector<float> take(std::size_t count, float scale = 1.0f) {
    std::normal_distribution<float> normal(0.0f, scale);
    std::vector<float> out(count);
    for (float& value : out) value = normal(random_);
    return out;
  }

 private:
  std::mt19937 random_;
};

Matrix view(std::vector<float>& values, std::size_t columns) {
  return {values.data(), values.size() / columns, columns, columns};
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// A weight with the values that its stored form stands for, and their rows as the device has them.
struct TestWeight {
  TestWeight(device::Device& device, DType type, std::size_t n, std::size_t k, Numbers& numbers)
      : rows(n), columns(k) {
    const std::string bytes = test::encode(type, numbers.take(n * k, 0.3f));
    values.resize(n * k);
    for (std::size_t row = 0; row < n; ++row) {
      const std::size_t row_bytes = tensor::row_bytes(type, k);
      tensor::dequantize_row(type, std::as_bytes(std::span(bytes)).data() + row * row_bytes,
                             std::span(values).subspan(row * k, k));
    }
    weight = device.make_weight(type, n, k, std::as_bytes(std::span(bytes)));
  }
  std::size_t rows, columns;
  std::vector<float> values;
  std::unique_ptr<device::Weight> weight;
};

// x as int8 activations stand for it: each block of 32 in steps of its largest magnitude / 127.
std::vector<double> int8_rounded(std::span<const float> x) {
  std::vector<double> out(x.size());
  for (std::size_t b = 0; b < x.size(); b += 32) {
    float top = 0.0f;
    for (std::size_t i = b; i < b + 32; ++i) top = std::max(top, std::abs(x[i]));
    const double step = static_cast<double>(top) / 127.0;
    for (std::size_t i = b; i < b + 32; ++i) {
      out[i] = step == 0.0 ? 0.0 : std::nearbyint(static_cast<double>(x[i]) / step) * step;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("products agree with double precision, whatever the shape") {
  const std::pair<std::size_t, std::size_t> shapes[] = {{1, 32},   {15, 64},  {16, 96},
                                                        {17, 160}, {33, 576}, {208, 32}};
  for (const CpuPath path : paths()) {
    const auto device = make(path);
    for (const DType type : kTypes) {
      for (const auto& [n, k] : shapes) {
        Numbers numbers(static_cast<std::uint32_t>(n * 1000 + k));
        const TestWeight w(*device, type, n, k, numbers);
        for (const std::size_t m : {1u, 2u, 5u, 7u, 17u, 40u}) {
          const std::vector<float> x = numbers.take(m * k);
          const std::vector<float> bias = numbers.take(n);
          std::vector<float> y(m * n, NAN);
          const device::Product product = {w.weight.get(), bias, view(y, n)};
          device->matmul({x.data(), m, k, k}, std::span(&product, 1));
          double worst = 0.0;
          for (std::size_t i = 0; i < m; ++i) {
            const auto row = std::span(x).subspan(i * k, k);
            const bool int8 = tensor::is_quantized(type);
            const std::vector<double> seen =
                int8 ? int8_rounded(row) : std::vector<double>(row.begin(), row.end());
            for (std::size_t j = 0; j < n; ++j) {
              double exact = static_cast<double>(bias[j]), size = std::abs(exact);
              for (std::size_t c = 0; c < k; ++c) {
                const double term = static_cast<double>(w.values[j * k + c]) * seen[c];
                exact += term;
                size += std::abs(term);
              }
              const double error = std::abs(static_cast<double>(y[i * n + j]) - exact) / size;
              worst = std::isnan(error) ? error : std::max(worst, error);
            }
          }
          CAPTURE(static_cast<int>(path), tensor::name(type), m, n, k);
          // f32 sums of k terms; with int8 activations a value that lies between two steps may
          // round to either.
          CHECK(worst < (tensor::is_quantized(type) ? 4e-4 : 4e-6));
        }
      }
    }
  }
}

TEST_CASE("a row of a product has the same bits among any rows, on any number of threads") {
  const std::size_t n = 83, k = 288, most = 130;
  for (const CpuPath path : paths()) {
    for (const Activations activations : {Activations::kInt8, Activations::kFloat}) {
      for (const DType type : kTypes) {
        std::vector<float> expected;  // of `most` rows
        for (const unsigned threads : {1u, 2u, 3u}) {
          const auto device = make(path, threads, activations);
          Numbers numbers(5);
          const TestWeight w(*device, type, n, k, numbers);
          const TestWeight other(*device, type, 40, k, numbers);
          const std::vector<float> x = numbers.take(most * k);
          for (const std::size_t m :
               {130u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 12u, 13u, 16u, 17u, 31u, 64u, 129u}) {
            std::vector<float> y(m * n, NAN), z(m * 40, NAN);
            const device::Product products[] = {{other.weight.get(), {}, view(z, 40)},
                                                {w.weight.get(), {}, view(y, n)}};
            device->matmul({x.data(), m, k, k}, products);
            if (expected.empty()) expected = y;
            CAPTURE(static_cast<int>(path), tensor::name(type), m, threads);
            CHECK(same_bits(y, std::span(expected).first(m * n)));
          }
        }
      }
    }
  }
}

TEST_CASE("int8 products take zeros, huge and tiny rows") {
  for (const CpuPath path : paths()) {
    const auto device = make(path);
    for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
      Numbers numbers(6);
      const TestWeight w(*device, type, 16, 64, numbers);
      std::vector<float> x(4 * 64, 0.0f);
      for (std::size_t i = 0; i < 64; ++i) {
        x[64 + i] = i % 2 == 0 ? 1e30f : -1e30f;
        x[128 + i] = 1e-42f;  // denormal
        x[192 + i] = i == 40 ? 1.0f : 0.0f;
      }
      std::vector<float> y(4 * 16, NAN);
      const device::Product product = {w.weight.get(), {}, view(y, 16)};
      device->matmul({x.data(), 4, 64, 64}, std::span(&product, 1));
      for (const float value : y) CHECK(std::isfinite(value));
      for (std::size_t j = 0; j < 16; ++j) {
        CHECK(y[j] == 0.0f);
        CHECK(y[48 + j] == Approx(w.values[j * 64 + 40]).margin(1e-6));
      }
    }
  }
}

TEST_CASE("quantised weights that a block format does not fit are refused") {
  const auto device = make(CpuPath::kAuto);
  const std::vector<std::byte> bytes(34 * 4);
  CHECK_THROWS_AS(device->make_weight(DType::kQ8_0, 4, 33, bytes), Error);
}

TEST_CASE("embedding gives the rows as they are stored") {
  for (const CpuPath path : paths()) {
    const auto device = make(path);
    for (const DType type : kTypes) {
      Numbers numbers(7);
      const TestWeight table(*device, type, 37, 64, numbers);
      const std::vector<std::int32_t> ids = {0, 36, 15, 16, 17, 15};
      std::vector<float> out(ids.size() * 64);
      device->embed(*table.weight, ids, view(out, 64));
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto row = std::span(table.values).subspan(static_cast<std::size_t>(ids[i]) * 64, 64);
        CHECK(same_bits(row, std::span(out).subspan(i * 64, 64)));
      }
    }
  }
}

TEST_CASE("rms_norm, also in place and for odd widths") {
  for (const CpuPath path : paths()) {
    const auto device = make(path);
    for (const std::size_t width : {1u, 16u, 31u, 64u, 576u, 1000u}) {
      Numbers numbers(8);
      std::vector<float> x = numbers.take(40 * width, 3.0f);
      const std::vector<float> weight = numbers.take(width);
      std::vector<float> y(x.size());
      device->rms_norm(view(x, width), weight, 1e-5f, view(y, width));
      for (std::size_t row = 0; row < 40; ++row) {
        double squares = 0.0;
        for (std::size_t i = 0; i < width; ++i) squares += std::pow(double(x[row * width + i]), 2);
        const double scale = 1.0 / std::sqrt(squares / double(width) + 1e-5);
        for (std::size_t i = 0; i < width; ++i) {
          CHECK(y[row * width + i] == Approx(double(x[row * width + i]) * scale * double(weight[i]))
                                          .epsilon(2e-6)
                                          .margin(1e-7));
        }
      }
      std::vector<float> one(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(width));
      device->rms_norm(view(one, width), weight, 1e-5f, view(one, width));
      CHECK(same_bits(one, std::span(y).first(width)));
      device->rms_norm(view(x, width), weight, 1e-5f, view(x, width));
      CHECK(same_bits(x, y));
    }
  }
}

TEST_CASE("rope turns pairs of either kind and leaves the rest of a head") {
  const std::size_t heads = 3, dim = 32, rows = 50;
  for (const CpuPath path : paths()) {
    const auto device = make(path);
    for (const std::size_t half : {16u, 10u, 1u}) {
      for (const auto pairs : {device::RopePairs::kHalves, device::RopePairs::kAdjacent}) {
        Numbers numbers(9);
        const std::vector<float> x = numbers.take(rows * heads * dim);
        std::vector<float> angles(rows * 2 * half);
        for (std::size_t i = 0; i < rows * half; ++i) {
          const double angle = 0.37 * double(i);
          angles[i / half * 2 * half + i % half] = float(std::cos(angle));
          angles[i / half * 2 * half + half + i % half] = float(std::sin(angle));
        }
        std::vector<float> y = x;
        device->rope(view(y, heads * dim), dim, view(angles, 2 * half), pairs);
        for (std::size_t row = 0; row < rows; ++row) {
          const float* cos = angles.data() + row * 2 * half;
          for (std::size_t h = 0; h < heads; ++h) {
            const float* in = x.data() + (row * heads + h) * dim;
            std::vector<double> expected(in, in + dim);
            for (std::size_t i = 0; i < half; ++i) {
              const bool halves = pairs == device::RopePairs::kHalves;
              const std::size_t a = halves ? i : 2 * i, b = halves ? i + half : 2 * i + 1;
              const double c = double(cos[i]), s = double(cos[half + i]);
              expected[a] = double(in[a]) * c - double(in[b]) * s;
              expected[b] = double(in[b]) * c + double(in[a]) * s;
            }
            for (std::size_t i = 0; i < dim; ++i) {
              CHECK(y[(row * heads + h) * dim + i] == Approx(expected[i]).margin(1e-6));
            }
          }
        }
        std::vector<float> last(x.end() - heads * dim, x.end());
        device->rope(view(last, heads * dim), dim,
                     {angles.data() + (rows - 1) * 2 * half, 1, 2 * half, 2 * half}, pairs);
        CHECK(same_bits(last, std::span(y).last(heads * dim)));
      }
    }
  }
}

TEST_CASE("swiglu and add") {
  for (const CpuPath path : paths()) {
    const auto device = make(path);
    for (const std::size_t width : {1u, 16u, 33u, 1536u}) {
      Numbers numbers(10);
      std::vector<float> gate = numbers.take(20 * width, 8.0f);
      const std::vector<float> up = numbers.take(20 * width);
      gate[0] = 200.0f;
      if (width > 1) gate[1] = -200.0f;
      std::vector<float> out(gate.size());
      const ConstMatrix up_view = {up.data(), 20, width, width};
      device->swiglu(view(gate, width), up_view, view(out, width));
      for (std::size_t i = 0; i < out.size(); ++i) {
        const double g = double(gate[i]);
        CHECK(out[i] ==
              Approx(g / (1.0 + std::exp(-g)) * double(up[i])).epsilon(2e-6).margin(1e-7));
      }
      std::vector<float> one(width);
      device->swiglu({gate.data() + width, 1, width, width}, {up.data() + width, 1, width, width},
                     view(one, width));
      CHECK(same_bits(one, std::span(out).subspan(width, width)));
      std::vector<float> sum = gate;
      device->add(view(sum, width), up_view);
      for (std::size_t i = 0; i < sum.size(); ++i) CHECK(sum[i] == gate[i] + up[i]);
    }
  }
}

TEST_CASE("append_kv rounds to the pool's type and writes its slots only") {
  const std::size_t layers = 2, kv_heads = 3, dim = 32;
  for (const CpuPath path : paths()) {
    const auto device = make(path);
    for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
      const device::KvLayout layout({layers, kv_heads, dim, type});
      device::Buffer memory = device->allocate(4 * layout.block_bytes());
      std::memset(memory.data(), 0x5a, memory.bytes());
      const device::KvPoolView pool = {memory.data(), 4, layout};
      Numbers numbers(11);
      const std::vector<device::KvSlot> slots = {{2, 0}, {2, 15}, {0, 7}, {3, 8}};
      const std::size_t width = kv_heads * dim;
      const std::vector<float> k = numbers.take(slots.size() * width);
      const std::vector<float> v = numbers.take(slots.size() * width);
      device->append_kv(pool, 1, {k.data(), slots.size(), width, width},
                        {v.data(), slots.size(), width, width}, slots);

      std::vector<std::byte> expected(memory.bytes(), std::byte{0x5a});
      const auto put = [&](std::size_t at, std::size_t index, float value) {
        if (type == DType::kF32) {
          std::memcpy(expected.data() + at + 4 * index, &value, 4);
        } else {
          const std::uint16_t bits =
              type == DType::kF16 ? tensor::f32_to_f16(value) : tensor::f32_to_bf16(value);
          std::memcpy(expected.data() + at + 2 * index, &bits, 2);
        }
      };
      for (std::size_t i = 0; i < slots.size(); ++i) {
        const std::size_t block = slots[i].block * layout.block_bytes();
        for (std::size_t h = 0; h < kv_heads; ++h) {
          for (std::size_t d = 0; d < dim; ++d) {
            const std::size_t from = i * width + h * dim + d;
            const bool wide = type == DType::kF32;
            put(block + layout.k_offset(1, h),
                wide ? cpu::k_index_f32(slots[i].offset, d) : cpu::k_index_16(slots[i].offset, d),
                k[from]);
            put(block + layout.v_offset(1, h),
                wide ? cpu::v_index_f32(slots[i].offset, d, dim)
                     : cpu::v_index_16(slots[i].offset, d, dim),
                v[from]);
          }
        }
      }
      CHECK(std::memcmp(expected.data(), memory.data(), memory.bytes()) == 0);

      device->copy_block(pool, 2, 1);
      CHECK(std::memcmp(pool.block(1), pool.block(2), layout.block_bytes()) == 0);
    }
  }
}

TEST_CASE("gather_rows") {
  const auto device = make(CpuPath::kScalar);
  const std::vector<float> x = Numbers(12).take(10 * 7);
  const std::vector<std::uint32_t> rows = {9, 0, 9};
  std::vector<float> out(3 * 7);
  device->gather_rows({x.data(), 10, 7, 7}, rows, view(out, 7));
  CHECK(same_bits(std::span(out).first(7), std::span(x).subspan(63, 7)));
  CHECK(same_bits(std::span(out).subspan(7, 7), std::span(x).first(7)));
}

TEST_CASE("memory of the device is zeroed and aligned") {
  const auto device = make(CpuPath::kAuto);
  for (const std::size_t bytes : {1u, 64u, 4097u, 5000000u}) {
    const device::Buffer buffer = device->allocate(bytes);
    CHECK(buffer.bytes() >= bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
    bool zero = true;
    for (std::size_t i = 0; i < bytes; ++i) zero = zero && buffer.data()[i] == std::byte{0};
    CHECK(zero);
  }
  CHECK_THROWS_AS(device->allocate(std::size_t{1} << 62), Error);
}

TEST_CASE("the numerics name tells paths and activations apart") {
  std::vector<std::string> names;
  for (const CpuPath path : paths()) {
    for (const Activations activations : {Activations::kInt8, Activations::kFloat}) {
      names.push_back(make(path, 1, activations)->info().numerics);
    }
  }
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  CHECK(make(CpuPath::kAuto, 1)->info().numerics == make(CpuPath::kAuto, 3)->info().numerics);
}
