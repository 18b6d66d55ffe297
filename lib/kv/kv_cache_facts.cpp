// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "kv/kv_cache_impl.h"

namespace incipit::kv {

std::size_t KvCache::Impl::indexed_blocks(const BlockTable& table) const {
  // A node takes its descendants along when it goes.
  const auto begin = table.blocks_.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(table.committed_);
  const auto gone =
      std::partition_point(begin, end, [this](BlockId block) { return index.is_used(block); });
  return static_cast<std::size_t>(gone - begin);
}

PathFacts KvCache::facts(const BlockTable& table) const {
  const Impl& impl = *impl_;
  const Time now = impl.now();
  PathFacts facts;
  std::map<LabelSetId, std::uint32_t> sets;
  const std::lock_guard lock(impl.mutex);
  const std::size_t count = impl.indexed_blocks(table);
  facts.blocks.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Impl::Node& node = impl.nodes[table.blocks_[i]];
    const auto [set, is_new] =
        sets.try_emplace(node.labels, static_cast<std::uint32_t>(sets.size()));
    if (is_new) facts.label_sets.push_back(impl.labels.names(node.labels));
    facts.blocks.push_back({.stored = node.stored,
                            .hits = node.hits,
                            .label_set = set->second,
                            .labels_version = node.labels_version});
    if (node.expires == Time::max()) continue;
    facts.blocks.back().life = std::chrono::duration_cast<std::chrono::seconds>(node.expires - now);
  }
  return facts;
}

PathNames KvCache::names(const BlockTable& table) const {
  const Impl& impl = *impl_;
  PathNames names;
  const std::lock_guard lock(impl.mutex);
  if (table.scope_ == kNoScope) return names;
  names = impl.scope_names(table.scope_);
  const std::size_t count = impl.indexed_blocks(table);
  names.tokens.reserve(count * kBlockTokens);
  for (std::size_t i = 0; i < count; ++i) {
    const TokenBlock tokens = impl.index.tokens(table.blocks_[i]);
    names.tokens.insert(names.tokens.end(), tokens.begin(), tokens.end());
  }
  return names;
}

PathNames KvCache::Impl::scope_names(ScopeId scope) const {
  return {.name_space = scopes.at(scope).name_space,
          .salt = scopes.salt(scope),
          .version = scopes.at(scope).version};
}

void KvCache::mark_stored(const BlockTable& table, std::size_t first, std::size_t count,
                          std::uint8_t bits) {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  const std::size_t end = impl.indexed_blocks(table);
  for (std::size_t i = first; i < end && i - first < count; ++i) {
    impl.nodes[table.blocks_[i]].stored |= bits;
  }
}

void KvCache::mark_stored(const BlockTable& table, std::size_t first,
                          std::span<const BlockFacts> seen, std::uint8_t bits) {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  const std::size_t end = impl.indexed_blocks(table);
  for (std::size_t i = first; i < end && i - first < seen.size(); ++i) {
    Impl::Node& node = impl.nodes[table.blocks_[i]];
    if (node.labels_version == seen[i - first].labels_version) node.stored |= bits;
  }
}

void KvCache::clear_stored(std::uint8_t bits) {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  for (Impl::Node& node : impl.nodes) node.stored &= static_cast<std::uint8_t>(~bits);
}

void KvCache::add_labels(const BlockTable& table, std::size_t first, std::size_t count,
                         const LabelNames& labels) {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  struct Held {
    LabelSets& sets;
    LabelSetId id;
    ~Held() { sets.release(id); }
  } const held{impl.labels, impl.labels.make(labels)};
  Impl::Joiner joiner(impl.labels, held.id);
  const std::size_t end = impl.indexed_blocks(table);
  for (std::size_t i = first; i < end && i - first < count; ++i) {
    const NodeId node = table.blocks_[i];
    impl.set_labels(node, joiner(impl.nodes[node].labels));
    impl.refresh(node);
  }
}

