// SPDX-License-Identifier: Apache-2.0
// Each operation of the seam against double precision: one body for every device. And the rule that
// a row's result depends neither on the rows around it nor on the number of threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/machine.h"
#include "cpu/cpu_device.h"
#include "device/device.h"
#include "support/catch.h"
#include "support/random_matrix.h"
#include "support/weight_types.h"

using namespace incipit;
using namespace incipit::testing;
using device::RopePairs;
using tensor::DType;
using test::kWeightTypes;
using test::whole_blocks;

namespace {

using Devices = std::vector<std::unique_ptr<device::Device>>;

/// Every device of this machine; device::DeviceInfo::numerics names it.
Devices devices(unsigned threads = 2, Activations activations = Activations::kMixed) {
  Devices out;
  const base::CpuFeatures features = base::cpu_features();
  const auto add = [&](CpuPath path) {
    out.push_back(cpu::make_cpu_device({path, activations, threads}));
  };
  add(CpuPath::kScalar);
  if (features.avx2) add(CpuPath::kAvx2);
  if (features.avx512) add(CpuPath::kAvx512);
  return out;
}

/// The values that a weight's bytes stand for, [rows, columns].
std::vector<float> values_of(DType type, const std::vector<std::byte>& bytes, std::size_t columns) {
  const std::size_t row_bytes = tensor::row_bytes(type, columns);
  std::vector<float> values(bytes.size() / row_bytes * columns);
  for (std::size_t row = 0; row < bytes.size() / row_bytes; ++row) {
    tensor::dequantize_row(type, bytes.data() + row * row_bytes,
                           std::span(values).subspan(row * columns, columns));
  }
  return values;
}

/// What integer activations stand for: each block of 32 in steps of its largest magnitude / 127, or
/// / 16256 where that is above 2 (kInt8: 6) times the row's root mean square.
std::vector<double> integer_values(Activations activations, std::span<const float> x,
                                   std::size_t columns) {
  const double fine_ratio = activations == Activations::kInt8 ? 36.0 : 4.0;
  std::vector<double> out(x.size());
  double squares = 0.0;
  for (std::size_t b = 0; b < x.size(); b += 32) {
    if (b % columns == 0) {
      squares = 0.0;
      for (const double v : x.subspan(b, columns)) squares += v * v;
    }
    float top = 0.0f;
    for (std::size_t i = b; i < b + 32; ++i) top = std::max(top, std::abs(x[i]));
    const double large = std::pow(static_cast<double>(top), 2.0) * static_cast<double>(columns);
    const float steps = large > fine_ratio * squares ? 16256.0f : 127.0f;
    const double step = static_cast<double>(top) / static_cast<double>(steps);
    for (std::size_t i = b; i < b + 32; ++i) {
      // In f32, so that ties fall as they do on the device.
      const float q = std::nearbyint(x[i] * (steps / top));
      out[i] = step == 0.0 ? 0.0 : static_cast<double>(q) * step;
    }
  }
  return out;
}

/// What an activation is rounded to where BF16 weights are multiplied by BF16 dot products.
double bf16_value(float x) {
  return static_cast<double>(tensor::bf16_to_f32(tensor::f32_to_bf16(x)));
}

/// The largest error of y = x w^T + bias, as a share of the sum of the terms' magnitudes.
double worst_error(std::span<const float> y, std::span<const double> x, std::span<const float> w,
                   std::span<const float> bias, std::size_t columns) {
  const std::size_t outputs = bias.size();
  double worst = 0.0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t row = i / outputs, n = i % outputs;
    double sum = static_cast<double>(bias[n]), size = std::abs(sum);
    for (std::size_t k = 0; k < columns; ++k) {
      const double term = static_cast<double>(w[n * columns + k]) * x[row * columns + k];
      sum += term;
      size += std::abs(term);
    }
    const double error = std::abs(static_cast<double>(y[i]) - sum) / size;
    worst = std::isnan(error) ? 1.0 : std::max(worst, error);
  }
  return worst;
}

std::vector<float> multiply(device::Device& device, const device::Weight& weight,
                            const std::vector<float>& x, const std::vector<float>& bias = {}) {
  const tensor::ConstMatrix rows = view(x, weight.columns());
  std::vector<float> out(rows.rows * weight.rows(), NAN);
  const device::Product product = {&weight, bias, view(out, weight.rows())};
  device.matmul(rows, std::span(&product, 1));
  return out;
}

