// SPDX-License-Identifier: Apache-2.0
#include "kv/kv_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "kv/kv_cache_impl.h"

namespace incipit::kv {
namespace {

// Nodes that are loaded before their turn: in a large pool each is a cache miss.
constexpr std::size_t kAhead = 8;

/// `duration` after `from`, or never where that is beyond all time.
Time after(Time from, std::chrono::seconds duration) noexcept {
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(Time::max() - from);
  return duration < left ? from + duration : Time::max();
}

}  // namespace

KvCache::Impl::Impl(device::Device& device, const device::KvLayout& layout, KvCacheOptions&& given)
    : options(std::move(given)),
      pool(device, layout, options.blocks, options.poison_freed_blocks),
      index(options.blocks),
      nodes(options.blocks),
      order(options.eviction, options.blocks),
      hot(options.hot_sessions, options.blocks, labels),
      memory(options.blocks),
      log(options.event_buffer) {
  pool.make_ready(options.ready_bytes);
  if (options.owner_quota_blocks > 0) quota_links.emplace(options.blocks);
  if (hot.is_on()) order.prepare(Rank::kLow);
}

std::vector<std::uint64_t> KvCache::Impl::chain_hashes(std::uint64_t parent,
                                                       std::span<const TokenId> tokens) const {
  std::vector<std::uint64_t> hashes(tokens.size() / kBlockTokens);
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const TokenBlock block = token_block(tokens, i);
    parent =
        options.hash ? options.hash(parent, block) : base::xxh3_64(std::as_bytes(block), parent);
    hashes[i] = parent;
  }
  return hashes;
}

std::uint64_t KvCache::Impl::root_hash(std::string_view name_space) noexcept {
  return base::xxh3_64(base::as_bytes(name_space));
}

LabelSetId KvCache::Impl::Joiner::operator()(LabelSetId set) {
  if (set == more_) return set;
  if (set != from_) {
    const LabelSetId both = sets_.join(set, more_);
    forget();
    sets_.retain(set);
    from_ = set;
    to_ = both;
  }
  return to_;
}

void KvCache::Impl::Joiner::forget() noexcept {
  if (from_ == kNoLabelSet) return;
  sets_.release(std::exchange(from_, kNoLabelSet));
  sets_.release(to_);
}

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

/// Gives a table of a namespace what it needs for its nodes.
void KvCache::Impl::enlist(BlockTable& table, const std::string& name_space,
                           const CacheLabels& given) {
  LabelNames names{.tags = given.tags};
  if (!given.session.empty()) {
    names.common = false;
    names.sessions = {given.session};
  }
  table.labels_ = labels.make(names);
  table.scope_ = scopes.add_table(name_space, given.salt, given.version);
  table.indexed_ = true;
  bool ends = table.expires_ != Time::max();
  for (const BlockTable::Retention& retention : table.retention_) {
    order.prepare(static_cast<Rank>(retention.priority));
    ends = ends || retention.until != Time::max();
  }
  if (ends && !deadlines) deadlines.emplace(options.blocks);
}

/// Makes `table` another table of the same sequence, without blocks.
void KvCache::Impl::inherit(BlockTable& table, const BlockTable& from) {
  if (from.scope_ != kNoScope) {
    scopes.add_table(from.scope_);
    table.scope_ = from.scope_;
    labels.retain(from.labels_);
    table.labels_ = from.labels_;
  }
  table.indexed_ = from.indexed_;
  table.started_ = from.started_;
  table.expires_ = from.expires_;
}

/// One more table holds the block of a node.
void KvCache::Impl::hold(NodeId node) {
  if (pool.retain(node) != 2) return;
  --idle;
  if (index.is_leaf(node)) remove_candidate(node);
}

/// One table fewer holds a block.
void KvCache::Impl::let_go(BlockId block, bool used) {
  const std::uint32_t holders = pool.release(block);
  if (!index.is_used(block)) return;
  if (used) order.use(block);
  if (holders > 1) return;
  ++idle;
  if (index.is_leaf(block)) add_candidate(block, used);
}

void KvCache::Impl::append(BlockTable& table, BlockId block) {
  table.blocks_.push_back(block);
  ++table_refs;
}

/// Appends a block out of those that were promised to the table.
void KvCache::Impl::take_promised(BlockTable& table) {
  INCIPIT_CHECK(table.reserved_ > 0);
  if (pool.free_blocks() == 0) evict_one();
  append(table, pool.take());
  --table.reserved_;
  --promised;
  if (table.is_demand_) ++taken;
}

