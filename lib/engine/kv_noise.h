// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_KV_NOISE_H_
#define INCIPIT_ENGINE_KV_NOISE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/device.h"

namespace incipit::engine {

/// Whose noise it is: the same source gives the same noise, whatever else runs.
struct NoiseSource {
  std::uint64_t seed = 0, sample = 0;
  float deviation = 0.0f;  // standard, of the factor by which each value is off
};

/// Multiplies each value of the blocks of one sequence, in order from its first, by a factor around
/// 1. The blocks are nobody else's. Not for KvFormat::kInt8. Cost: about 15 ns for each value.
void add_noise(device::Device& device, const device::KvPoolView& pool,
               std::span<const device::BlockId> blocks, const NoiseSource& source);

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_KV_NOISE_H_
