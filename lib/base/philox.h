// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_PHILOX_H_
#define INCIPIT_BASE_PHILOX_H_

#include <array>
#include <cstdint>

namespace incipit::base {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a block
/// of random bits as a pure function of a counter and a key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept;

}  // namespace incipit::base

#endif  // INCIPIT_BASE_PHILOX_H_
