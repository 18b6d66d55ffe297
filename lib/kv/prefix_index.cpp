// SPDX-License-Identifier: Apache-2.0
#include "kv/prefix_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace incipit::kv {
namespace {

std::size_t common_front(std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto [end, ignored] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(end - a.begin());
}

}  // namespace

PrefixIndex::PrefixIndex(std::size_t capacity) : nodes_(capacity), table_(capacity) {}

NodeId PrefixIndex::find_root(std::string_view name_space) const {
  const auto found = names_.find(name_space);
  return found == names_.end() ? kNoNode : found->second;
}

NodeId PrefixIndex::make_root(std::string_view name_space) {
  if (const NodeId known = find_root(name_space); known != kNoNode) return known;
  if (unused_root_ == kNoNode) {
    roots_.emplace_back();
    unused_root_ = static_cast<NodeId>(nodes_.size() + roots_.size() - 1);
  }
  const NodeId id = unused_root_;
  const auto name = names_.emplace(name_space, id).first;
  unused_root_ = std::exchange(root(id).next_unused, kNoNode);
  root(id).name = name;
  return id;
}

void PrefixIndex::drop_root(NodeId id) {
  names_.erase(root(id).name);
  root(id).next_unused = std::exchange(unused_root_, id);
}

NodeId PrefixIndex::first_child(NodeId parent) const {
  return is_root(parent) ? roots_.at(parent - nodes_.size()).first_child
                         : nodes_[parent].first_child;
}

void PrefixIndex::set_first_child(NodeId parent, NodeId child) {
  (is_root(parent) ? root(parent).first_child : nodes_[parent].first_child) = child;
}

NodeId PrefixIndex::find(NodeId parent, std::uint64_t hash, TokenBlock tokens) const {
  return table_.find(hash, [&](NodeId id) {
    const Node& node = nodes_[id];
    return node.parent == parent && std::equal(tokens.begin(), tokens.end(), node.tokens.begin());
  });
}

void PrefixIndex::prefetch_node(NodeId node) const noexcept {
  if (node == kNoNode) return;
  // A node may begin anywhere in a cache line and spans two.
  __builtin_prefetch(&nodes_[node].tokens);
  __builtin_prefetch(&nodes_[node].younger);
}

void PrefixIndex::walk(NodeId root, std::span<const std::uint64_t> hashes,
                       std::span<const TokenId> tokens, std::vector<NodeId>& path) const {
  // The hashes are known beforehand, so that the two cache misses of a step (slot, then node) are
  // under way several steps early.
  constexpr std::size_t kAhead = 8;
  NodeId parent = root;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (i + 2 * kAhead < hashes.size()) table_.prefetch(hashes[i + 2 * kAhead]);
    if (i + kAhead < hashes.size()) prefetch_node(table_.candidate(hashes[i + kAhead]));
    const NodeId node = find(parent, hashes[i], token_block(tokens, i));
    if (node == kNoNode) return;
    path.push_back(node);
    parent = node;
  }
}

PrefixIndex::Run PrefixIndex::longest_run(NodeId parent, std::span<const TokenId> tokens) const {
  Run best;
  NodeId child = first_child(parent);
  for (std::size_t seen = 0; seen < kMaxSiblings && child != kNoNode; ++seen) {
    if (best.tokens == tokens.size()) break;
    const Node& node = nodes_[child];
    prefetch_node(node.older);
    const std::size_t common = common_front(tokens, node.tokens);
    if (common > best.tokens) best = {child, common};
    child = node.older;
  }
  return best;
}

void PrefixIndex::insert(NodeId parent, std::uint64_t hash, TokenBlock tokens, BlockId block) {
  INCIPIT_CHECK(!is_used(block));
  const NodeId older = first_child(parent);
  Node& node = nodes_[block];
  node = {.hash = hash, .parent = parent, .older = older};
  std::copy(tokens.begin(), tokens.end(), node.tokens.begin());
  if (older != kNoNode) nodes_[older].younger = block;
  set_first_child(parent, block);
  table_.insert(hash, block);
}

void PrefixIndex::remove(NodeId leaf) {
  Node& node = nodes_.at(leaf);
  INCIPIT_CHECK(node.parent != kNoNode && node.first_child == kNoNode);
  table_.erase(node.hash, leaf);
  if (node.older != kNoNode) nodes_[node.older].younger = node.younger;
  if (node.younger != kNoNode) {
    nodes_[node.younger].older = node.older;
  } else {
    set_first_child(node.parent, node.older);
    if (is_root(node.parent) && node.older == kNoNode) drop_root(node.parent);
  }
  node = {};
}

void PrefixIndex::clear() noexcept {
  table_.clear();
  names_.clear();
  std::fill(nodes_.begin(), nodes_.end(), Node{});
  unused_root_ = kNoNode;
  roots_.clear();
}

void PrefixIndex::check_integrity() const {
  table_.check_integrity();
  std::vector<NodeId> parents;  // still to visit
  for (const auto& [name, id] : names_) {
    INCIPIT_CHECK(is_root(id) && roots_.at(id - nodes_.size()).name->first == name);
    INCIPIT_CHECK(first_child(id) != kNoNode);
    parents.push_back(id);
  }
  std::size_t reached = 0;
  while (!parents.empty()) {
    const NodeId parent = parents.back();
    parents.pop_back();
    NodeId younger = kNoNode;
    for (NodeId id = first_child(parent); id != kNoNode; id = nodes_[id].older) {
      const Node& node = nodes_.at(id);
      INCIPIT_CHECK(++reached <= nodes_.size());
      INCIPIT_CHECK(node.parent == parent && node.younger == younger);
      INCIPIT_CHECK(find(parent, node.hash, node.tokens) == id);
      parents.push_back(id);
      younger = id;
    }
  }
  INCIPIT_CHECK(reached == table_.size());
  const auto used = std::count_if(nodes_.begin(), nodes_.end(),
                                  [](const Node& node) { return node.parent != kNoNode; });
  INCIPIT_CHECK(reached == static_cast<std::size_t>(used));
}

}  // namespace incipit::kv
