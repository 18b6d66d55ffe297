// SPDX-License-Identifier: Apache-2.0
#include "kv/kv_cache.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "kv/block_pool.h"
#include "kv/lru_list.h"
#include "kv/prefix_index.h"

namespace incipit::kv {
namespace {

std::size_t blocks_of(std::size_t tokens) noexcept {
  return tokens / kBlockTokens + (tokens % kBlockTokens != 0 ? 1 : 0);
}

}  // namespace

// What holds between calls:
//  - A block is free, or held by live tables, or held by the index, or both of the latter.
//  - A table whose epoch is the cache's holds the block of each node from the root to its last one.
//    So a node is held by at least as many tables as each of its children.
//  - The blocks that only the index holds are those in `evictable`, and there a node comes after
//    its descendants: tables give their blocks back tail first.
//  - free + evictable >= promised, so that a promised block can always be had.
struct KvCache::Impl {
  Impl(device::Device& device, const device::KvLayout& layout, KvCacheOptions&& options)
      : hash(std::move(options.hash)),
        pool(device, layout, options.blocks, options.poison_freed_blocks),
        index(options.blocks),
        evictable(options.blocks) {}

  /// The hash of each whole block of `tokens` and all that precedes it.
  std::vector<std::uint64_t> chain_hashes(std::uint64_t parent,
                                          std::span<const TokenId> tokens) const {
    std::vector<std::uint64_t> hashes(tokens.size() / kBlockTokens);
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      const TokenBlock block = token_block(tokens, i);
      parent = hash ? hash(parent, block) : base::xxh3_64(std::as_bytes(block), parent);
      hashes[i] = parent;
    }
    return hashes;
  }

  static std::uint64_t root_hash(const std::string& name_space) noexcept {
    return base::xxh3_64(base::as_bytes(name_space));
  }

  const std::function<std::uint64_t(std::uint64_t, std::span<const TokenId>)> hash;

  mutable std::mutex mutex;  // guards all below
  BlockPool pool;            // its view() is constant
  PrefixIndex index;
  LruList evictable;
  std::size_t promised = 0;    // blocks reserved by tables and not taken yet
  std::size_t table_refs = 0;  // blocks of tables, summed over the tables
  std::uint64_t epoch = 1;     // goes up with each clear()
  CacheStats counters;         // lookups, tokens and evictions

  // With `mutex` held:

  struct Found {
    std::vector<NodeId> path = {};  // whole blocks
    PrefixIndex::Run partial = {};  // the front of one more
    std::size_t tokens() const noexcept { return path.size() * kBlockTokens + partial.tokens; }
  };
  Found look_up(const std::string& name_space, std::span<const std::uint64_t> hashes,
                std::span<const TokenId> tokens) const;
  void hold(BlockTable& table, NodeId node);
  void take_promised(BlockTable& table);
  void copy_promised(BlockTable& table, NodeId source);
  BlockId forget(NodeId leaf);
  void check_evictable() const;
};

/// What is known of a prompt, save its last token. Nothing is ever indexed without a namespace.
KvCache::Impl::Found KvCache::Impl::look_up(const std::string& name_space,
                                            std::span<const std::uint64_t> hashes,
                                            std::span<const TokenId> tokens) const {
  Found found;
  const NodeId root = index.find_root(name_space);
  if (root == kNoNode || tokens.empty()) return found;
  found.path.reserve(hashes.size());
  index.walk(root, hashes, tokens, found.path);
  const std::span<const TokenId> rest = tokens.subspan(found.path.size() * kBlockTokens);
  if (rest.empty()) {
    found.partial = {found.path.back(), kBlockTokens - 1};
    found.path.pop_back();
  } else {
    const NodeId last = found.path.empty() ? root : found.path.back();
    found.partial = index.longest_run(last, rest.first(rest.size() - 1));
  }
  return found;
}

/// Appends the block of a child of the table's last node.
void KvCache::Impl::hold(BlockTable& table, NodeId node) {
  const BlockId block = index.block(node);
  if (pool.retain(block) == 2) evictable.remove(node);
  table.blocks_.push_back(block);
  table.last_node_ = node;
  ++table.committed_;
  ++table_refs;
}

/// Appends a block out of those that were promised to the table.
void KvCache::Impl::take_promised(BlockTable& table) {
  INCIPIT_CHECK(table.reserved_ > 0);
  if (pool.free_blocks() == 0) pool.release(forget(evictable.oldest()));
  table.blocks_.push_back(pool.take());
  --table.reserved_;
  --promised;
  ++table_refs;
}

