// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CUDA_RUNTIME_TEST_H_
#define INCIPIT_TESTS_CUDA_RUNTIME_TEST_H_

#include <cstdint>
#include <vector>

#include "simt/runtime.h"

namespace incipit::testing {

/// Orders of streams that must not matter: as late and as early as can be, and some random ones.
inline std::vector<simt::RuntimeOptions> stream_orders(std::uint64_t random) {
  std::vector<simt::RuntimeOptions> all(3);
  all[0].order = simt::StreamOrder::kLazy;
  all[1].order = simt::StreamOrder::kOthersFirst;
  all[2].order = simt::StreamOrder::kEager;
  for (std::uint64_t seed = 1; seed <= random; ++seed) {
    simt::RuntimeOptions& options = all.emplace_back();
    options.order = simt::StreamOrder::kRandom;
    options.seed = seed;
  }
  return all;
}

}  // namespace incipit::testing

#endif  // INCIPIT_TESTS_CUDA_RUNTIME_TEST_H_
