// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "cuda/prim/block_reduce.cuh"
#include "cuda/prim/memory.cuh"
#include "simt/kernel.h"

using namespace incipit;
using namespace incipit::cuda::prim;
using namespace incipit::testing;

TEST_CASE("shared memory holds NaN until it is written, in every block anew") {
  std::vector<bool> nan;
  run_kernel(
      32,
      [&] {
        INCIPIT_SHARED(float[3], values);
        auto* const dynamic = dynamic_shared<float>();
        if (lane() > 0) return;
        nan.push_back(std::isnan(values[0]) && std::isnan(values[2]) && std::isnan(dynamic[7]));
        values[0] = dynamic[7] = 0.0f;
      },
      {}, 32, {3, 1, 1});
  CHECK(nan == std::vector<bool>{true, true, true});
}

TEST_CASE("a declaration is one array for the block, and another is another") {
  std::vector<unsigned> got(64);
  run_kernel(64, [&] {
    INCIPIT_SHARED(unsigned[64], first);
    INCIPIT_SHARED(unsigned[64], second);
    first[thread_x()] = thread_x();
    second[thread_x()] = 1000 + thread_x();
    sync_threads();
    got[thread_x()] = first[63 - thread_x()] + second[thread_x()];
  });
  for (const unsigned value : got) CHECK(value == 1063);
}

TEST_CASE("accesses by the primitives must be aligned and hit what they name") {
  alignas(16) float global[8] = {};
  CHECK_THAT(failure_of(32,
                        [&] {
                          load(reinterpret_cast<const Pack<float, 4>*>(  // misaligned
                              reinterpret_cast<std::uintptr_t>(&global[1])));
                        }),
             says("misaligned access of 16 bytes"));
  CHECK_THAT(failure_of(
                 32, [] { load(dynamic_shared<float>()); }, {}, 64),
             says("global memory goes to shared memory"));
  CHECK_THAT(failure_of(
                 32, [&] { shared_store(global, 1.0f); }, {}, 64),
             says("shared memory goes elsewhere"));
  CHECK_THAT(failure_of(
                 32, [] { shared_load(dynamic_shared<float>() + lane()); }, {}, 124),
             says("shared memory goes elsewhere"));
}
