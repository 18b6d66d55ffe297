// SPDX-License-Identifier: Apache-2.0
// Norm, sum, activation, rotation and KV of rows: AVX2 and AVX-512 give the same bits, and no
// kernel reads or writes beside what it was given.
#include <algorithm>
#include <limits>

#include "cpu/kernel_fixture.h"
#include "cpu/kv_order.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::testing;
using device::KvFormat;
using device::RopePairs;

namespace {

constexpr float kGap = -98765.0f;

// A matrix with a gap behind each row, on the heap without a float to spare.
struct Rows {
  Rows(const std::vector<float>& from, std::size_t columns_in, std::size_t gap = 3)
      : rows(from.size() / columns_in), columns(columns_in), stride(columns_in + gap) {
    values.assign((rows - 1) * stride + columns, kGap);
    for (std::size_t r = 0; r < rows; ++r) {
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(r * columns), columns,
                  values.begin() + static_cast<std::ptrdiff_t>(r * stride));
    }
  }
  tensor::Matrix view() { return {values.data(), rows, columns, stride}; }
  bool gaps_untouched() const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % stride >= columns && values[i] != kGap) return false;
    }
    return true;
  }

  std::size_t rows, columns, stride;
  std::vector<float> values;
};

// Runs `operation(kernels, rows)` on a copy of `x` on each path. The fast paths must agree to the
// last bit, the scalar path to rounding. Returns the scalar path's result.
template <class Operation>
std::vector<float> on_all_paths(const std::vector<float>& x, std::size_t columns,
                                const Operation& operation) {
  std::vector<float> scalar, fast;
  for (const KernelPath& path : kernel_paths()) {
    CAPTURE(path.name, columns);
    Rows rows(x, columns);
    operation(*path.kernels, rows);
    CHECK(rows.gaps_untouched());
    if (path.name == "scalar") {
      scalar = rows.values;
      continue;
    }
    if (fast.empty()) fast = rows.values;
    CHECK(same_bits(rows.values, fast));
    for (std::size_t i = 0; i < scalar.size(); ++i) {
      CHECK(rows.values[i] == Approx(scalar[i]).epsilon(4e-6).margin(1e-6));
    }
  }
  return scalar;
}

}  // namespace

TEST_CASE("rms_norm on every width") {
  std::mt19937 random(1);
  for (std::size_t columns = 1; columns <= 150; columns += columns < 70 ? 1 : 16) {
    const auto x = random_floats(random, 3 * columns, 2.0f);
    const auto weight = random_floats(random, columns);
    on_all_paths(x, columns, [&](const cpu::Kernels& kernels, Rows& rows) {
      kernels.rms_norm(rows.view(), weight.data(), 1e-5f, rows.view());
    });
  }
}

TEST_CASE("rms_norm of a row of zeros is zero, and of huge values is not a number at worst") {
  for (const KernelPath& path : kernel_paths()) {
    std::vector<float> x(40, 0.0f), out(40, 1.0f);
    const std::vector<float> weight(40, 2.0f);
    path.kernels->rms_norm(view(std::as_const(x), 40), weight.data(), 1e-6f, view(out, 40));
    for (const float value : out) CHECK(value == 0.0f);
    std::fill(x.begin(), x.end(), 1e30f);  // squares overflow, and the scale becomes zero
    path.kernels->rms_norm(view(std::as_const(x), 40), weight.data(), 1e-6f, view(out, 40));
    for (const float value : out) CHECK(value == 0.0f);
  }
}

TEST_CASE("layer_norm on every width") {
  std::mt19937 random(6);
  for (std::size_t columns = 1; columns <= 150; columns += columns < 70 ? 1 : 16) {
    const auto x = random_floats(random, 3 * columns, 2.0f);
    const auto weight = random_floats(random, columns), bias = random_floats(random, columns);
    on_all_paths(x, columns, [&](const cpu::Kernels& kernels, Rows& rows) {
      kernels.layer_norm(rows.view(), weight.data(), bias.data(), 1e-5f, rows.view());
    });
  }
}

TEST_CASE("layer_norm of equal values is the bias") {
  for (const KernelPath& path : kernel_paths()) {
    CAPTURE(path.name);
    const std::vector<float> x(37, 3.0f), weight(37, 2.0f), bias(37, 0.5f);
    std::vector<float> out(37);
    path.kernels->layer_norm(view(x, 37), weight.data(), bias.data(), 1e-5f, view(out, 37));
    for (const float value : out) CHECK(value == 0.5f);
  }
}

TEST_CASE("add on every width") {
  std::mt19937 random(2);
  for (std::size_t columns = 1; columns <= 50; ++columns) {
    const auto x = random_floats(random, 2 * columns);
    const auto y = random_floats(random, 2 * columns);
    const auto sum = on_all_paths(x, columns, [&](const cpu::Kernels& kernels, Rows& rows) {
      kernels.add(rows.view(), view(y, columns));
    });
    CHECK(sum[0] == x[0] + y[0]);
  }
}

