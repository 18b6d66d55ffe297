// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kv/kv_cache_impl.h"

namespace incipit::kv {

/// Ends what is kept of a node outside of index, order and deadlines.
void KvCache::Impl::detach(NodeId id, Gone why) {
  const Node node = nodes[id];
  memory.remember(index.hash(id), why);
  hot.move(id, labels.only_session(node.labels), kNoLabel);
  labels.release(node.labels);
  scopes.remove_block(node.scope);
  nodes[id] = {};
}

/// Starts to load what remove() of a node touches where its id does not lead there.
void KvCache::Impl::prefetch_removal(NodeId node) const {
  const std::uint64_t identity = index.hash(node);
  index.prefetch(identity);
  order.prefetch(identity);
  memory.prefetch(identity);
}

/// Removes a leaf from the index, and with it the index's hold on the block.
void KvCache::Impl::remove(NodeId leaf, Gone why) {
  const NodeId parent = index.parent(leaf);
  if (!index.is_root(parent)) prefetch_removal(parent);  // mostly the next one to go
  if (pool.holders(leaf) == 1) {
    remove_candidate(leaf);
    --idle;
  }
  order.remove(leaf, why == Gone::kEvicted);
  if (deadlines && deadlines->contains(leaf)) deadlines->remove(leaf);
  log.push({.kind = CacheEvent::Kind::kRemoved,
            .identity = index.hash(leaf),
            .parent = parent_hash(leaf)});
  detach(leaf, why);
  index.remove(leaf);
  pool.release(leaf);
  if (index.is_root(parent) || !index.is_leaf(parent)) return;
  if (pool.holders(parent) == 1) add_candidate(parent, false);
}

/// Removes a node and all its descendants. Returns how many.
std::size_t KvCache::Impl::remove_subtree(NodeId top, Gone why) {
  std::size_t removed = 0;
  for (NodeId node = top;;) {
    while (!index.is_leaf(node)) node = index.first_child(node);
    const NodeId parent = index.parent(node);
    remove(node, why);
    ++removed;
    if (node == top) return removed;
    node = parent;
  }
}

std::size_t KvCache::Impl::remove_scope(ScopeId id) {
  Scope& scope = scopes.at(id);
  scope.cut = ++epoch;
  const std::string name_space = scope.name_space;  // the scope may go with its last block
  std::size_t removed = 0;
  for (NodeId root; (root = index.find_root(name_space)) != kNoNode;) {
    removed += remove_subtree(index.first_child(root), Gone::kInvalidated);
  }
  return removed;
}

std::size_t KvCache::clear() {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  impl.cleared = ++impl.epoch;
  const std::size_t removed = impl.index.size();
  for (std::size_t i = 0; i < pool().blocks; ++i) {
    const auto node = static_cast<NodeId>(i);
    if (!impl.index.is_used(node)) continue;
    const bool is_candidate = impl.pool.holders(node) == 1 && impl.index.is_leaf(node);
    if (impl.quota_links && is_candidate) impl.remove_candidate(node);
    impl.detach(node, Gone::kInvalidated);
    impl.pool.release(node);
  }
  impl.idle = 0;
  impl.order.clear();
  if (impl.deadlines) impl.deadlines->clear();
  impl.index.clear();
  impl.log.push({.kind = CacheEvent::Kind::kCleared});
  return removed;
}

std::size_t KvCache::invalidate_owner(std::string_view salt) {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  std::size_t removed = 0;
  for (const ScopeId scope : impl.scopes.of_owner(salt)) removed += impl.remove_scope(scope);
  return removed;
}

std::size_t KvCache::invalidate_version(std::string_view salt, std::string_view version) {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  std::size_t removed = 0;
  for (const ScopeId scope : impl.scopes.of_owner(salt)) {
    if (impl.scopes.at(scope).version == version) removed += impl.remove_scope(scope);
  }
  return removed;
}

std::size_t KvCache::invalidate_name_space(std::string_view name_space) {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  const ScopeId scope = impl.scopes.find(name_space);
  return scope == kNoScope ? 0 : impl.remove_scope(scope);
}

std::size_t KvCache::invalidate_prefix(std::string_view name_space,
                                       std::span<const TokenId> tokens) {
  if (tokens.empty()) return invalidate_name_space(name_space);
  Impl& impl = *impl_;
  const std::size_t in_front = (tokens.size() - 1) / kBlockTokens;
  const std::span<const TokenId> rest = tokens.subspan(in_front * kBlockTokens);
  const std::vector<std::uint64_t> hashes =
      impl.chain_hashes(Impl::root_hash(name_space), tokens.first(in_front * kBlockTokens));

  const std::lock_guard lock(impl.mutex);
  const ScopeId scope = impl.scopes.find(name_space);
  if (scope == kNoScope) return 0;
  impl.scopes.at(scope).cut_prefix(tokens, ++impl.epoch);
  const NodeId root = impl.index.find_root(name_space);
  if (root == kNoNode) return 0;
  std::vector<NodeId> path;
  impl.index.walk(root, hashes, tokens, path);
  if (path.size() < in_front) return 0;
  std::vector<NodeId> tops;
  for (NodeId child = impl.index.first_child(path.empty() ? root : path.back()); child != kNoNode;
       child = impl.index.next_sibling(child)) {
    if (std::equal(rest.begin(), rest.end(), impl.index.tokens(child).begin())) {
      tops.push_back(child);
    }
  }
  std::size_t removed = 0;
  for (const NodeId top : tops) removed += impl.remove_subtree(top, Gone::kInvalidated);
  return removed;
}

std::size_t KvCache::invalidate_tag(std::string_view tag) {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  const LabelId label = impl.labels.find_tag(tag);
  impl.labels.cut_tag(label, ++impl.epoch);
  std::size_t removed = 0;
  for (std::size_t i = 0; i < pool().blocks; ++i) {
    const auto node = static_cast<NodeId>(i);
    if (impl.index.is_used(node) && impl.labels.has_tag(impl.nodes[node].labels, label)) {
      removed += impl.remove_subtree(node, Gone::kInvalidated);
    }
  }
  return removed;
}

std::size_t KvCache::invalidate_session(std::string_view session) {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  const LabelId label = impl.labels.find_session(session);
  if (label == kNoLabel) return 0;
  impl.labels.cut_session(label, ++impl.epoch);
  std::size_t removed = 0;
  for (std::size_t i = 0; i < pool().blocks; ++i) {
    const auto node = static_cast<NodeId>(i);
    if (!impl.index.is_used(node) || !impl.labels.has_session(impl.nodes[node].labels, label)) {
      continue;
    }
    const LabelSetId rest = impl.labels.without_session(impl.nodes[node].labels, label);
    if (impl.labels.is_orphan(rest)) {
      removed += impl.remove_subtree(node, Gone::kInvalidated);
    } else {
      impl.set_labels(node, rest);
      impl.refresh(node);
    }
    impl.labels.release(rest);
  }
  return removed;
}

}  // namespace incipit::kv