bool near(std::span<const float> got, std::span<const double> expected, double relative = 2e-6,
          double absolute = 1e-7) {
  if (got.size() != expected.size()) return false;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - expected[i]);
    if (!(error <= relative * std::abs(expected[i]) + absolute)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("matmul agrees with double precision, whatever the shape, type and mode") {
  constexpr std::pair<std::size_t, std::size_t> kShapes[] = {{1, 32},  {16, 96},  {17, 160},
                                                             {83, 64}, {33, 576}, {208, 32}};
  std::mt19937 random(1);
  for (const Activations activations :
       {Activations::kMixed, Activations::kInt8, Activations::kFloat}) {
    for (const auto& device : devices(2, activations)) {
      for (const DType type : kWeightTypes) {
        for (const auto& [outputs, least] : kShapes) {
          const std::size_t columns = whole_blocks(type, least);
          const auto bytes = random_weight(random, type, outputs, columns);
          const auto weight = device->make_weight(type, outputs, columns, bytes);
          const auto values = values_of(type, bytes, columns);
          const auto bias = random_floats(random, outputs);
          const bool integers = tensor::is_quantized(type) && activations != Activations::kFloat;
          const bool rounds = type == DType::kBF16 && activations != Activations::kFloat &&
                              device->info().numerics.find("bf16dot") != std::string::npos;
          for (const std::size_t rows : {1u, 2u, 7u, 17u, 40u}) {
            auto x = random_floats(random, rows * columns);
            for (std::size_t i = 40; i < x.size(); i += 112) x[i] *= 20.0f;  // stands out
            const auto y = multiply(*device, *weight, x, bias);
            std::vector<double> seen(x.begin(), x.end());
            if (integers) seen = integer_values(activations, x, columns);
            if (rounds) std::ranges::transform(x, seen.begin(), bf16_value);
            CAPTURE(device->info().numerics, tensor::name(type), outputs, columns, rows);
            CHECK(worst_error(y, seen, values, bias, columns) < 4e-6);
          }
        }
      }
    }
  }
}

TEST_CASE("matmul takes several products of one input, quantised and not") {
  std::mt19937 random(2);
  const std::size_t columns = 64;
  for (const auto& device : devices()) {
    for (const std::size_t rows : {1u, 20u}) {
      const auto x = random_floats(random, rows * columns);
      std::vector<std::unique_ptr<device::Weight>> weights;
      std::vector<std::vector<float>> alone, together;
      std::vector<device::Product> products;
      for (const DType type : {DType::kQ4_1, DType::kF32, DType::kQ8_0, DType::kF16}) {
        const std::size_t outputs = 24 + 9 * weights.size();
        weights.push_back(device->make_weight(type, outputs, columns,
                                              random_weight(random, type, outputs, columns)));
        alone.push_back(multiply(*device, *weights.back(), x));
        together.emplace_back(rows * outputs, NAN);
      }
      for (std::size_t i = 0; i < weights.size(); ++i) {
        products.push_back({weights[i].get(), {}, view(together[i], weights[i]->rows())});
      }
      device->matmul(view(x, columns), products);
      for (std::size_t i = 0; i < weights.size(); ++i) CHECK(same_bits(together[i], alone[i]));
    }
  }
}

TEST_CASE("a weight is read once, in order, a few whole rows at a time") {
  const std::size_t rows = 5003, columns = 640;
  std::vector<float> values(rows * columns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 10007);
  const auto bytes = std::as_bytes(std::span(values));
  for (const auto& device : devices()) {
    std::size_t position = 0, largest = 0;
    const auto weight =
        device->make_weight(DType::kF32, rows, columns, [&](std::span<std::byte> next) {
          REQUIRE(next.size() <= bytes.size() - position);
          REQUIRE(next.size() % (columns * sizeof(float)) == 0);
          std::ranges::copy(bytes.subspan(position, next.size()), next.begin());
          position += next.size();
          largest = std::max(largest, next.size());
        });
    CAPTURE(device->info().numerics);
    CHECK(position == bytes.size());
    CHECK(largest <= std::size_t{5} << 20);
    const std::vector<std::int32_t> ids = {0, 1599, 1600, 1601, 3210, 5002};
    std::vector<float> out(ids.size() * columns);
    device->embed(*weight, ids, 1.0f, view(out, columns));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto row = static_cast<std::size_t>(ids[i]) * columns;
      CHECK(same_bits(std::span(values).subspan(row, columns),
                      std::span(out).subspan(i * columns, columns)));
    }
  }
}