TEST_CASE("activations on every width and at the ends of their range") {
  std::mt19937 random(3);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto activation :
       {device::Activation::kSilu, device::Activation::kGeluTanh, device::Activation::kRelu}) {
    CAPTURE(static_cast<int>(activation));
    for (std::size_t columns = 1; columns <= 50; ++columns) {
      const auto gate = random_floats(random, 2 * columns, 6.0f);
      const auto up = random_floats(random, 2 * columns);
      on_all_paths(gate, columns, [&](const cpu::Kernels& kernels, Rows& rows) {
        kernels.activate(activation, rows.view(), view(up, columns), rows.view());
      });
      on_all_paths(gate, columns, [&](const cpu::Kernels& kernels, Rows& rows) {
        kernels.activate(activation, rows.view(), {}, rows.view());
      });
    }
    for (const KernelPath& path : kernel_paths()) {
      CAPTURE(path.name);
      const std::vector<float> gate = {0.0f, 1000.0f, -1000.0f, infinity, std::nanf("")};
      const std::vector<float> up(5, 1.0f);
      std::vector<float> out(5);
      path.kernels->activate(activation, view(gate, 5), view(up, 5), view(out, 5));
      CHECK(out[0] == 0.0f);
      CHECK(out[1] == 1000.0f);
      CHECK(out[2] == Approx(0.0f).margin(1e-30));
      CHECK(out[3] == infinity);
      CHECK(std::isnan(out[4]));
    }
  }
}

TEST_CASE("soft_cap on every width and at the ends of its range") {
  std::mt19937 random(7);
  const float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t columns = 1; columns <= 50; ++columns) {
    const auto x = random_floats(random, 2 * columns, 40.0f);
    on_all_paths(x, columns, [&](const cpu::Kernels& kernels, Rows& rows) {
      kernels.soft_cap(rows.view(), 30.0f);
    });
  }
  for (const KernelPath& path : kernel_paths()) {
    CAPTURE(path.name);
    std::vector<float> x = {0.0f, 1e6f, -1e6f, infinity, -infinity, std::nanf("")};
    path.kernels->soft_cap(view(x, 6), 30.0f);
    CHECK(x[0] == 0.0f);
    CHECK(x[1] == 30.0f);
    CHECK(x[2] == -30.0f);
    CHECK(x[3] == 30.0f);
    CHECK(x[4] == -30.0f);
    CHECK(std::isnan(x[5]));
  }
}

TEST_CASE("rope on every number of pairs, of either kind") {
  std::mt19937 random(4);
  const std::size_t heads = 2;
  for (const RopePairs pairs : {RopePairs::kHalves, RopePairs::kAdjacent}) {
    for (std::size_t half = 0; half <= 40; ++half) {
      const std::size_t head_dim = 2 * half + half % 3 + 1;  // some of a head stays
      const auto x = random_floats(random, 2 * heads * head_dim);
      const auto angles = random_floats(random, 2 * 2 * half);
      const auto turned =
          on_all_paths(x, heads * head_dim, [&](const cpu::Kernels& kernels, Rows& rows) {
            const tensor::ConstMatrix turns = {angles.data(), 2, 2 * half, 2 * half};
            kernels.rope(rows.view(), head_dim, turns, pairs);
          });
      CHECK(turned[head_dim - 1] == x[head_dim - 1]);
      if (half == 0) continue;
      const std::size_t b = pairs == RopePairs::kHalves ? half : 1;
      CHECK(turned[0] == x[0] * angles[0] - x[b] * angles[half]);
      CHECK(turned[b] == x[b] * angles[0] + x[0] * angles[half]);
    }
  }
}

TEST_CASE("append_kv has the same bits on every path, for every size of head") {
  std::mt19937 random(5);
  for (const KvFormat type : {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16, KvFormat::kInt8}) {
    for (const std::size_t head_dim : {2u, 6u, 16u, 30u, 64u, 80u, 128u, 256u}) {
      const device::KvLayout layout({1, 2, head_dim, type});
      auto k = random_floats(random, 2 * 2 * head_dim);
      auto v = random_floats(random, 2 * 2 * head_dim, 1e-3f);
      k[0] = 1e6f;   // above F16
      v[1] = 1e-7f;  // a subnormal F16
      v[0] = 0.0f;
      const std::vector<device::KvSlot> slots = {{0, 3}, {1, 14}};
      std::vector<std::byte> first;
      for (const KernelPath& path : kernel_paths()) {
        CAPTURE(path.name, device::name(type), head_dim);
        std::vector<std::byte> memory(2 * layout.block_bytes(), std::byte{0xa5});
        path.kernels->append_kv({memory.data(), 2, layout}, 0, view(std::as_const(k), 2 * head_dim),
                                view(std::as_const(v), 2 * head_dim), slots.data());
        if (first.empty()) first = memory;
        CHECK(memory == first);
      }
    }
  }
}