CacheStats KvCache::stats() const {
  const Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  CacheStats stats = impl.counters;
  const device::KvPoolView& view = pool();
  stats.blocks_total = view.blocks;
  stats.blocks_cached = impl.index.size();
  stats.blocks_in_use = view.blocks - impl.pool.free_blocks() - impl.idle;
  stats.bytes = view.blocks * view.layout.block_bytes();
  return stats;
}

std::size_t KvCache::known_tokens(const std::string& name_space,
                                  std::span<const TokenId> tokens) const {
  if (name_space.empty()) return 0;
  const auto hashes = impl_->chain_hashes(Impl::root_hash(name_space), tokens);
  const std::lock_guard lock(impl_->mutex);
  return impl_->look_up(name_space, hashes, tokens).path.size() * kBlockTokens;
}

std::size_t KvCache::owner_blocks(std::string_view salt) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->scopes.owners().find(salt);
  return found == impl_->scopes.owners().end() ? 0 : found->second.blocks;
}

MissReport KvCache::explain_miss(const std::string& name_space,
                                 std::span<const TokenId> tokens) const {
  Impl& impl = *impl_;
  const std::vector<std::uint64_t> hashes = impl.chain_hashes(Impl::root_hash(name_space), tokens);
  MissReport report;
  std::vector<NodeId> path;
  const Time now = impl.now();
  const std::lock_guard lock(impl.mutex);
  impl.tick(now);
  const NodeId root = impl.index.find_root(name_space);
  if (root != kNoNode) {
    impl.index.walk(root, hashes, tokens, path);
    const std::span<const TokenId> rest = tokens.subspan(path.size() * kBlockTokens);
    const PrefixIndex::Run run = impl.index.longest_run(
        path.empty() ? root : path.back(), rest.first(std::min(rest.size(), kBlockTokens)));
    report.known_tokens = path.size() * kBlockTokens + run.tokens;
    if (run.node != kNoNode) {
      const TokenBlock sibling = impl.index.tokens(run.node);
      report.sibling.assign(sibling.begin(), sibling.end());
    }
  }
  report.whole = path.size() == hashes.size();
  if (report.whole) return report;
  report.why = impl.memory.recall(hashes[path.size()]);
  if (report.known_tokens == 0) report.elsewhere = impl.find_elsewhere(token_block(tokens, 0));
  return report;
}

/// A namespace that has a first block, or none.
PathNames KvCache::Impl::find_elsewhere(TokenBlock tokens) const {
  for (const auto& [name, scope] : scopes.all()) {
    const NodeId root = index.find_root(name);
    if (root == kNoNode) continue;
    const std::uint64_t hash = chain_hashes(root_hash(name), tokens).front();
    if (index.find(root, hash, tokens) == kNoNode) continue;
    PathNames names = scope_names(scope);
    names.tokens.assign(tokens.begin(), tokens.end());
    return names;
  }
  return {};
}

EventLog::Batch KvCache::events(std::uint64_t from, std::size_t limit) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->log.read(from, limit);
}

EventLog::Batch KvCache::snapshot() const {
  const Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  EventLog::Batch all{.next = impl.log.next()};
  all.events.reserve(impl.index.size());
  std::vector<NodeId> parents;
  for (const auto& [name, scope] : impl.scopes.all()) {
    if (const NodeId root = impl.index.find_root(name); root != kNoNode) parents.push_back(root);
  }
  while (!parents.empty()) {
    NodeId node = impl.index.first_child(parents.back());
    parents.pop_back();
    for (; node != kNoNode; node = impl.index.next_sibling(node)) {
      CacheEvent event{.sequence = all.next,
                       .identity = impl.index.hash(node),
                       .parent = impl.parent_hash(node)};
      const TokenBlock tokens = impl.index.tokens(node);
      std::copy(tokens.begin(), tokens.end(), event.tokens.begin());
      all.events.push_back(event);
      parents.push_back(node);
    }
  }
  return all;
}

}  // namespace incipit::kv
