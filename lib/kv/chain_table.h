// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_CHAIN_TABLE_H_
#define INCIPIT_KV_CHAIN_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace incipit::kv {

/// Index of a node of the prefix tree.
using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = std::numeric_limits<NodeId>::max();

/// An open-addressing hash table of node ids: linear probing, at most half full, deletion without
/// tombstones. It knows hashes only; the caller proves a hit.
///
/// Memory is fixed at construction, so nothing fails later. Not thread-safe.
class ChainTable {
 public:
  /// For at most `capacity` (<= 2^30) nodes at a time.
  explicit ChainTable(std::size_t capacity);

  /// The node among those with this hash (and, seldom, others) that `is_it` accepts, or kNoNode.
  template <class Proof>
  NodeId find(std::uint64_t hash, Proof&& is_it) const {
    const std::uint32_t tag = tag_of(hash);
    for (std::size_t at = tag & mask_; slots_[at].node != kNoNode; at = next(at)) {
      if (slots_[at].tag == tag && is_it(slots_[at].node)) return slots_[at].node;
    }
    return kNoNode;
  }

  void insert(std::uint64_t hash, NodeId node);
  /// Removes what insert() put in.
  void erase(std::uint64_t hash, NodeId node);
  void clear() noexcept;
  std::size_t size() const noexcept { return size_; }

  /// Starts to load what find() will read.
  void prefetch(std::uint64_t hash) const noexcept {
    __builtin_prefetch(&slots_[tag_of(hash) & mask_]);
  }
  /// The first node that find() will look at, or kNoNode.
  NodeId candidate(std::uint64_t hash) const noexcept { return slots_[tag_of(hash) & mask_].node; }

  /// Throws Error{kInternal} where a slot cannot be reached from its home. O(capacity).
  void check_integrity() const;

 private:
  // The tag holds the home of a slot in its low bits, so that deletion needs no node.
  struct Slot {
    std::uint32_t tag = 0;
    NodeId node = kNoNode;
  };

  static std::uint32_t tag_of(std::uint64_t hash) noexcept {
    return static_cast<std::uint32_t>(hash);
  }
  std::size_t next(std::size_t at) const noexcept { return (at + 1) & mask_; }

  std::vector<Slot> slots_;  // a power of two
  std::size_t mask_;
  std::size_t size_ = 0;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_CHAIN_TABLE_H_
