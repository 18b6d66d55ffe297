// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <random>

#include "cuda/prim/mma.cuh"
#include "cuda/prim/warp.cuh"
#include "simt/kernel.h"

using namespace incipit;
using namespace incipit::cuda;
using namespace incipit::cuda::prim;
using namespace incipit::testing;

namespace {

/// Small numbers, whose products and sums are exact in any order.
template <class T>
T small(std::mt19937& random) {
  return from_float<T>(static_cast<float>(static_cast<int>(random() % 17) - 8) * 0.25f);
}

/// d = 3 + a b by one warp: a [16, 16] through ldmatrix.x4, b [16, 8] through ldmatrix.x2.trans.
template <class T>
std::vector<float> product(const std::vector<T>& a, const std::vector<T>& b,
                           const simt::Options& options) {
  std::vector<float> d(16 * 8);
  run_kernel(
      32,
      [&] {
        auto* const shared = dynamic_shared<T>();
        for (unsigned i = lane(); i < 256; i += 32) shared[i] = a[i];
        for (unsigned i = lane(); i < 128; i += 32) shared[256 + i] = b[i];
        sync_warp();
        std::uint32_t fragment_a[4], fragment_b[2];
        const unsigned row = lane() % 16, half = lane() / 16;
        load_matrix<4>(fragment_a, shared + row * 16 + half * 8);
        load_matrix<2, true>(fragment_b, shared + 256 + lane() % 16 * 8);
        float sums[4] = {3.0f, 3.0f, 3.0f, 3.0f};
        multiply<T>(sums, fragment_a, fragment_b[0], fragment_b[1]);
        const unsigned group = lane() / 4, pair = 2 * (lane() % 4);
        for (unsigned i = 0; i < 4; ++i) d[(group + i / 2 * 8) * 8 + pair + i % 2] = sums[i];
      },
      options, 768);
  return d;
}

template <class T>
void check_product(const simt::Options& options) {
  std::mt19937 random(5);
  std::vector<T> a(256), b(128);
  for (T& value : a) value = small<T>(random);
  for (T& value : b) value = small<T>(random);
  const auto d = product(a, b, options);
  for (unsigned r = 0; r < 16; ++r) {
    for (unsigned c = 0; c < 8; ++c) {
      float sum = 3.0f;
      for (unsigned k = 0; k < 16; ++k) sum += to_float(a[r * 16 + k]) * to_float(b[k * 8 + c]);
      CHECK(d[r * 8 + c] == sum);
    }
  }
}

}  // namespace

TEST_CASE("ldmatrix and mma multiply matrices, on sm_80 and in two steps on sm_75") {
  simt::Options options;
  for (const auto schedule :
       {simt::Schedule::kForward, simt::Schedule::kReverse, simt::Schedule::kRandom}) {
    options.schedule = schedule;
    options.architecture = 80;
    check_product<F16>(options);
    check_product<BF16>(options);
    options.architecture = 75;
    check_product<F16>(options);
  }
  CHECK_THROWS_WITH(check_product<BF16>(options), says("needs sm_80"));
}

TEST_CASE("mma expands every F16 and BF16 as it is") {
  // a has the value in column 0 and b has 1 in row 0; other values are zero.
  std::vector<F16> a(256, F16{0}), b(128, F16{0});
  for (unsigned c = 0; c < 8; ++c) b[c] = from_float<F16>(1.0f);
  for (const std::uint32_t start : {0x0000u, 0x0001u, 0x03ffu, 0x0400u, 0x3c00u, 0x7bffu, 0x8001u,
                                    0x83ffu, 0xfbffu, 0x7c00u, 0xfc00u}) {
    a[0].bits = static_cast<std::uint16_t>(start);
    const auto d = product(a, b, {});
    CHECK(d[0] == 3.0f + to_float(a[0]));
  }
  a[0].bits = 0x7e00;
  CHECK(std::isnan(product(a, b, {})[0]));
}

TEST_CASE("ldmatrix of one, two and four matrices, as they are and transposed") {
  std::array<std::array<std::uint32_t, 3>, 32> got = {};
  run_kernel(
      32,
      [&] {
        auto* const shared = dynamic_shared<std::uint16_t>();
        for (unsigned i = lane(); i < 4 * 64; i += 32) shared[i] = static_cast<std::uint16_t>(i);
        sync_warp();
        const void* const row = shared + 8 * lane();
        std::uint32_t one[1], two[2], four[4];
        load_matrix<1, true>(one, lane() < 8 ? row : nullptr);
        load_matrix<2>(two, lane() < 16 ? row : nullptr);
        load_matrix<4, true>(four, row);
        got[lane()] = {one[0], two[1], four[3]};
      },
      {}, 512);
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned major = i / 4, minor = 2 * (i % 4);
    CHECK(got[i][0] == ((8 * minor + major) | (8 * (minor + 1) + major) << 16));
    CHECK(got[i][1] == ((64 + 8 * major + minor) | (64 + 8 * major + minor + 1) << 16));
    CHECK(got[i][2] == ((192 + 8 * minor + major) | (192 + 8 * (minor + 1) + major) << 16));
  }
}

TEST_CASE("ldmatrix counts bank conflicts") {
  const auto conflicts = [](unsigned stride, bool swizzled) {
    return run_kernel(
               32,
               [&] {
                 const unsigned row = lane() % 8;
                 const unsigned chunk = swizzled ? (lane() / 8) ^ row : lane() / 8;
                 std::uint32_t out[4];
                 load_matrix<4>(out, dynamic_shared<char>() + row * stride + chunk * 16);
               },
               {}, 2048)
        .bank_conflicts;
  };
  CHECK(conflicts(128, false) == 4 * 7);
  CHECK(conflicts(128, true) == 0);
  CHECK(conflicts(64, false) == 4 * 3);
  CHECK(conflicts(80, false) == 0);
  simt::Options options;
  options.conflicts_fail = true;
  CHECK_THAT(failure_of(
                 32,
                 [] {
                   std::uint32_t out[1];
                   load_matrix<1>(out, dynamic_shared<char>() + lane() * 128 % 1024);
                 },
                 options, 1024),
             says("bank conflict, 7 extra passes") && says("matrix_test.cpp:"));
}

TEST_CASE("matrix operations with the wrong company or address fail") {
  std::uint32_t out[4] = {};
  float d[4] = {};
  // Within the macro all would be one line.
  const auto apart = [&] {
    if (lane() % 2 == 0) {
      multiply<F16>(d, out, 0, 0);
    } else {
      multiply<F16>(d, out, 0, 0);
    }
  };
  CHECK_THAT(failure_of(32, apart), says("different places"));
  CHECK_THAT(
      failure_of(
          32, [&] { load_matrix<4>(out, dynamic_shared<char>() + 16 * lane() + 8); }, {}, 1024),
      says("misaligned row"));
  CHECK_THAT(failure_of(
                 32, [&] { load_matrix<4>(out, dynamic_shared<char>() + 16 * lane()); }, {}, 496),
             says("outside of shared memory"));
  CHECK_THAT(failure_of(32,
                        [&] {
                          if (lane() < 31) multiply<BF16>(d, out, 0, 0);
                        }),
             says("exited") || says("deadlock"));
}