/// The same with the KV of `source`, which counts as found and used.
void KvCache::Impl::copy_promised(BlockTable& table, NodeId source) {
  order.hit(source);
  order.use(source);
  const bool is_last = pool.free_blocks() == 0 && idle == 1 && pool.holders(source) == 1;
  hold(source);  // so that it does not make room for its own copy
  if (is_last) {
    // Nothing else can be evicted: the block itself changes hands, from the index to the table.
    remove(source, Gone::kEvicted);
    ++counters.evictions;
    append(table, source);
    --table.reserved_;
    --promised;
    return;
  }
  struct Held {
    Impl& impl;
    NodeId node;
    ~Held() { impl.let_go(node); }
  } held{*this, source};
  take_promised(table);
  pool.copy(source, table.blocks_.back());
}

/// Copies the block of a sibling that stands behind those that a table has found. False where the
/// sibling has others in front of it, or none, or could bring back what was to be forgotten.
bool KvCache::Impl::copy_sibling(const BlockTable& sibling, BlockTable& table, Time time) {
  const std::size_t at = table.blocks_.size();
  if (at >= sibling.blocks_.size() || sibling.scope_ != table.scope_) return false;
  if (!sibling.indexed_ || sibling.started_ != epoch || sibling.expires_ <= time) return false;
  const auto& front = table.blocks_;
  if (!std::equal(front.begin(), front.end(), sibling.blocks_.begin())) return false;
  take_promised(table);
  pool.copy(sibling.blocks_[at], table.blocks_.back());
  return true;
}

/// True where something that concerns a table was invalidated after its start, or it has expired:
/// then its tokens are indexed no further.
bool KvCache::Impl::is_cut(const BlockTable& table, std::span<const TokenId> tokens,
                           Time time) const {
  if (table.expires_ <= time || cleared > table.started_) return true;
  if (scopes.at(table.scope_).cut_since(table.started_, tokens)) return true;
  if (labels.cut_since(table.labels_, table.started_)) return true;
  return table.committed_ > 0 && !index.is_used(table.blocks_[table.committed_ - 1]);
}

/// Indexes block `at` of a table.
void KvCache::Impl::add_node(const BlockTable& table, std::size_t at, NodeId parent,
                             std::uint64_t hash, TokenBlock tokens) {
  const NodeId node = table.blocks_[at];
  index.insert(parent, hash, tokens, node);
  pool.retain(node);
  const BlockTable::Retention retention = table.retention(at);
  nodes[node] = {.scope = table.scope_,
                 .labels = table.labels_,
                 .depth = static_cast<std::uint32_t>(at),
                 .priority = retention.priority,
                 .priority_until = retention.until,
                 .expires = table.expires_};
  labels.retain(table.labels_);
  scopes.add_block(table.scope_);
  hot.move(node, kNoLabel, labels.only_session(table.labels_));
  order.insert(node, node_facts(node), wanted_rank(nodes[node]));
  refresh(node);
  CacheEvent event{.identity = hash, .parent = parent_hash(node)};
  std::copy(tokens.begin(), tokens.end(), event.tokens.begin());
  log.push(event);
}

/// A request has found block `at` of its prompt, or computed it once more.
void KvCache::Impl::touch(NodeId id, const BlockTable& table, std::size_t at, Joiner& joiner) {
  Node& node = nodes[id];
  order.hit(id);
  if (node.hits < std::numeric_limits<std::uint32_t>::max()) ++node.hits;
  set_labels(id, joiner(node.labels));
  node.expires = std::max(node.expires, table.expires_);
  const BlockTable::Retention retention = table.retention(at);
  if (retention.priority > node.priority) {
    node.priority = retention.priority;
    node.priority_until = retention.until;
  } else if (retention.priority == node.priority) {
    node.priority_until = std::max(node.priority_until, retention.until);
  }
  refresh(id);
}

void KvCache::Impl::set_labels(NodeId id, LabelSetId set) {
  Node& node = nodes[id];
  if (node.labels == set) return;
  hot.move(id, labels.only_session(node.labels), labels.only_session(set));
  labels.retain(set);
  labels.release(std::exchange(node.labels, set));
  ++node.labels_version;
  node.stored = 0;
}

/// Takes back all that a table has.
void KvCache::Impl::give_back(BlockTable& table) {
  // From the last block to the first, so that a block in front counts as used later.
  for (std::size_t i = table.blocks_.size(); i-- > 0;) let_go(table.blocks_[i], table.counts_);
  promised -= table.reserved_;
  table_refs -= table.blocks_.size();
  if (table.labels_ != kNoLabelSet) labels.release(table.labels_);
  if (table.scope_ == kNoScope) return;
  enforce_quota(table.scope_);
  scopes.remove_table(table.scope_);
}

KvCache::KvCache(device::Device& device, const device::KvLayout& layout, KvCacheOptions options)
    : impl_(std::make_unique<Impl>(device, layout, std::move(options))) {}

