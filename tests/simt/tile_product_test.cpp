// SPDX-License-Identifier: Apache-2.0
#include "simt/tile_product.h"

#include "cuda/kernel_test.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

struct Matrices {
  Matrices(unsigned rows_in, unsigned columns_in, unsigned depth_in)
      : rows(rows_in), columns(columns_in), depth(depth_in) {
    std::mt19937 random(rows * 7 + columns * 3 + depth);
    a = random_values<F16>(random, rows * depth);
    b = random_values<F16>(random, columns * depth);
  }
  std::vector<float> run_on(cuda::Stream stream) const {
    DeviceArray<F16> device_a(a), device_b(b);
    DeviceArray<float> out(rows * columns, 0.0f);
    tile_product(stream, {device_a.data(), device_b.data(), out.data(), rows, columns, depth});
    return out.read();
  }
  std::vector<double> wanted() const {
    std::vector<double> all;
    for (unsigned r = 0; r < rows; ++r) {
      for (unsigned c = 0; c < columns; ++c) {
        double sum = 0.0;
        for (unsigned k = 0; k < depth; ++k) {
          sum += value_of(a[r * depth + k]) * value_of(b[c * depth + k]);
        }
        all.push_back(sum);
      }
    }
    return all;
  }

  unsigned rows, columns, depth;
  std::vector<F16> a, b;
};

}  // namespace

TEST_CASE("a tiled product is right at every edge, in all schedules, without bank conflicts") {
  for (const auto& [rows, columns, depth] : {std::tuple{64u, 16u, 64u},
                                             {1u, 1u, 8u},
                                             {65u, 17u, 72u},
                                             {130u, 40u, 200u},
                                             {63u, 15u, 128u}}) {
    CAPTURE(rows, columns, depth);
    const Matrices matrices(rows, columns, depth);
    const auto got = run([&](cuda::Stream stream) { return matrices.run_on(stream); });
    check_near(got, matrices.wanted(), 1e-5, 1e-5);
  }
}

#if INCIPIT_CUDA_EMULATED
TEST_CASE("what a tiled product does is counted") {
  const Matrices matrices(128, 32, 256);
  const auto counters = count([&](cuda::Stream stream) { matrices.run_on(stream); });
  CHECK(counters.blocks == 4);
  CHECK(counters.products == 128 / 16 * 32 / 8 * 256 / 16);
  CHECK(counters.matrix_loads == counters.products);
  CHECK(counters.async_copy_bytes == (2 * 128 + 2 * 32) * 256 * 2);
  CHECK(counters.barriers == 4 * 2 * 4);
}

TEST_CASE("the same kernel runs as on sm_75") {
  const Matrices matrices(65, 17, 72);
  simt::Machine machine;
  machine.options.architecture = 75;
  check_near(matrices.run_on(&machine), matrices.wanted(), 1e-5, 1e-5);
  CHECK(machine.counters.async_copies == 0);
}
#endif
