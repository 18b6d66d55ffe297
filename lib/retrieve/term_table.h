// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_RETRIEVE_TERM_TABLE_H_
#define INCIPIT_RETRIEVE_TERM_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace incipit::retrieve {

/// Numbers terms in the order of their first appearance. Open addressing with linear probing.
class TermTable {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// kNone where the term was never added.
  std::uint32_t find(std::uint64_t term) const noexcept;
  std::uint32_t find_or_add(std::uint64_t term);
  std::size_t size() const noexcept { return size_; }

 private:
  struct Slot {
    std::uint64_t term = 0;
    std::uint32_t number = kNone;
  };
  std::size_t slot_of(std::uint64_t term) const noexcept;
  void grow();

  std::vector<Slot> slots_;  // a power of two of them, at most half of them used
  std::size_t size_ = 0;
};

}  // namespace incipit::retrieve

#endif  // INCIPIT_RETRIEVE_TERM_TABLE_H_
