// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_NODE_LIST_H_
#define INCIPIT_KV_NODE_LIST_H_

#include <cstddef>
#include <vector>

#include "kv/chain_table.h"

namespace incipit::kv {

/// Nodes in the order in which they were put in. Its links are those of a NodeLinks.
struct NodeList {
  NodeId oldest = kNoNode, newest = kNoNode;
  std::size_t size = 0;
};

/// The links of any number of lists; a node is in one of them at most. All operations are O(1) and
/// allocate nothing. Not thread-safe.
class NodeLinks {
 public:
  /// For node ids below `capacity`.
  explicit NodeLinks(std::size_t capacity) : links_(capacity) {}

  bool contains(NodeId node) const { return links_.at(node).in_list; }
  /// The node that was put into its list after `node`; kNoNode where there is none.
  NodeId newer(NodeId node) const { return links_.at(node).newer; }

  /// Puts a node that is in no list at an end of this one.
  void push_newest(NodeList& list, NodeId node);
  void push_oldest(NodeList& list, NodeId node);
  /// Takes a node out of the list that it is in.
  void remove(NodeList& list, NodeId node);

 private:
  struct Link {
    NodeId older = kNoNode, newer = kNoNode;
    bool in_list = false;
  };

  void put(NodeList& list, NodeId node, const Link& link);

  std::vector<Link> links_;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_NODE_LIST_H_
