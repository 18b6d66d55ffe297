// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_PHILOX_CUH_
#define INCIPIT_CUDA_PRIM_PHILOX_CUH_

#include "cuda/prim/platform.cuh"

namespace incipit::cuda::prim {

struct Philox {
  std::uint32_t words[4];
};

/// Philox4x32-10, the device's base::philox4x32.
INCIPIT_DEVICE Philox philox4x32(Philox counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter.words[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter.words[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter.words[1] ^ key0,
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter.words[3] ^ key1,
               static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9u;  // golden ratio
    key1 += 0xBB67AE85u;  // sqrt(3) - 1
  }
  return counter;
}

}  // namespace incipit::cuda::prim

#endif  // INCIPIT_CUDA_PRIM_PHILOX_CUH_
