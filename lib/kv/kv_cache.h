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
class BlockTable {
 public:
  BlockTable() = default;
  ~BlockTable();
  BlockTable(BlockTable&& other) noexcept;
  BlockTable& operator=(BlockTable&& other) noexcept;

  std::span<const BlockId> blocks() const noexcept { return blocks_; }
  /// Blocks at the front that the index knows; they are never written again.
  std::size_t committed() const noexcept { return committed_; }

 private:
  friend class KvCache;
  KvCache* cache_ = nullptr;
  std::vector<BlockId> blocks_;
  std::size_t committed_ = 0;
  std::size_t reserved_ = 0;     // blocks promised to this table and not taken yet
  std::uint32_t last_node_ = 0;  // index node of the last committed block
};

struct KvCacheOptions {
  std::size_t blocks = 0;
  bool poison_freed_blocks = false;  // fill with NaN, so that a stale read shows (tests)
  // Of (parent hash, namespace, token ids of the block); for tests that want collisions.
  std::function<std::uint64_t(std::uint64_t parent, std::span<const TokenId> tokens)> hash = {};
};

/// A block pool with the index of the prefixes that lie in it.
///
/// Namespace strings are tagged, length-prefixed fields (base::FieldWriter) of everything that
/// changes KV bytes and of who may share; they are compared in full, never by hash.
///
/// Thread-safe. One mutex; nothing but block copies happens under it that is not O(blocks touched).
class KvCache {
 public:
  /// Allocates the pool. Throws Error{kOutOfMemory}.
  KvCache(device::Device& device, const device::KvLayout& layout, KvCacheOptions options);
  ~KvCache();  // all tables are gone by then
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  const device::KvPoolView& pool() const noexcept;

  /// The KV that is known of a prompt: whole blocks, then the common front of one more block, which
  /// is copied into a private block. At most tokens.size() - 1 tokens, so that one is left to
  /// compute.
  struct Match {
    BlockTable table;
    std::size_t tokens = 0;
  };

  /// Starts a sequence: looks up `tokens` under `name_space`, pins what is found and reserves room
  /// for `total_tokens` in all, so that extend() cannot fail up to there. False, and `match`
  /// untouched, where the pool cannot promise that now. Empty name_space: finds nothing.
  bool start(const std::string& name_space, std::span<const TokenId> tokens,
             std::size_t total_tokens, Match& match);

  /// Takes blocks so that the table covers `tokens` in all; within what start() reserved.
  void extend(BlockTable& table, std::size_t tokens);

  /// Makes the full blocks of `tokens` (all those whose KV is complete) findable. A block that the
  /// index has already is replaced in the table by that one.
  void commit(const std::string& name_space, BlockTable& table, std::span<const TokenId> tokens);

  /// Forgets every prefix; running sequences keep their blocks.
  void clear();

  CacheStats stats() const;
  /// Throws Error{kInternal} where index, free list and reference counts disagree. O(pool).
  void check_integrity() const;

 private:
  friend class BlockTable;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_KV_CACHE_H_