/// The same with the KV of `source`, which counts as used now.
void KvCache::Impl::copy_promised(BlockTable& table, NodeId source) {
  if (evictable.contains(source)) {
    evictable.remove(source);
    evictable.push_newest(source);
    if (pool.free_blocks() == 0 && evictable.size() == 1) {
      // Nothing else can be evicted: the block itself changes hands, from the index to the table.
      table.blocks_.push_back(forget(source));
      --table.reserved_;
      --promised;
      ++table_refs;
      return;
    }
  }
  take_promised(table);
  pool.copy(index.block(source), table.blocks_.back());
}

/// Evicts a leaf. The index's hold on its block passes to the caller.
BlockId KvCache::Impl::forget(NodeId leaf) {
  evictable.remove(leaf);
  ++counters.evictions;
  return index.remove(leaf);
}

KvCache::KvCache(device::Device& device, const device::KvLayout& layout, KvCacheOptions options)
    : impl_(std::make_unique<Impl>(device, layout, std::move(options))) {}

KvCache::~KvCache() = default;

const device::KvPoolView& KvCache::pool() const noexcept { return impl_->pool.view(); }

bool KvCache::start(const std::string& name_space, std::span<const TokenId> tokens,
                    std::size_t total_tokens, Match& match) {
  INCIPIT_CHECK(total_tokens >= tokens.size());
  Impl& impl = *impl_;
  const std::size_t needed = blocks_of(total_tokens);
  if (needed > pool().blocks) return false;

  std::vector<std::uint64_t> hashes;
  BlockTable table;  // outlives the lock, so that it may give its blocks back where a call throws
  table.blocks_.reserve(needed);
  if (!name_space.empty()) {
    table.name_space_ = name_space;
    table.chain_hash_ = Impl::root_hash(name_space);
    hashes = impl.chain_hashes(table.chain_hash_, tokens);
  }
  std::size_t reused = 0;
  {
    const std::lock_guard lock(impl.mutex);
    const Impl::Found found = impl.look_up(name_space, hashes, tokens);
    const std::size_t fresh = needed - found.path.size();
    const auto unheld = std::count_if(found.path.begin(), found.path.end(),
                                      [&](NodeId node) { return impl.evictable.contains(node); });
    if (impl.pool.free_blocks() + impl.evictable.size() <
        impl.promised + fresh + static_cast<std::size_t>(unheld)) {
      return false;
    }
    table.cache_ = this;
    table.epoch_ = impl.epoch;
    for (const NodeId node : found.path) impl.hold(table, node);
    if (!found.path.empty()) table.chain_hash_ = hashes[found.path.size() - 1];
    table.reserved_ = fresh;
    impl.promised += fresh;
    if (found.partial.tokens > 0) impl.copy_promised(table, found.partial.node);

    reused = found.tokens();
    if (!name_space.empty()) {
      ++impl.counters.lookups;
      impl.counters.tokens_wanted += tokens.size();
      impl.counters.tokens_reused += reused;
    }
  }
  match.table = std::move(table);
  match.tokens = reused;
  return true;
}

void KvCache::extend(BlockTable& table, std::size_t tokens) {
  const std::size_t wanted = blocks_of(tokens);
  if (wanted <= table.blocks_.size()) return;
  INCIPIT_CHECK(table.cache_ == this && wanted <= table.blocks_.size() + table.reserved_);
  const std::lock_guard lock(impl_->mutex);
  while (table.blocks_.size() < wanted) impl_->take_promised(table);
}

void KvCache::commit(BlockTable& table, std::span<const TokenId> tokens) {
  const std::size_t full = tokens.size() / kBlockTokens;
  if (table.name_space_.empty() || full <= table.committed_) return;
  INCIPIT_CHECK(table.cache_ == this && full <= table.blocks_.size());
  Impl& impl = *impl_;
  const std::size_t first = table.committed_;
  const std::vector<std::uint64_t> hashes = impl.chain_hashes(
      table.chain_hash_, tokens.first(full * kBlockTokens).subspan(first * kBlockTokens));

  const std::lock_guard lock(impl.mutex);
  if (table.epoch_ != impl.epoch) return;
  NodeId parent = first == 0 ? impl.index.make_root(table.name_space_) : table.last_node_;
  for (std::size_t i = first; i < full; ++i) {
    const std::uint64_t hash = hashes[i - first];
    NodeId node = impl.index.find(parent, hash, token_block(tokens, i));
    if (node == kNoNode) {
      node = impl.index.insert(parent, hash, token_block(tokens, i), table.blocks_[i]);
      impl.pool.retain(table.blocks_[i]);
    } else {
      // Another sequence was first. The table has its block before the duplicate is let go.
      const BlockId known = impl.index.block(node);
      if (impl.pool.retain(known) == 2) impl.evictable.remove(node);
      impl.pool.release(std::exchange(table.blocks_[i], known));
    }
    table.last_node_ = parent = node;
    table.chain_hash_ = hash;
    table.committed_ = i + 1;
  }
}

