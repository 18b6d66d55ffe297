// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_RETRIEVE_FIXED_POINT_H_
#define INCIPIT_RETRIEVE_FIXED_POINT_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace incipit::retrieve {

/// Fixed-point numbers are in 1/65536: scores never depend on how a machine rounds.
inline constexpr unsigned kFixedBits = 16;
inline constexpr std::uint64_t kFixedOne = std::uint64_t{1} << kFixedBits;

namespace fixed_point_detail {

constexpr unsigned kIndexBits = 8;

/// log2(1 + i/256) in 1/65536, by squaring; the last entry is log2(2).
constexpr auto kLog2 = [] {
  std::array<std::uint32_t, (1u << kIndexBits) + 1> table{};
  for (std::size_t i = 0; i + 1 < table.size(); ++i) {
    std::uint64_t x = (std::uint64_t{1} << 31) + (std::uint64_t{i} << (31 - kIndexBits));
    for (unsigned bit = 0; bit < kFixedBits + 1; ++bit) {  // one bit more, to round
      x = (x * x) >> 31;
      const bool carry = x >= (std::uint64_t{1} << 32);
      table[i] = 2 * table[i] + (carry ? 1 : 0);
      if (carry) x >>= 1;
    }
    table[i] = (table[i] + 1) / 2;
  }
  table.back() = 1u << kFixedBits;
  return table;
}();

}  // namespace fixed_point_detail

/// log2(x) in 1/65536, to 1/32768, for x > 0.
constexpr std::uint32_t log2_fixed(std::uint64_t x) noexcept {
  using fixed_point_detail::kIndexBits;
  using fixed_point_detail::kLog2;
  const unsigned whole = static_cast<unsigned>(std::bit_width(x)) - 1;
  const std::uint64_t fraction = (x << (63 - whole)) & ~(std::uint64_t{1} << 63);  // of 2^63
  const std::size_t index = fraction >> (63 - kIndexBits);
  const std::uint64_t rest = (fraction >> (63 - kIndexBits - kFixedBits)) & (kFixedOne - 1);
  const std::uint64_t low = kLog2[index], high = kLog2[index + 1];
  return static_cast<std::uint32_t>((whole << kFixedBits) + low +
                                    (((high - low) * rest) >> kFixedBits));
}

/// The square root, rounded down.
constexpr std::uint64_t square_root(std::uint64_t x) noexcept {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 31; bit != 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= x) root += bit;
  }
  return root;
}

}  // namespace incipit::retrieve

#endif  // INCIPIT_RETRIEVE_FIXED_POINT_H_
