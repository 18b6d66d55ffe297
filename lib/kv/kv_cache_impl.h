// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_KV_CACHE_IMPL_H_
#define INCIPIT_KV_KV_CACHE_IMPL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kv/block_pool.h"
#include "kv/eviction_order.h"
#include "kv/hot_sessions.h"
#include "kv/indexed_heap.h"
#include "kv/kv_cache.h"
#include "kv/prefix_index.h"

namespace incipit::kv {

// What holds between calls:
//  - A block is free, or held by live tables, or held by the index, or both of the latter. A node
//    of the index has the id of its block.
//  - A table holds the block of each node from the root to its last one, as far as none of them was
//    invalidated. So a node is held by at least as many tables as each of its children.
//  - `idle` blocks are those that only the index holds. The leaves among them are the candidates
//    for eviction; since an idle node has idle children only, all idle blocks can be evicted.
//  - free + idle >= promised, so that a promised block can always be had.
//  - A node expires no later than its parent.
//  - An owner above its quota has no candidate, save pinned ones.
struct KvCache::Impl {
  /// What the index does not know of a node.
  struct Node {
    ScopeId scope = kNoScope;
    LabelSetId labels = 0;  // held
    std::uint32_t depth = 0;
    std::uint32_t hits = 0;
    std::uint32_t labels_version = 0;
    std::uint8_t stored = 0;
    CachePriority priority = CachePriority::kNormal;
    Time priority_until = Time::max();  // then kNormal
    Time expires = Time::max();
    Time pinned_until = Time::min();
  };

  Impl(device::Device& device, const device::KvLayout& layout, KvCacheOptions&& given);

  /// The hash of each whole block of `tokens` and all that precedes it.
  std::vector<std::uint64_t> chain_hashes(std::uint64_t parent,
                                          std::span<const TokenId> tokens) const;
  static std::uint64_t root_hash(std::string_view name_space) noexcept;
  Time now() const { return options.clock ? options.clock() : std::chrono::steady_clock::now(); }

  const KvCacheOptions options;

  mutable std::mutex mutex;  // guards all below
  BlockPool pool;            // its view() is constant
  PrefixIndex index;
  std::vector<Node> nodes;  // [node]
  EvictionOrder order;
  LabelSets labels;
  Scopes scopes;
  HotSessions hot;
  std::optional<NodeLinks> quota_links;        // of Owner::candidates, where there is a quota
  std::optional<IndexedHeap<Time>> deadlines;  // nodes by deadline(), once one has any
  MissMemory memory;
  EventLog log;
  std::size_t idle = 0;        // see above
  std::size_t promised = 0;    // blocks reserved by tables and not taken yet
  std::uint64_t taken = 0;     // blocks that tables took, ever
  std::size_t table_refs = 0;  // blocks of tables, summed over the tables
  std::uint64_t epoch = 1;     // goes up with each invalidation
  std::uint64_t cleared = 0;   // the epoch of the last clear()
  CacheStats counters;         // lookups, tokens and evictions

  // With `mutex` held:

  /// Adds one label set to many: the nodes of a path have few different ones.
  class Joiner {
   public:
    Joiner(LabelSets& sets, LabelSetId more) : sets_(sets), more_(more) {}
    ~Joiner() { forget(); }
    Joiner(const Joiner&) = delete;
    Joiner& operator=(const Joiner&) = delete;
    /// The union, held by the joiner until the next call.
    LabelSetId operator()(LabelSetId set);

   private:
    void forget() noexcept;

    LabelSets& sets_;
    LabelSetId more_;
    LabelSetId from_ = kNoLabelSet, to_ = kNoLabelSet;
  };

  // Sequences (kv_cache.cpp)
  struct Found {
    std::vector<NodeId> path = {};  // whole blocks
    PrefixIndex::Run partial = {};  // the front of one more
    std::size_t tokens() const noexcept { return path.size() * kBlockTokens + partial.tokens; }
  };
  Found look_up(const std::string& name_space, std::span<const std::uint64_t> hashes,
                std::span<const TokenId> tokens) const;
  void enlist(BlockTable& table, const std::string& name_space, const CacheLabels& given);
  void inherit(BlockTable& table, const BlockTable& from);
  bool has_room(std::size_t blocks) const noexcept { return pool.free_blocks() + idle >= blocks; }
  void hold(NodeId node);
  void let_go(BlockId block, bool used = true);
  void give_back(BlockTable& table);
  void append(BlockTable& table, BlockId block);
  void take_promised(BlockTable& table);
  void copy_promised(BlockTable& table, NodeId source);
  bool copy_sibling(const BlockTable& sibling, BlockTable& table, Time time);
  bool is_cut(const BlockTable& table, std::span<const TokenId> tokens, Time time) const;
  void add_node(const BlockTable& table, std::size_t at, NodeId parent, std::uint64_t hash,
                TokenBlock tokens);
  void touch(NodeId node, const BlockTable& table, std::size_t at, Joiner& joiner);
  void set_labels(NodeId node, LabelSetId set);

  // Forgetting (kv_cache_forget.cpp)
  void prefetch_removal(NodeId node) const;
  void remove(NodeId leaf, Gone why);
  void detach(NodeId node, Gone why);
  std::size_t remove_subtree(NodeId top, Gone why);
  std::size_t remove_scope(ScopeId scope);

  // Room (kv_cache_room.cpp)
  NodeFacts node_facts(NodeId node) const { return {index.hash(node), nodes[node].depth}; }
  std::uint64_t parent_hash(NodeId node) const;
  Rank wanted_rank(const Node& node) const;
  static Time deadline(const Node& node);
  void use_session(const BlockTable& table);
  void refresh(NodeId node);
  void tick(Time time);
  void add_candidate(NodeId node, bool is_newest);
  void remove_candidate(NodeId node);
  void evict_one();
  void enforce_quota(ScopeId scope);
  bool is_cold(NodeId node) const { return hot.is_cold(labels.only_session(nodes[node].labels)); }
  bool add_victim(KvCache& cache, NodeId leaf, std::size_t limit, std::vector<Victim>& victims);
  bool hold_victim(KvCache& cache, NodeId leaf, std::size_t limit, Victim& victim);

  // Tiers and reports (kv_cache_facts.cpp)
  std::size_t indexed_blocks(const BlockTable& table) const;
  PathNames scope_names(ScopeId scope) const;
  PathNames find_elsewhere(TokenBlock tokens) const;

  // check_integrity() (kv_cache_check.cpp)
  void check_node(NodeId node) const;
  void check_owners() const;
};

inline std::size_t blocks_of(std::size_t tokens) noexcept {
  return tokens / kBlockTokens + (tokens % kBlockTokens != 0 ? 1 : 0);
}

}  // namespace incipit::kv

#endif  // INCIPIT_KV_KV_CACHE_IMPL_H_
