// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "kv/kv_cache_impl.h"

namespace incipit::kv {

void KvCache::check_integrity() const {
  const Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  impl.pool.check_integrity();
  impl.index.check_integrity();
  impl.labels.check_integrity();
  impl.scopes.check_integrity();

  std::size_t holders = 0, idle = 0, candidates = 0, ends = 0;
  for (std::size_t i = 0; i < pool().blocks; ++i) {
    const auto node = static_cast<NodeId>(i);
    holders += impl.pool.holders(node);
    if (!impl.index.is_used(node)) {
      INCIPIT_CHECK(impl.nodes[node].scope == kNoScope);
      INCIPIT_CHECK(!impl.deadlines || !impl.deadlines->contains(node));
      INCIPIT_CHECK(!impl.hot.has(node));
      continue;
    }
    impl.check_node(node);
    if (impl.pool.holders(node) == 1) ++idle;
    if (impl.order.is_candidate(node)) ++candidates;
    if (impl.deadlines && impl.deadlines->contains(node)) ++ends;
  }
  INCIPIT_CHECK(holders == impl.index.size() + impl.table_refs);
  INCIPIT_CHECK(idle == impl.idle && candidates == impl.order.candidates());
  INCIPIT_CHECK(!impl.deadlines || ends == impl.deadlines->size());
  INCIPIT_CHECK(impl.has_room(impl.promised));
  impl.check_owners();
}

void KvCache::Impl::check_node(NodeId id) const {
  const Node& node = nodes[id];
  const std::uint32_t held = pool.holders(id);
  INCIPIT_CHECK(held > 0 && labels.holders(node.labels) > 0);
  INCIPIT_CHECK(!labels.is_orphan(node.labels));
  INCIPIT_CHECK(order.is_candidate(id) == (held == 1 && index.is_leaf(id)));
  INCIPIT_CHECK(order.rank(id) == wanted_rank(node));
  INCIPIT_CHECK(hot.has(id) == (hot.is_on() && labels.only_session(node.labels) != kNoLabel));
  const Time end = deadline(node);
  INCIPIT_CHECK(deadlines ? deadlines->contains(id) == (end != Time::max()) : end == Time::max());
  INCIPIT_CHECK(!quota_links || quota_links->contains(id) == order.is_candidate(id));

  const NodeId parent = index.parent(id);
  if (index.is_root(parent)) {
    INCIPIT_CHECK(node.depth == 0);
    return;
  }
  INCIPIT_CHECK(node.depth == nodes[parent].depth + 1 && node.scope == nodes[parent].scope);
  INCIPIT_CHECK(pool.holders(parent) >= held && nodes[parent].expires >= node.expires);
}

/// Blocks of each namespace, and the lists of candidates.
void KvCache::Impl::check_owners() const {
  std::map<ScopeId, std::size_t> blocks;
  for (const Node& node : nodes) {
    if (node.scope != kNoScope) ++blocks[node.scope];
  }
  for (const auto& [name, id] : scopes.all()) {
    INCIPIT_CHECK(blocks[id] == scopes.at(id).blocks);
    INCIPIT_CHECK((blocks[id] > 0) == (index.find_root(name) != kNoNode));
  }
  std::size_t listed = 0;
  for (const auto& [salt, owner] : scopes.owners()) {
    std::size_t unpinned = 0;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      const NodeList& list = owner.candidates[rank];
      std::size_t size = 0;
      for (NodeId node = list.oldest; node != kNoNode; node = quota_links->newer(node)) {
        INCIPIT_CHECK(++size <= list.size);
        INCIPIT_CHECK(static_cast<std::size_t>(order.rank(node)) == rank);
        INCIPIT_CHECK(scopes.salt(nodes[node].scope) == salt);
      }
      INCIPIT_CHECK(size == list.size);
      listed += size;
      if (static_cast<Rank>(rank) != Rank::kPinned) unpinned += size;
    }
    INCIPIT_CHECK(!quota_links || owner.blocks <= options.owner_quota_blocks || unpinned == 0);
  }
  INCIPIT_CHECK(!quota_links || listed == order.candidates());
}

}  // namespace incipit::kv
