// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_GHOST_LIST_H_
#define INCIPIT_KV_GHOST_LIST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/chain_table.h"
#include "kv/node_list.h"

namespace incipit::kv {

/// Identities of what was evicted lately, oldest first. All calls but clear() are O(1), memory is
/// fixed at construction. Two nodes whose identities collide count as one that comes back: that
/// changes what is evicted, and nothing else. Not thread-safe.
class GhostList {
 public:
  explicit GhostList(std::size_t capacity);

  std::size_t size() const noexcept { return known_.size; }

  /// Starts to load what push() and take() of this one will read.
  void prefetch(std::uint64_t identity) const noexcept { table_.prefetch(identity); }
  /// Adds the newest one; where the list is full, the oldest goes.
  void push(std::uint64_t identity);
  /// Removes one; false where it is not in the list.
  bool take(std::uint64_t identity);
  void drop_oldest();
  void clear();

 private:
  using Slot = NodeId;

  void remove(Slot slot);

  std::vector<std::uint64_t> identities_;  // [slot]
  NodeLinks links_;                        // of slots
  NodeList known_ = {}, unused_ = {};
  ChainTable table_;  // of the known slots, by identity
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_GHOST_LIST_H_
