// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/rope.cuh"

#include "cuda/gapped.h"

using namespace incipit;
using namespace incipit::testing;
using device::RopePairs;

namespace {

template <class T>
void check_rope(RopePairs pairs, unsigned heads, unsigned head_dim, unsigned half) {
  const Gapped<T> x(3, heads * head_dim, 5, head_dim + half);
  const Gapped<float> angles(3, 2 * half, 2, 9);
  const auto got = run([&](cuda::Stream stream) {
    DeviceArray<T> device_x(x.values);
    DeviceArray<float> device_angles(angles.values);
    cuda::rope<T>(stream,
                  {.x = device_x.data(),
                   .x_stride = x.stride,
                   .angles = device_angles.data(),
                   .angles_stride = angles.stride,
                   .rows = x.rows,
                   .heads = heads,
                   .head_dim = head_dim,
                   .half = half},
                  pairs);
    return device_x.read();
  });
  const bool halves = pairs == RopePairs::kHalves;
  const auto wanted = x.with([&](std::size_t row, std::size_t column) {
    const std::size_t i = column % head_dim;
    if (i >= 2 * half) return x.at(row, column);
    const std::size_t pair = halves ? i % half : i / 2;
    const bool is_first = halves ? i < half : i % 2 == 0;
    const std::size_t distance = halves ? half : 1;
    const double cosine = angles.at(row, pair), sine = angles.at(row, half + pair);
    return is_first ? x.at(row, column) * cosine - x.at(row, column + distance) * sine
                    : x.at(row, column) * cosine + x.at(row, column - distance) * sine;
  });
  check_near(got, wanted, kRounding<T>, 2e-7 + kRounding<T> * 1e-2);
}

}  // namespace

TEMPLATE_TEST_CASE("rope turns pairs of either kind", "", float, cuda::F16, cuda::BF16) {
  for (const RopePairs pairs : {RopePairs::kHalves, RopePairs::kAdjacent}) {
    check_rope<TestType>(pairs, 3, 64, 32);
    check_rope<TestType>(pairs, 1, 80, 40);
    check_rope<TestType>(pairs, 2, 96, 24);  // part of a head turns
    check_rope<TestType>(pairs, 5, 6, 3);
    check_rope<TestType>(pairs, 2, 2, 1);
    check_rope<TestType>(pairs, 2, 4, 0);  // nothing turns
  }
}
