// SPDX-License-Identifier: Apache-2.0
#include "cuda/prim/warp.cuh"

#include "cuda/prim/block_reduce.cuh"
#include "simt/kernel.h"

using namespace incipit;
using namespace incipit::cuda::prim;
using namespace incipit::testing;

namespace {

/// What get(lane) returns in each lane of a warp, in all schedules.
template <class Get>
std::vector<unsigned> lanes_of(const Get& get) {
  std::vector<unsigned> first;
  for (const auto schedule :
       {simt::Schedule::kForward, simt::Schedule::kReverse, simt::Schedule::kRandom}) {
    std::vector<unsigned> values(32);
    simt::Options options;
    options.schedule = schedule;
    run_kernel(
        32, [&] { values[lane()] = get(lane()); }, options);
    if (first.empty()) first = values;
    CHECK(values == first);
  }
  return first;
}

}  // namespace

TEST_CASE("shuffles read the lane that they name") {
  const auto index = lanes_of([](unsigned i) { return shuffle(100 + i, (i * 7 + 3) % 64); });
  const auto crossed = lanes_of([](unsigned i) { return shuffle_xor(100 + i, 5u); });
  const auto up = lanes_of([](unsigned i) { return shuffle_up(100 + i, 3u); });
  const auto down = lanes_of([](unsigned i) { return shuffle_down(100 + i, 3u); });
  for (unsigned i = 0; i < 32; ++i) {
    CHECK(index[i] == 100 + (i * 7 + 3) % 32);
    CHECK(crossed[i] == 100 + (i ^ 5u));
    CHECK(up[i] == 100 + (i < 3 ? i : i - 3));
    CHECK(down[i] == 100 + (i > 28 ? i : i + 3));
  }
  double wide = 0.0;
  run_kernel(32, [&] {
    const double got = shuffle(1.5 + lane(), 9);
    if (lane() == 0) wide = got;
  });
  CHECK(wide == 10.5);
}

TEST_CASE("votes count the lanes of the mask") {
  const auto all = lanes_of([](unsigned i) { return ballot(i % 3 == 0); });
  for (const unsigned votes : all) CHECK(votes == 0x49249249u);
  const auto halves = lanes_of([](unsigned i) {
    return i < 16 ? ballot(i % 2 == 0, 0xffffu) : ballot(i % 2 == 1, 0xffff0000u);
  });
  for (unsigned i = 0; i < 32; ++i) CHECK(halves[i] == (i < 16 ? 0x5555u : 0xaaaa0000u));
}

TEST_CASE("reductions give all lanes the same bits, in a fixed order") {
  const auto value = [](unsigned i) { return 1.0f / static_cast<float>(i * i + 3); };
  for (const auto schedule :
       {simt::Schedule::kForward, simt::Schedule::kReverse, simt::Schedule::kRandom}) {
    simt::Options options;
    options.schedule = schedule;
    options.conflicts_fail = true;
    std::vector<float> sums(96), most(96), quads(96), blocks(96);
    run_kernel(
        96,
        [&] {
          INCIPIT_SHARED(float[3], scratch);
          const unsigned i = thread_x();
          sums[i] = sum_lanes(value(i));
          most[i] = max_lanes(i == 40 ? bit_cast<float>(0x7fc00000u) : value(i));
          quads[i] = sum_lanes<4>(value(i));
          blocks[i] = sum_block<96>(value(i), scratch);
        },
        options);
    float warps[3];
    for (unsigned w = 0; w < 3; ++w) {
      float tree[32];
      for (unsigned i = 0; i < 32; ++i) tree[i] = value(32 * w + i);
      for (unsigned half = 16; half > 0; half /= 2) {
        for (unsigned i = 0; i < half; ++i) tree[i] += tree[i + half];
      }
      warps[w] = tree[0];
    }
    for (unsigned i = 0; i < 96; ++i) {
      CHECK(sums[i] == warps[i / 32]);
      CHECK(blocks[i] == warps[0] + warps[1] + warps[2]);
      CHECK(most[i] == value(i / 32 * 32));
      const unsigned q = i / 4 * 4;
      CHECK(quads[i] == (value(q) + value(q + 2)) + (value(q + 1) + value(q + 3)));
    }
  }
}

TEST_CASE("warp operations with the wrong company fail") {
  CHECK_THAT(failure_of(32,
                        [] {
                          if (lane() < 16) shuffle_xor(1, 1u);
                        }),
             says("deadlock") || says("exited"));
  CHECK_THAT(failure_of(32,
                        [] {
                          if (lane() < 16) shuffle_xor(1, 16u, 0xffffu);
                        }),
             says("reads lane 16, which takes no part"));
  CHECK_THAT(failure_of(32, [] { ballot(true, 0xfffffffeu); }), says("not in the mask"));
  CHECK_THAT(failure_of(32,
                        [] {
                          if (lane() == 0) return;
                          sync_warp();
                        }),
             says("a lane of the mask has exited"));
  CHECK_THAT(failure_of(32,
                        [] {
                          if (lane() % 2 == 0) {
                            ballot(true);
                          } else {
                            sync_warp();
                          }
                        }),
             says("16 threads, the first is 1: barrier of a warp"));
}
