// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_INDEXED_HEAP_H_
#define INCIPIT_KV_INDEXED_HEAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "kv/chain_table.h"

namespace incipit::kv {

/// Nodes in the order of their keys, least first; each node is in it once at most. A heap of four
/// children per entry that knows where each node is, so that any node can be moved or taken out.
///
/// push(), update() and remove() are O(log n); memory is fixed at construction. Not thread-safe.
template <class Key>
class IndexedHeap {
 public:
  /// For node ids below `capacity`.
  explicit IndexedHeap(std::size_t capacity) : places_(capacity, kNowhere) {
    entries_.reserve(capacity);
  }

  std::size_t size() const noexcept { return entries_.size(); }
  bool contains(NodeId node) const { return places_.at(node) != kNowhere; }
  /// The node with the least key; kNoNode where there is none.
  NodeId least() const noexcept { return entries_.empty() ? kNoNode : entries_.front().node; }

  /// Puts in a node that is not in the heap.
  void push(NodeId node, const Key& key) {
    INCIPIT_CHECK(!contains(node));
    entries_.push_back({key, node});
    move_up(entries_.size() - 1);
  }

  /// Gives a node of the heap another key.
  void update(NodeId node, const Key& key) {
    INCIPIT_CHECK(contains(node));
    const std::size_t at = places_[node];
    entries_[at].key = key;
    settle(at);
  }

  void remove(NodeId node) {
    INCIPIT_CHECK(contains(node));
    const std::size_t at = places_[node];
    const Entry last = entries_.back();
    entries_.pop_back();
    places_[node] = kNowhere;
    if (at == entries_.size()) return;
    put(at, last);
    settle(at);
  }

  void clear() noexcept {
    for (const Entry& entry : entries_) places_[entry.node] = kNowhere;
    entries_.clear();
  }

 private:
  struct Entry {
    Key key;
    NodeId node;
  };
  static constexpr std::uint32_t kNowhere = kNoNode;
  static constexpr std::size_t kChildren = 4;

  void put(std::size_t at, const Entry& entry) {
    entries_[at] = entry;
    places_[entry.node] = static_cast<std::uint32_t>(at);
  }

  void settle(std::size_t at) {
    const NodeId node = entries_[at].node;
    move_up(at);
    if (places_[node] == at) move_down(at);
  }

  void move_up(std::size_t at) {
    const Entry moving = entries_[at];
    while (at > 0) {
      const std::size_t parent = (at - 1) / kChildren;
      if (!(moving.key < entries_[parent].key)) break;
      put(at, entries_[parent]);
      at = parent;
    }
    put(at, moving);
  }

  void move_down(std::size_t at) {
    const Entry moving = entries_[at];
    for (;;) {
      const std::size_t first = kChildren * at + 1;
      const std::size_t end = std::min(first + kChildren, entries_.size());
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (entries_[child].key < entries_[least].key) least = child;
      }
      if (first >= end || !(entries_[least].key < moving.key)) break;
      put(at, entries_[least]);
      at = least;
    }
    put(at, moving);
  }

  std::vector<Entry> entries_ = {};
  std::vector<std::uint32_t> places_;  // [node]: its index in entries_, or kNowhere
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_INDEXED_HEAP_H_