KvCache::~KvCache() = default;

const device::KvPoolView& KvCache::pool() const noexcept { return impl_->pool.view(); }

bool KvCache::start(const std::string& name_space, const CacheLabels& labels,
                    std::span<const TokenId> tokens, std::size_t total_tokens, Match& match,
                    const StartOptions& options) {
  INCIPIT_CHECK(total_tokens >= tokens.size());
  Impl& impl = *impl_;
  const std::size_t needed = blocks_of(total_tokens);
  if (needed > pool().blocks) return false;

  const Time now = impl.now();
  std::vector<std::uint64_t> hashes;
  BlockTable table;  // outlives the lock, so that it may give its blocks back where a call throws
  table.blocks_.reserve(needed);
  if (!name_space.empty()) {
    table.chain_hash_ = Impl::root_hash(name_space);
    hashes = impl.chain_hashes(table.chain_hash_, tokens);
    const bool own = labels.time_to_live.count() > 0;
    const std::chrono::seconds life = own ? labels.time_to_live : impl.options.time_to_live;
    if (life.count() > 0) table.expires_ = after(now, life);
    for (const CacheRetention& given : labels.retention) {
      if (given.end_token <= given.first_token) continue;
      const bool ends = given.duration.count() > 0;
      table.retention_.push_back({given.first_token / kBlockTokens, blocks_of(given.end_token),
                                  given.priority, ends ? after(now, given.duration) : Time::max()});
    }
  }
  std::size_t reused = 0;
  {
    const std::lock_guard lock(impl.mutex);
    impl.tick(now);
    table.cache_ = this;
    table.is_demand_ = options.is_demand;
    table.started_ = impl.epoch;
    if (!name_space.empty()) impl.enlist(table, name_space, labels);
    const Impl::Found found = impl.look_up(name_space, hashes, tokens);
    const std::size_t fresh = needed - found.path.size();
    const auto unheld = std::count_if(found.path.begin(), found.path.end(),
                                      [&](NodeId node) { return impl.pool.holders(node) == 1; });
    const std::size_t taken = fresh + static_cast<std::size_t>(unheld);
    if (!impl.has_room(impl.promised + taken + options.spare_blocks)) return false;

    for (const NodeId node : found.path) {
      impl.hold(node);
      impl.append(table, node);
    }
    table.committed_ = found.path.size();
    if (!found.path.empty()) table.chain_hash_ = hashes[found.path.size() - 1];
    table.reserved_ = fresh;
    impl.promised += fresh;
    impl.use_session(table);
    Impl::Joiner joiner(impl.labels, table.labels_);
    for (std::size_t i = 0; i < found.path.size(); ++i) impl.touch(found.path[i], table, i, joiner);
    reused = found.tokens();
    const std::size_t known = std::min(options.sibling_tokens, tokens.size() - 1);
    if (known > reused && impl.copy_sibling(*options.sibling, table, now)) {
      reused = std::min(known, table.blocks_.size() * kBlockTokens);
    } else if (found.partial.tokens > 0) {
      impl.copy_promised(table, found.partial.node);
    }
    if (!name_space.empty() && options.counts) {
      ++impl.counters.lookups;
      impl.counters.tokens_wanted += tokens.size();
      impl.counters.tokens_reused += reused;
    }
  }
  match.table = std::move(table);
  match.tokens = reused;
  return true;
}

bool KvCache::reserve(BlockTable& table, std::size_t total_tokens) {
  const std::size_t wanted = blocks_of(total_tokens);
  const std::size_t have = table.blocks_.size() + table.reserved_;
  if (wanted <= have) return true;
  INCIPIT_CHECK(table.cache_ == this);
  if (wanted > pool().blocks) return false;
  table.blocks_.reserve(wanted);
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->has_room(impl_->promised + wanted - have)) return false;
  table.reserved_ += wanted - have;
  impl_->promised += wanted - have;
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
  if (!table.indexed_ || full <= table.committed_) return;
  INCIPIT_CHECK(table.cache_ == this && full <= table.blocks_.size());
  Impl& impl = *impl_;
  const std::size_t first = table.committed_;
  const std::vector<std::uint64_t> hashes = impl.chain_hashes(
      table.chain_hash_, tokens.first(full * kBlockTokens).subspan(first * kBlockTokens));
  const Time now = impl.now();

  const std::lock_guard lock(impl.mutex);
  impl.tick(now);
  if (impl.is_cut(table, tokens, now)) {
    table.indexed_ = false;
    return;
  }
  Impl::Joiner joiner(impl.labels, table.labels_);
  NodeId parent = first == 0 ? impl.index.make_root(impl.scopes.at(table.scope_).name_space)
                             : table.blocks_[first - 1];
  for (std::size_t i = first; i < full; ++i) {
    if (const std::size_t next = i + kAhead; next < full) {
      impl.index.prefetch(hashes[next - first], table.blocks_[next]);
      impl.order.prefetch(hashes[next - first]);
      __builtin_prefetch(&impl.nodes[table.blocks_[next]]);
    }
    const std::uint64_t hash = hashes[i - first];
    const NodeId known = impl.index.find(parent, hash, token_block(tokens, i));
    if (known == kNoNode) {
      impl.add_node(table, i, parent, hash, token_block(tokens, i));
    } else if (known != table.blocks_[i]) {
      // Another sequence was first. The table has its block before the duplicate is let go.
      impl.hold(known);
      impl.pool.release(std::exchange(table.blocks_[i], known));
      impl.touch(known, table, i, joiner);
    }
    parent = table.blocks_[i];
    table.chain_hash_ = hash;
    table.committed_ = i + 1;
  }
  impl.enforce_quota(table.scope_);
}

