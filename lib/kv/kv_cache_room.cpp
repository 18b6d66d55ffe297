// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/kv_cache_impl.h"

namespace incipit::kv {

std::uint64_t KvCache::Impl::parent_hash(NodeId node) const {
  const NodeId parent = index.parent(node);
  return index.is_root(parent) ? root_hash(scopes.at(nodes[node].scope).name_space)
                               : index.hash(parent);
}

Rank KvCache::Impl::wanted_rank(const Node& node) const {
  if (node.pinned_until != Time::min()) return Rank::kPinned;
  if (hot.is_on() && hot.is_cold(labels.only_session(node.labels))) return Rank::kLow;
  return static_cast<Rank>(node.priority);
}

/// When something about a node changes by itself.
Time KvCache::Impl::deadline(const Node& node) {
  const Time pinned = node.pinned_until == Time::min() ? Time::max() : node.pinned_until;
  const Time kept = node.priority == CachePriority::kNormal ? Time::max() : node.priority_until;
  return std::min({node.expires, pinned, kept});
}

/// Puts a node where its state says, after a change of it.
void KvCache::Impl::refresh(NodeId id) {
  const Rank rank = wanted_rank(nodes[id]);
  if (rank != order.rank(id)) {
    const bool is_candidate = order.is_candidate(id);
    if (is_candidate) remove_candidate(id);
    order.set_rank(id, node_facts(id), rank);
    if (is_candidate) add_candidate(id, true);
  }
  if (!deadlines) return;
  const Time end = deadline(nodes[id]);
  if (!deadlines->contains(id)) {
    if (end != Time::max()) deadlines->push(id, end);
  } else if (end != Time::max()) {
    deadlines->update(id, end);
  } else {
    deadlines->remove(id);
  }
}

/// Does what time has brought: nodes expire, priorities and pins end.
void KvCache::Impl::tick(Time time) {
  while (deadlines && deadlines->size() > 0) {
    const NodeId id = deadlines->least();
    Node& node = nodes[id];
    if (deadline(node) > time) return;
    if (node.expires <= time) {
      remove_subtree(id, Gone::kExpired);
      continue;
    }
    if (node.pinned_until <= time) node.pinned_until = Time::min();
    if (node.priority_until <= time) {
      node.priority = CachePriority::kNormal;
      node.priority_until = Time::max();
    }
    const ScopeId scope = node.scope;
    refresh(id);
    enforce_quota(scope);
  }
}

/// A request begins: its session is the most recent one, and another one may get cold.
void KvCache::Impl::use_session(const BlockTable& table) {
  if (!hot.is_on() || table.labels_ == kNoLabelSet) return;
  const HotSessions::Change change = hot.use(table.labels_);
  for (const LabelId session : {change.warmed, change.cooled}) {
    if (session == kNoLabel) continue;
    for (NodeId node = hot.oldest(session); node != kNoNode; node = hot.newer(node)) refresh(node);
  }
}

/// A node became a leaf that no table holds. `is_newest`: it was used just now; else it counts as
/// used before the other candidates, since its children were.
void KvCache::Impl::add_candidate(NodeId node, bool is_newest) {
  order.add_candidate(node);
  if (!quota_links) return;
  NodeList& list =
      scopes.owner(nodes[node].scope).candidates[static_cast<std::size_t>(order.rank(node))];
  is_newest ? quota_links->push_newest(list, node) : quota_links->push_oldest(list, node);
}

void KvCache::Impl::remove_candidate(NodeId node) {
  if (quota_links) {
    Owner& owner = scopes.owner(nodes[node].scope);
    quota_links->remove(owner.candidates[static_cast<std::size_t>(order.rank(node))], node);
  }
  order.remove_candidate(node);
}

/// Makes a block free.
void KvCache::Impl::evict_one() {
  const NodeId victim = order.victim();
  INCIPIT_CHECK(victim != kNoNode);
  remove(victim, Gone::kEvicted);
  ++counters.evictions;
}

/// Evicts an owner's candidates, least used first, while it has more blocks than it may.
void KvCache::Impl::enforce_quota(ScopeId scope) {
  if (!quota_links) return;
  scopes.add_table(scope);  // keeps it and its owner
  const Owner& owner = scopes.owner(scope);
  const auto pinned = owner.candidates.begin() + static_cast<std::ptrdiff_t>(Rank::kPinned);
  while (owner.blocks > options.owner_quota_blocks) {
    const auto list = std::find_if(owner.candidates.begin(), pinned,
                                   [](const NodeList& any) { return any.size > 0; });
    if (list == pinned) break;
    remove(list->oldest, Gone::kEvicted);
    ++counters.evictions;
  }
  scopes.remove_table(scope);
}

bool KvCache::make_private(BlockTable& table) {
  INCIPIT_CHECK(table.cache_ == this);
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  const auto is_shared = [&](BlockId block) {
    return impl.index.is_used(block) || impl.pool.holders(block) > 1;
  };
  const auto shared = static_cast<std::size_t>(
      std::count_if(table.blocks_.begin(), table.blocks_.end(), is_shared));
  if (!impl.has_room(impl.promised + shared)) return false;
  for (BlockId& block : table.blocks_) {
    if (!is_shared(block)) continue;
    if (impl.pool.free_blocks() == 0) impl.evict_one();
    const BlockId own = impl.pool.take();
    impl.pool.copy(block, own);
    impl.let_go(std::exchange(block, own));
  }
  table.committed_ = 0;
  table.indexed_ = false;
  return true;
}

std::size_t KvCache::pin(std::string_view name_space, std::span<const TokenId> tokens, Time until) {
  Impl& impl = *impl_;
  const std::vector<std::uint64_t> hashes = impl.chain_hashes(Impl::root_hash(name_space), tokens);
  const Time now = impl.now();
  std::vector<NodeId> path;
  const std::lock_guard lock(impl.mutex);
  impl.tick(now);
  const NodeId root = impl.index.find_root(name_space);
  if (root == kNoNode || until <= now) return 0;
  impl.index.walk(root, hashes, tokens, path);
  impl.order.prepare(Rank::kPinned);
  if (!impl.deadlines) impl.deadlines.emplace(impl.options.blocks);
  for (const NodeId node : path) {
    Time& pinned = impl.nodes[node].pinned_until;
    pinned = std::max(pinned, until);
    impl.refresh(node);
  }
  return path.size() * kBlockTokens;
}

/// Holds the path to a leaf that nobody holds. Its last blocks go with the leaf, at most `limit`:
/// those of one rank that have no other child; of a cold session's leaf, cold ones only. False
/// where their room is promised to somebody.
bool KvCache::Impl::hold_victim(KvCache& cache, NodeId leaf, std::size_t limit, Victim& victim) {
  const auto is_idle = [this](NodeId node) { return pool.holders(node) == 1; };
  std::vector<NodeId> path;  // from the leaf to the first block
  for (NodeId node = leaf; !index.is_root(node); node = index.parent(node)) path.push_back(node);
  const auto unheld = std::find_if_not(path.begin(), path.end(), is_idle) - path.begin();
  if (!has_room(promised + static_cast<std::size_t>(unheld))) return false;

  victim.blocks = 1;
  while (victim.blocks < std::min(limit, path.size())) {
    const NodeId next = path[victim.blocks];
    if (!is_idle(next) || order.rank(next) != order.rank(leaf)) break;
    if (is_cold(next) != is_cold(leaf)) break;
    if (index.next_sibling(index.first_child(next)) != kNoNode) break;
    ++victim.blocks;
  }
  BlockTable& table = victim.path;
  table.blocks_.reserve(path.size());
  table.labels_ = labels.make({});
  table.counts_ = false;
  table.cache_ = &cache;
  table.scope_ = nodes[leaf].scope;
  scopes.add_table(table.scope_);
  table.started_ = epoch;
  table.committed_ = path.size();
  table.chain_hash_ = index.hash(leaf);
  for (std::size_t i = path.size(); i-- > 0;) {
    hold(path[i]);
    append(table, path[i]);
  }
  return true;
}

bool KvCache::Impl::add_victim(KvCache& cache, NodeId leaf, std::size_t limit,
                               std::vector<Victim>& victims) {
  victims.emplace_back();
  if (hold_victim(cache, leaf, limit, victims.back())) return true;
  victims.pop_back();
  return false;
}

std::vector<KvCache::Victim> KvCache::victims(std::size_t blocks) {
  Impl& impl = *impl_;
  std::vector<Victim> victims;  // outlives the lock, so that it may give its blocks back
  const Time now = impl.now();
  const std::lock_guard lock(impl.mutex);
  impl.tick(now);
  while (blocks > 0) {
    const NodeId leaf = impl.order.victim();
    if (leaf == kNoNode || impl.order.rank(leaf) == Rank::kPinned) break;
    if (!impl.add_victim(*this, leaf, blocks, victims)) break;
    blocks -= victims.back().blocks;
  }
  return victims;
}

std::vector<KvCache::Victim> KvCache::cold_paths(std::size_t blocks) {
  Impl& impl = *impl_;
  std::vector<Victim> victims;  // as above
  const Time now = impl.now();
  const std::lock_guard lock(impl.mutex);
  impl.tick(now);
  for (LabelId session = 0; session < impl.hot.end_label(); ++session) {
    if (!impl.hot.is_cold(session)) continue;
    for (NodeId node = impl.hot.oldest(session); node != kNoNode; node = impl.hot.newer(node)) {
      if (blocks == 0) return victims;
      if (!impl.order.is_candidate(node) || impl.order.rank(node) == Rank::kPinned) continue;
      if (!impl.add_victim(*this, node, blocks, victims)) return victims;
      blocks -= victims.back().blocks;
    }
  }
  return victims;
}

std::optional<BlockTable> KvCache::next_path(std::size_t& from) {
  Impl& impl = *impl_;
  Victim victim;  // outlives the lock, as above
  const Time now = impl.now();
  const std::lock_guard lock(impl.mutex);
  impl.tick(now);
  while (from < pool().blocks) {
    const auto node = static_cast<NodeId>(from++);
    if (!impl.index.is_used(node) || !impl.index.is_leaf(node)) continue;
    if (impl.hold_victim(*this, node, 1, victim)) return std::move(victim.path);
  }
  return std::nullopt;
}

void KvCache::evict(Victim&& victim) {
  BlockTable table = std::move(victim.path);
  INCIPIT_CHECK(table.cache_ == this && victim.blocks <= table.blocks_.size());
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  impl.give_back(table);
  table.cache_ = nullptr;
  for (std::size_t i = 0; i < victim.blocks; ++i) {
    const NodeId node = table.blocks_[table.blocks_.size() - 1 - i];
    if (!impl.index.is_used(node) || impl.order.rank(node) == Rank::kPinned) return;
    if (!impl.order.is_candidate(node)) return;
    impl.remove(node, Gone::kEvicted);
    ++impl.counters.evictions;
  }
}

std::uint64_t KvCache::blocks_taken() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->taken;
}

std::size_t KvCache::blocks_to_free(std::size_t high, std::size_t low) const {
  const Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  const std::size_t filled = pool().blocks - impl.pool.free_blocks();
  return filled > high ? std::min(impl.idle, filled - std::min(low, filled)) : 0;
}

}  // namespace incipit::kv