TEST_CASE("a row of a product has the same bits among any rows, on any number of threads") {
  std::mt19937 random(3);
  const std::size_t outputs = 83, most = 130;
  for (const DType type : kWeightTypes) {
    const std::size_t columns = whole_blocks(type, 288);
    const auto x = random_floats(random, most * columns);
    const auto bytes = random_weight(random, type, outputs, columns);
    for (std::size_t index = 0; index < devices().size(); ++index) {
      std::vector<float> expected;
      for (const unsigned threads : {1u, 2u, 3u}) {
        const auto device = std::move(devices(threads)[index]);
        const auto weight = device->make_weight(type, outputs, columns, bytes);
        for (const std::size_t rows : {130u, 1u, 2u, 3u, 4u, 6u, 7u, 13u, 16u, 17u, 64u, 129u}) {
          const std::vector<float> some(x.begin(),
                                        x.begin() + static_cast<std::ptrdiff_t>(rows * columns));
          const auto y = multiply(*device, *weight, some);
          if (expected.empty()) expected = y;
          CAPTURE(device->info().numerics, tensor::name(type), rows, threads);
          CHECK(same_bits(y, std::span(expected).first(rows * outputs)));
        }
      }
    }
  }
}

TEST_CASE("matmul takes zeros, huge and tiny rows") {
  std::mt19937 random(4);
  for (const auto& device : devices()) {
    for (const DType type : kWeightTypes) {
      const std::size_t columns = whole_blocks(type, 64);
      const auto bytes = random_weight(random, type, 16, columns);
      const auto weight = device->make_weight(type, 16, columns, bytes);
      const auto values = values_of(type, bytes, columns);
      std::vector<float> x(4 * columns, 0.0f);
      for (std::size_t i = 0; i < columns; ++i) {
        x[columns + i] = i % 2 == 0 ? 1e30f : -1e30f;
        x[2 * columns + i] = 1e-42f;  // subnormal
        x[3 * columns + i] = i == 40 ? 1.0f : 0.0f;
      }
      const auto y = multiply(*device, *weight, x);
      CAPTURE(device->info().numerics, tensor::name(type));
      for (std::size_t n = 0; n < 16; ++n) {
        CHECK(y[n] == 0.0f);
        CHECK(std::isfinite(y[16 + n]));
        CHECK(std::abs(y[32 + n]) < 1e-38f);
        CHECK(y[48 + n] == Approx(values[n * columns + 40]).margin(1e-6));
      }
    }
  }
}

TEST_CASE("embed gives the rows of a table as they are stored") {
  std::mt19937 random(5);
  const std::vector<std::int32_t> ids = {0, 36, 15, 16, 17, 15};
  for (const Activations activations :
       {Activations::kMixed, Activations::kInt8, Activations::kFloat}) {
    for (const auto& device : devices(2, activations)) {
      for (const DType type : kWeightTypes) {
        const std::size_t width = whole_blocks(type, 64);
        const auto bytes = random_weight(random, type, 37, width);
        const auto table = device->make_weight(type, 37, width, bytes);
        const auto values = values_of(type, bytes, width);
        std::vector<float> out(ids.size() * width);
        device->embed(*table, ids, 1.0f, view(out, width));
        for (std::size_t i = 0; i < ids.size(); ++i) {
          const auto row = static_cast<std::size_t>(ids[i]) * width;
          CAPTURE(device->info().numerics, tensor::name(type), ids[i]);
          CHECK(same_bits(std::span(values).subspan(row, width),
                          std::span(out).subspan(i * width, width)));
        }
        device->embed(*table, std::span(ids).subspan(1, 1), 0.3f, {out.data(), 1, width, width});
        for (std::size_t i = 0; i < width; ++i) CHECK(out[i] == 0.3f * values[36 * width + i]);
      }
    }
  }
}

