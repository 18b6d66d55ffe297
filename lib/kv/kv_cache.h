// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_KV_CACHE_H_
#define INCIPIT_KV_KV_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/kv_layout.h"
#include "incipit/metrics.h"
#include "incipit/sampling.h"

namespace incipit::kv {

using device::BlockId;

class KvCache;

/// The blocks of one live sequence, in order: an RAII pin, and the only way to reach blocks. The
/// front may be shared with other sequences and is immutable (`committed` blocks); the rest is
/// private. Move-only; gives its blocks back when it goes, which is cheap and never fails.
///
/// For one thread at a time. blocks() is never reallocated, but commit() may replace entries of it.
class BlockTable {
 public:
  BlockTable() = default;
  ~BlockTable() { reset(); }
  BlockTable(BlockTable&& other) noexcept { swap(other); }
  BlockTable& operator=(BlockTable&& other) noexcept;

  std::span<const BlockId> blocks() const noexcept { return blocks_; }
  /// Blocks at the front that others may share; they are never written again.
  std::size_t committed() const noexcept { return committed_; }

 private:
  friend class KvCache;
  void swap(BlockTable& other) noexcept;
  void reset() noexcept;

  KvCache* cache_ = nullptr;
  std::vector<BlockId> blocks_ = {};
  std::string name_space_ = {};   // empty: never indexed
  std::uint64_t epoch_ = 0;       // the cache's when this started; another one now: see clear()
  std::size_t committed_ = 0;     // the index's chain up to last_node_, where epoch_ is still right
  std::size_t reserved_ = 0;      // blocks promised to this table and not taken yet
  std::uint64_t chain_hash_ = 0;  // of the committed blocks
  std::uint32_t last_node_ = 0;   // index node of the last committed block, where there is one
};

struct KvCacheOptions {
  std::size_t blocks = 0;
  bool poison_freed_blocks = false;  // fill with NaN, so that a stale read shows (tests)
  // Of the hash of the blocks before and the token ids of one block; for tests that want
  // collisions. Called by several threads at once.
  std::function<std::uint64_t(std::uint64_t parent, std::span<const TokenId> tokens)> hash = {};
};

/// A block pool with the index of the prefixes that lie in it.
///
///     namespace root -- [tokens 0..15] -- [16..31] -- [32..47]      one node, one block each
///                                              \-- [32..47]'
///
/// The index is a radix tree over 16-token symbols. A node is found through one flat hash table,
/// keyed by a hash of its whole prefix, and proved by its parent and its token ids. A table holds
/// each block from the root to its last one; so what no table holds has no descendant that one
/// holds, and all of it can be evicted, leaves first.
///
/// Namespace strings are tagged, length-prefixed fields (base::FieldWriter) of everything that
/// changes KV bytes and of who may share; they are compared in full, never by hash.
///
/// Thread-safe. One mutex; nothing but block copies happens under it that is not O(blocks touched).
/// start() calls the device, so it runs where device calls are allowed.
class KvCache {
 public:
  /// Allocates the pool. Throws Error{kOutOfMemory, kInvalidArgument}.
  KvCache(device::Device& device, const device::KvLayout& layout, KvCacheOptions options);
  ~KvCache();  // all tables are gone by then
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  const device::KvPoolView& pool() const noexcept;

  /// The KV that is known of a prompt: whole blocks, then the common front of one more block, which
  /// is copied into a private block. At most tokens.size() - 1 tokens, so that one is left to
  /// compute.
  struct Match {
    BlockTable table = {};
    std::size_t tokens = 0;
  };

  /// Starts a sequence: looks up `tokens` under `name_space`, pins what is found and reserves room
  /// for `total_tokens` (>= tokens.size()) in all, so that extend() cannot fail up to there. False,
  /// and nothing changed, where the pool cannot promise that now; it never can for more than
  /// pool().blocks blocks. Empty name_space: finds nothing, and commit() indexes nothing.
  bool start(const std::string& name_space, std::span<const TokenId> tokens,
             std::size_t total_tokens, Match& match);

  /// Takes blocks so that the table covers `tokens` in all; within what start() reserved.
  void extend(BlockTable& table, std::size_t tokens);

  /// Makes the full blocks of `tokens` (all those from position 0 whose KV is complete) findable in
  /// the table's namespace. A block that the index has already takes the place of the table's own;
  /// so no step that reads the table may be under way. May be called again with more tokens.
  void commit(BlockTable& table, std::span<const TokenId> tokens);

  /// Forgets every prefix. Running sequences keep their blocks, but are not indexed any more:
  /// nothing from before is found afterwards.
  void clear();

  CacheStats stats() const;
  /// Throws Error{kInternal} where index, eviction order, free list and reference counts disagree.
  /// O(pool).
  void check_integrity() const;

 private:
  friend class BlockTable;
  void release(BlockTable& table) noexcept;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_KV_CACHE_H_