BlockTable KvCache::share(const BlockTable& table, std::size_t blocks) {
  INCIPIT_CHECK(table.cache_ == this && blocks <= table.committed_);
  Impl& impl = *impl_;
  BlockTable made;
  made.blocks_.reserve(blocks);
  made.retention_ = table.retention_;
  const std::lock_guard lock(impl.mutex);
  made.cache_ = this;
  impl.inherit(made, table);
  for (std::size_t i = 0; i < blocks; ++i) {
    impl.pool.retain(table.blocks_[i]);
    impl.append(made, table.blocks_[i]);
  }
  made.committed_ = blocks;
  // Nothing is indexed behind a block that was invalidated, so its hash is not needed.
  if (blocks == 0 && made.scope_ != kNoScope) {
    made.chain_hash_ = Impl::root_hash(impl.scopes.at(made.scope_).name_space);
  } else if (blocks > 0 && impl.index.is_used(table.blocks_[blocks - 1])) {
    made.chain_hash_ = impl.index.hash(table.blocks_[blocks - 1]);
  }
  return made;
}

bool KvCache::fork(const BlockTable& table, std::size_t tokens, std::size_t total_tokens,
                   BlockTable& child) {
  const std::size_t full = tokens / kBlockTokens;
  INCIPIT_CHECK(table.cache_ == this && total_tokens >= tokens);
  INCIPIT_CHECK(blocks_of(tokens) <= table.blocks_.size());
  const std::size_t needed = blocks_of(total_tokens);
  if (needed > pool().blocks) return false;
  Impl& impl = *impl_;
  BlockTable made = share(table, std::min(full, table.committed_));
  made.blocks_.reserve(needed);
  {
    const std::lock_guard lock(impl.mutex);
    INCIPIT_CHECK(full <= table.committed_ || !table.indexed_);
    const std::size_t fresh = needed - full;
    if (!impl.has_room(impl.promised + fresh)) return false;
    for (std::size_t i = made.blocks_.size(); i < full; ++i) {
      impl.pool.retain(table.blocks_[i]);
      impl.append(made, table.blocks_[i]);
    }
    made.reserved_ = fresh;
    impl.promised += fresh;
    if (full < blocks_of(tokens)) {
      impl.take_promised(made);
      impl.pool.copy(table.blocks_[full], made.blocks_.back());
    }
  }
  child = std::move(made);
  return true;
}

void KvCache::release(BlockTable& table) noexcept {
  const std::lock_guard lock(impl_->mutex);
  impl_->give_back(table);
}

BlockTable& BlockTable::operator=(BlockTable&& other) noexcept {
  BlockTable taken(std::move(other));
  swap(taken);
  return *this;
}

BlockTable::Retention BlockTable::retention(std::size_t block) const noexcept {
  for (std::size_t i = retention_.size(); i-- > 0;) {
    const Retention& last = retention_[i];
    if (last.first_block <= block && block < last.end_block) return last;
  }
  return {};
}

void BlockTable::swap(BlockTable& other) noexcept {
  std::swap(cache_, other.cache_);
  std::swap(blocks_, other.blocks_);
  std::swap(scope_, other.scope_);
  std::swap(labels_, other.labels_);
  std::swap(indexed_, other.indexed_);
  std::swap(started_, other.started_);
  std::swap(expires_, other.expires_);
  std::swap(retention_, other.retention_);
  std::swap(committed_, other.committed_);
  std::swap(reserved_, other.reserved_);
  std::swap(chain_hash_, other.chain_hash_);
  std::swap(counts_, other.counts_);
  std::swap(is_demand_, other.is_demand_);
}

void BlockTable::reset() noexcept {
  if (cache_ != nullptr) cache_->release(*this);
}

}  // namespace incipit::kv
