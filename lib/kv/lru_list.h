// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_LRU_LIST_H_
#define INCIPIT_KV_LRU_LIST_H_

#include <cstddef>
#include <vector>

#include "kv/chain_table.h"

namespace incipit::kv {

/// The nodes that may be evicted, in the order in which they are. All operations are O(1).
///
/// Who fills it puts a node in after its descendants; then the oldest is always a leaf, and no
/// search for leaves is needed. Not thread-safe.
class LruList {
 public:
  /// For node ids below `capacity`.
  explicit LruList(std::size_t capacity);

  std::size_t size() const noexcept { return size_; }
  bool contains(NodeId node) const { return links_.at(node).newer != kNoNode; }

  /// Puts a node that is not in the list at its new end.
  void push_newest(NodeId node);
  void remove(NodeId node);
  /// The one to evict next; kNoNode where there is none.
  NodeId oldest() const noexcept;
  /// The one to evict after `node`; kNoNode where there is none.
  NodeId newer(NodeId node) const;
  void clear() noexcept;

 private:
  struct Link {
    NodeId older = kNoNode;
    NodeId newer = kNoNode;
  };

  NodeId end() const noexcept { return static_cast<NodeId>(links_.size() - 1); }

  std::vector<Link> links_;  // a ring; the last link lies between the newest and the oldest
  std::size_t size_ = 0;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_LRU_LIST_H_
