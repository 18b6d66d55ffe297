// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_CHAINS_H_
#define INCIPIT_COMPRESS_CHAINS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace incipit::compress {

/// The entries of a table that does not change, by a hash of them: most of what is looked up is in
/// no table, and one glance tells.
template <std::size_t kSlots, std::size_t kEntries>
struct Chains {
  static_assert((kSlots & (kSlots - 1)) == 0 && kEntries < UINT16_MAX);
  std::array<std::uint16_t, kSlots> first = {};   // number of an entry, from 1; 0: there is none
  std::array<std::uint16_t, kEntries> next = {};  // the one behind an entry

  constexpr bool has(std::size_t hash) const noexcept { return first[hash % kSlots] != 0; }

  /// Calls `visit` with the index of each entry that may have this hash.
  template <class Visit>
  constexpr void for_each(std::size_t hash, const Visit& visit) const {
    for (std::size_t i = first[hash % kSlots]; i != 0; i = next[i - 1]) visit(i - 1);
  }
};

template <std::size_t kSlots, class Table, class Hash>
constexpr auto chains_of(const Table& table, const Hash& hash) {
  Chains<kSlots, std::tuple_size_v<Table>> chains;
  for (std::size_t i = 0; i < table.size(); ++i) {
    std::uint16_t& first = chains.first[hash(table[i]) % kSlots];
    chains.next[i] = first;
    first = static_cast<std::uint16_t>(i + 1);
  }
  return chains;
}

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_CHAINS_H_