TEST_CASE("rms_norm, apart, in place and of a single row") {
  std::mt19937 random(6);
  const std::size_t rows = 40;
  for (const auto& device : devices()) {
    for (const std::size_t width : {1u, 16u, 31u, 64u, 576u, 1000u}) {
      auto x = random_floats(random, rows * width, 3.0f);
      std::fill_n(x.begin(), width, 0.0f);
      const auto weight = random_floats(random, width);
      std::vector<double> expected;
      for (std::size_t row = 0; row < rows; ++row) {
        const auto in = std::span(x).subspan(row * width, width);
        double squares = 0.0;
        for (const float value : in) squares += std::pow(static_cast<double>(value), 2);
        const double scale = 1.0 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
        for (std::size_t i = 0; i < width; ++i) {
          expected.push_back(static_cast<double>(in[i]) * scale * static_cast<double>(weight[i]));
        }
      }
      std::vector<float> y(x.size()), last(x.end() - static_cast<std::ptrdiff_t>(width), x.end());
      device->rms_norm(view(x, width), weight, 1e-5f, view(y, width));
      CAPTURE(device->info().numerics, width);
      CHECK(near(y, expected));
      device->rms_norm(view(last, width), weight, 1e-5f, view(last, width));
      CHECK(same_bits(last, std::span(y).last(width)));
      device->rms_norm(view(x, width), weight, 1e-5f, view(x, width));
      CHECK(same_bits(x, y));
    }
  }
}

TEST_CASE("layer_norm, apart, in place and of a single row") {
  std::mt19937 random(6);
  const std::size_t rows = 40;
  for (const auto& device : devices()) {
    for (const std::size_t width : {1u, 16u, 31u, 64u, 100u, 768u}) {
      auto x = random_floats(random, rows * width, 3.0f);
      for (float& value : x) value += 5.0f;
      const auto weight = random_floats(random, width), bias = random_floats(random, width);
      std::vector<double> expected;
      for (std::size_t row = 0; row < rows; ++row) {
        const auto in = std::span(x).subspan(row * width, width);
        double sum = 0.0, squares = 0.0;
        for (const float value : in) sum += static_cast<double>(value);
        const double mean = sum / static_cast<double>(width);
        for (const float value : in) squares += std::pow(static_cast<double>(value) - mean, 2);
        const double scale = 1.0 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
        for (std::size_t i = 0; i < width; ++i) {
          expected.push_back((static_cast<double>(in[i]) - mean) * scale *
                                 static_cast<double>(weight[i]) +
                             static_cast<double>(bias[i]));
        }
      }
      std::vector<float> y(x.size()), last(x.end() - static_cast<std::ptrdiff_t>(width), x.end());
      device->layer_norm(view(x, width), weight, bias, 1e-5f, view(y, width));
      CAPTURE(device->info().numerics, width);
      CHECK(near(y, expected, 2e-6, 1e-5));  // the mean is rounded
      device->layer_norm(view(last, width), weight, bias, 1e-5f, view(last, width));
      CHECK(same_bits(last, std::span(y).last(width)));
      device->layer_norm(view(x, width), weight, bias, 1e-5f, view(x, width));
      CHECK(same_bits(x, y));
    }
  }
}

TEST_CASE("rope turns pairs of either kind and leaves the rest of a head") {
  std::mt19937 random(7);
  const std::size_t heads = 3, dim = 32, rows = 300;
  for (const auto& device : devices()) {
    for (const std::size_t half : {16u, 10u, 1u}) {
      for (const RopePairs pairs : {RopePairs::kHalves, RopePairs::kAdjacent}) {
        const auto x = random_floats(random, rows * heads * dim);
        const auto angles = random_floats(random, rows * 2 * half);  // any factors will do
        std::vector<double> expected(x.begin(), x.end());
        for (std::size_t i = 0; i < rows * heads * half; ++i) {
          const std::size_t head = i / half, pair = i % half;
          const float* const cosines = angles.data() + head / heads * 2 * half;
          const auto cosine = static_cast<double>(cosines[pair]);
          const auto sine = static_cast<double>(cosines[half + pair]);
          const bool halves = pairs == RopePairs::kHalves;
          const std::size_t a = head * dim + (halves ? pair : 2 * pair);
          const std::size_t b = halves ? a + half : a + 1;
          const auto x_a = static_cast<double>(x[a]), x_b = static_cast<double>(x[b]);
          expected[a] = x_a * cosine - x_b * sine;
          expected[b] = x_b * cosine + x_a * sine;
        }
        std::vector<float> y = x;
        device->rope(view(y, heads * dim), dim, view(angles, 2 * half), pairs);
        CAPTURE(device->info().numerics, half);
        CHECK(near(y, expected, 1e-5));
        std::vector<float> last(x.end() - heads * dim, x.end());
        device->rope(view(last, heads * dim), dim,
                     {angles.data() + (rows - 1) * 2 * half, 1, 2 * half, 2 * half}, pairs);
        CHECK(same_bits(last, std::span(y).last(heads * dim)));
      }
    }
  }
}