void KvCache::release(BlockTable& table) noexcept {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  const bool indexed = table.epoch_ == impl.epoch;
  NodeId node = table.last_node_;
  for (std::size_t i = table.blocks_.size(); i-- > 0;) {
    const std::uint32_t holders = impl.pool.release(table.blocks_[i]);
    if (!indexed || i >= table.committed_) continue;
    if (holders == 1) impl.evictable.push_newest(node);
    node = impl.index.parent(node);
  }
  impl.promised -= table.reserved_;
  impl.table_refs -= table.blocks_.size();
}

void KvCache::clear() {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  ++impl.epoch;
  for (std::size_t i = 0; i < pool().blocks; ++i) {
    const auto node = static_cast<NodeId>(i);
    if (impl.index.is_used(node)) impl.pool.release(impl.index.block(node));
  }
  impl.evictable.clear();
  impl.index.clear();
}

CacheStats KvCache::stats() const {
  const Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  CacheStats stats = impl.counters;
  const device::KvPoolView& view = pool();
  stats.blocks_total = view.blocks;
  stats.blocks_cached = impl.index.size();
  stats.blocks_in_use = view.blocks - impl.pool.free_blocks() - impl.evictable.size();
  stats.bytes = view.blocks * view.layout.block_bytes();
  return stats;
}

void KvCache::check_integrity() const {
  const Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  impl.pool.check_integrity();
  impl.index.check_integrity();
  impl.check_evictable();

  std::vector<bool> indexed(pool().blocks, false);
  std::size_t holders = 0;
  for (std::size_t i = 0; i < pool().blocks; ++i) {
    holders += impl.pool.holders(static_cast<BlockId>(i));
    const auto node = static_cast<NodeId>(i);
    if (!impl.index.is_used(node)) continue;
    const BlockId block = impl.index.block(node);
    INCIPIT_CHECK(!indexed.at(block) && impl.pool.holders(block) > 0);
    indexed[block] = true;
    INCIPIT_CHECK(impl.evictable.contains(node) == (impl.pool.holders(block) == 1));
    const NodeId parent = impl.index.parent(node);
    INCIPIT_CHECK(impl.index.is_root(parent) ||
                  impl.pool.holders(impl.index.block(parent)) >= impl.pool.holders(block));
  }
  INCIPIT_CHECK(holders == impl.index.size() + impl.table_refs);
  INCIPIT_CHECK(impl.pool.free_blocks() + impl.evictable.size() >= impl.promised);
}

/// The list is whole, and its nodes come after their descendants.
void KvCache::Impl::check_evictable() const {
  std::vector<bool> seen(pool.view().blocks, false);
  std::size_t count = 0;
  for (NodeId node = evictable.oldest(); node != kNoNode; node = evictable.newer(node)) {
    INCIPIT_CHECK(index.is_used(node) && !seen.at(node));
    seen[node] = true;
    ++count;
    const NodeId parent = index.parent(node);
    INCIPIT_CHECK(index.is_root(parent) || !seen[parent]);
  }
  INCIPIT_CHECK(count == evictable.size());
}

BlockTable& BlockTable::operator=(BlockTable&& other) noexcept {
  BlockTable taken(std::move(other));
  swap(taken);
  return *this;
}

void BlockTable::swap(BlockTable& other) noexcept {
  std::swap(cache_, other.cache_);
  std::swap(blocks_, other.blocks_);
  std::swap(name_space_, other.name_space_);
  std::swap(epoch_, other.epoch_);
  std::swap(committed_, other.committed_);
  std::swap(reserved_, other.reserved_);
  std::swap(chain_hash_, other.chain_hash_);
  std::swap(last_node_, other.last_node_);
}

void BlockTable::reset() noexcept {
  if (cache_ != nullptr) cache_->release(*this);
}

}  // namespace incipit::kv
