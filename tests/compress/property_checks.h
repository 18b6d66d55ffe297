// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_COMPRESS_PROPERTY_CHECKS_H_
#define INCIPIT_TESTS_COMPRESS_PROPERTY_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace incipit::test {

// The invariants I1 to I15 of docs/compression.md on a conversation made from a seed. Each returns
// the first one that is broken, in words, or "".

/// One-shot compression keeps every promise, gives the same twice, and changes nothing that fits.
std::string check_one_shot(std::uint64_t seed);
/// A conversation that grows: promises at each step, prefix monotonicity, purity, replay.
std::string check_growing(std::uint64_t seed);
/// A conversation that is too long fills the budget.
std::string check_fill(std::uint64_t seed);

/// A chat of many short turns stays in its budget.
std::string check_long_chat(std::size_t turns);

/// Runs a check on so many seeds, fewer under a sanitizer; "seed: what is broken", or "".
std::string first_broken(std::string (*check)(std::uint64_t seed), std::uint64_t first,
                         std::size_t cases);

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_COMPRESS_PROPERTY_CHECKS_H_