namespace {

double activated(device::Activation activation, double x) {
  constexpr double kSqrtTwoByPi = 0.79788456080286535588;
  switch (activation) {
    case device::Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case device::Activation::kGeluTanh:
      return 0.5 * x * (1.0 + std::tanh(kSqrtTwoByPi * (x + 0.044715 * x * x * x)));
    case device::Activation::kRelu:
      return std::max(x, 0.0);
  }
  return x;
}

}  // namespace

TEST_CASE("every activation, gated and not") {
  std::mt19937 random(8);
  const std::size_t rows = 20;
  for (const auto activation :
       {device::Activation::kSilu, device::Activation::kGeluTanh, device::Activation::kRelu}) {
    for (const auto& device : devices()) {
      for (const std::size_t width : {1u, 16u, 33u, 1536u}) {
        const auto gate = random_floats(random, rows * width, 8.0f);
        const auto up = random_floats(random, rows * width);
        std::vector<double> product, plain;
        for (std::size_t i = 0; i < gate.size(); ++i) {
          plain.push_back(activated(activation, static_cast<double>(gate[i])));
          product.push_back(plain.back() * static_cast<double>(up[i]));
        }
        std::vector<float> out(gate.size()), one(width);
        CAPTURE(device->info().numerics, width, static_cast<int>(activation));
        device->activate(activation, view(gate, width), view(up, width), view(out, width));
        CHECK(near(out, product));
        device->activate(activation, {gate.data() + width, 1, width, width},
                         {up.data() + width, 1, width, width}, view(one, width));
        CHECK(same_bits(one, std::span(out).subspan(width, width)));
        device->activate(activation, view(gate, width), {}, view(out, width));
        CHECK(near(out, plain));
        std::vector<float> in_place = gate;
        device->activate(activation, view(in_place, width), {}, view(in_place, width));
        CHECK(same_bits(in_place, out));
      }
    }
  }
}

TEST_CASE("soft_cap and add") {
  std::mt19937 random(8);
  const std::size_t rows = 20;
  for (const auto& device : devices()) {
    for (const std::size_t width : {1u, 16u, 33u, 1536u}) {
      const auto x = random_floats(random, rows * width, 60.0f);
      const auto y = random_floats(random, rows * width);
      std::vector<double> capped, sum;
      for (std::size_t i = 0; i < x.size(); ++i) {
        capped.push_back(30.0 * std::tanh(static_cast<double>(x[i]) / 30.0));
        sum.push_back(static_cast<double>(x[i] + y[i]));
      }
      std::vector<float> out = x, one(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(width));
      CAPTURE(device->info().numerics, width);
      device->soft_cap(view(out, width), 30.0f);
      CHECK(near(out, capped, 2e-6, 2e-6));  // so are numbers next to 1 in it
      device->soft_cap(view(one, width), 30.0f);
      CHECK(same_bits(one, std::span(out).first(width)));
      std::vector<float> added = x;
      device->add(view(added, width), view(y, width));
      CHECK(near(added, sum, 0.0));
    }
  }
}

TEST_CASE("gather_rows takes rows in any order and more than once") {
  std::mt19937 random(9);
  const auto x = random_floats(random, 10 * 7);
  const std::vector<std::uint32_t> rows = {9, 0, 9};
  for (const auto& device : devices()) {
    std::vector<float> out(3 * 7);
    device->gather_rows(view(x, 7), rows, view(out, 7));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(same_bits(std::span(out).subspan(i * 7, 7), std::span(x).subspan(rows[i] * 7, 7)));
    }
  }
}

TEST_CASE("memory is zeroed and aligned, and bytes go there and back") {
  for (const auto& device : devices()) {
    for (const std::size_t bytes : {1u, 64u, 4097u, 5000000u}) {
      const device::Buffer buffer = device->allocate(bytes);
      CHECK(buffer.bytes() == bytes);
      CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
      std::vector<std::byte> out(bytes, std::byte{1});
      device->download(buffer.data(), out);
      CHECK(out == std::vector<std::byte>(bytes));
      const std::vector<std::byte> in(bytes, std::byte{0x5c});
      device->upload(in, buffer.data());
      device->download(buffer.data(), out);
      CHECK(out == in);
    }
    device->upload({}, nullptr);
    device->download(nullptr, {});
  }
}
