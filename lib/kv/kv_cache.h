// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_KV_CACHE_H_
#define INCIPIT_KV_KV_CACHE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "device/kv_layout.h"
#include "incipit/metrics.h"
#include "incipit/prefix_cache.h"
#include "incipit/sampling.h"
#include "kv/block_table.h"
#include "kv/event_log.h"
#include "kv/labels.h"
#include "kv/miss_memory.h"

namespace incipit::kv {

struct KvCacheOptions {
  std::size_t blocks = 0;
  std::size_t ready_bytes = 0;       // see BlockPool::make_ready()
  bool poison_freed_blocks = false;  // fill with NaN, so that a stale read shows (tests)
  // Of the hash of the blocks before and the token ids of one block; for tests that want
  // collisions. Called by several threads at once.
  std::function<std::uint64_t(std::uint64_t parent, std::span<const TokenId> tokens)> hash = {};
  Eviction eviction = Eviction::kLru;
  std::chrono::seconds time_to_live{0};  // of requests that say none; 0: for good
  std::size_t owner_quota_blocks = 0;    // blocks that one salt may leave behind; 0: all
  std::size_t hot_sessions = 0;          // blocks that only older sessions have go first; 0: off
  std::size_t event_buffer = 0;          // events kept for events()
  std::function<Time()> clock = {};      // steady, called by several threads; for tests
};

/// What a tier wants to know of a block of the index.
struct BlockFacts {
  std::uint8_t stored = 0;           // bit t: tier t has it, see mark_stored()
  std::uint32_t hits = 0;            // requests that have found it, or computed it once more
  std::uint32_t label_set = 0;       // in PathFacts::label_sets
  std::uint32_t labels_version = 0;  // goes up with each change of its labels
  std::chrono::seconds life = std::chrono::seconds::max();  // until it expires
};
/// The same of the committed blocks of a table, as far as they are still in the index.
struct PathFacts {
  std::vector<BlockFacts> blocks = {};
  std::vector<LabelNames> label_sets = {};
};

/// Which prefix the committed blocks of a table are, as far as they are still in the index.
struct PathNames {
  std::string name_space = {}, salt = {}, version = {};
  std::vector<TokenId> tokens = {};
};

/// Why a prompt is not known any further.
struct MissReport {
  std::size_t known_tokens = 0;  // also the index of the first token that differs
  bool whole = false;            // nothing is missing, save what fills no block
  Gone why = Gone::kNever;       // of the first block that is missing
  // The known block that begins like the missing one for longest; empty where none does.
  std::vector<TokenId> sibling = {};
  PathNames elsewhere = {};  // a namespace that knows the first block, where this one knows none
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
/// changes KV bytes and of who may share, salt and version included; they are compared in full,
/// never by hash.
///
/// Thread-safe. One mutex; nothing but block copies happens under it that is not O(blocks touched)
/// or O(log blocks), save where a call says so. start() and fork() call the device, so they run
/// where device calls are allowed.
class KvCache {
 public:
  /// What a block takes besides its KV, at most, whatever the eviction policy and whatever else is
  /// used: priorities (each has a policy of its own), quotas, hot sessions, times to live, labels
  /// of ordinary length. Sessions and salts take some 400 bytes each of their own, which counts
  /// where they have but one block; the buffer of events is not in it.
  static constexpr std::size_t kBookkeepingBytes = 1024;

  /// Allocates the pool. Throws Error{kOutOfMemory, kInvalidArgument}.
  KvCache(device::Device& device, const device::KvLayout& layout, KvCacheOptions options);
  ~KvCache();  // all tables are gone by then
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  const device::KvPoolView& pool() const noexcept;

  // -- Sequences (kv_cache.cpp)

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
  ///
  /// The labels go to each block that is found or committed; all requests of one name_space have
  /// the same salt and version.
  struct StartOptions {
    bool counts = true;            // in stats()
    bool is_demand = true;         // in blocks_taken()
    std::size_t spare_blocks = 0;  // what the pool must be able to promise besides
    // A live sequence of the same name_space whose first `sibling_tokens` tokens are computed and
    // equal to the prompt's: the block that it is about to fill is known, too.
    const BlockTable* sibling = nullptr;
    std::size_t sibling_tokens = 0;
  };
  bool start(const std::string& name_space, const CacheLabels& labels,
             std::span<const TokenId> tokens, std::size_t total_tokens, Match& match,
             const StartOptions& options);
  bool start(const std::string& name_space, const CacheLabels& labels,
             std::span<const TokenId> tokens, std::size_t total_tokens, Match& match) {
    return start(name_space, labels, tokens, total_tokens, match, StartOptions{});
  }
  bool start(const std::string& name_space, std::span<const TokenId> tokens,
             std::size_t total_tokens, Match& match) {
    return start(name_space, CacheLabels{}, tokens, total_tokens, match);
  }

  /// Raises what start() reserved to `total_tokens` in all. False, and nothing changed, where the
  /// pool cannot promise that now. blocks() may move.
  bool reserve(BlockTable& table, std::size_t total_tokens);

  /// Takes blocks so that the table covers `tokens` in all; within what was reserved.
  void extend(BlockTable& table, std::size_t tokens);

  /// Makes the full blocks of `tokens` (all those from position 0 whose KV is complete) findable in
  /// the table's namespace. A block that the index has already takes the place of the table's own;
  /// so no step that reads the table may be under way. May be called again with more tokens.
  ///
  /// Does nothing from then on where something that concerns the table was invalidated after its
  /// start: it could bring back what was to be forgotten.
  void commit(BlockTable& table, std::span<const TokenId> tokens);

  /// A second holder of the first `blocks` (<= committed()) blocks of a table.
  BlockTable share(const BlockTable& table, std::size_t blocks);

  /// A second sequence that goes on behind the first `tokens` tokens of `table`, all computed: it
  /// shares the full blocks and gets a copy of the front of one more. Room as in start(); false,
  /// and nothing changed, where there is none. Commit what is full first: blocks that could still
  /// be committed cannot be shared.
  ///
  /// Samples of one prompt need no fork: they are sequences of their own that find the prompt, or
  /// a sibling's block. A fork is for what no look-up finds: a sequence without a namespace, or one
  /// that was cut off by an invalidation.
  bool fork(const BlockTable& table, std::size_t tokens, std::size_t total_tokens,
            BlockTable& child);

  /// Puts private copies in the place of all shared blocks of a table, and indexes it no further:
  /// from now on its blocks may hold anything. Room for the copies as in start(); false, and
  /// nothing changed, where there is none.
  bool make_private(BlockTable& table);

  // -- Tiers (kv_cache_facts.cpp)

  PathFacts facts(const BlockTable& table) const;
  PathNames names(const BlockTable& table) const;
  /// Sets bits of the blocks [first, first + count) of a table, as far as they are committed and
  /// still in the index. A change of a block's labels clears its bits: what a tier has does not
  /// have the new labels.
  void mark_stored(const BlockTable& table, std::size_t first, std::size_t count,
                   std::uint8_t bits);
  /// The same for the blocks from `first` on whose labels are still those of `seen`.
  void mark_stored(const BlockTable& table, std::size_t first, std::span<const BlockFacts> seen,
                   std::uint8_t bits);
  /// Clears bits of all blocks. O(pool).
  void clear_stored(std::uint8_t bits);
  /// Adds labels to blocks, as if a request with them had used them.
  void add_labels(const BlockTable& table, std::size_t first, std::size_t count,
                  const LabelNames& labels);

  // -- Forgetting (kv_cache_forget.cpp)
  //
  // Complete on return. Each returns how many blocks the index has forgotten. What goes takes all
  // that lies behind it along. Running sequences keep their blocks; those that an invalidation
  // concerns are not indexed any further.

  /// Everything. O(pool).
  std::size_t clear();
  /// All of a salt. O(its blocks + namespaces).
  std::size_t invalidate_owner(std::string_view salt);
  std::size_t invalidate_version(std::string_view salt, std::string_view version);
  std::size_t invalidate_name_space(std::string_view name_space);
  /// What begins with `tokens`: blocks in front of the one that holds the last of them stay.
  std::size_t invalidate_prefix(std::string_view name_space, std::span<const TokenId> tokens);
  /// What requests with this tag have used. O(pool).
  std::size_t invalidate_tag(std::string_view tag);
  /// What only this session has used; what others have used too stays theirs. O(pool).
  std::size_t invalidate_session(std::string_view session);

  // -- Room (kv_cache_room.cpp)

  /// Evicts what is known of `tokens` after everything else until then. Returns how many tokens
  /// that is. A running request that needs room gets it all the same.
  std::size_t pin(std::string_view name_space, std::span<const TokenId> tokens, Time until);

  /// A path to a leaf that is next to be evicted, and how many of its last blocks are.
  struct Victim {
    BlockTable path = {};
    std::size_t blocks = 0;
  };
  /// What would make room for `blocks` blocks, held, so that it can be stored elsewhere first.
  /// Less where the room is promised to somebody. Who lets a path go without evict() leaves it
  /// where it was in the policy's order; among the blocks of an owner who has a quota it goes
  /// first.
  std::vector<Victim> victims(std::size_t blocks);
  /// The same of what cold sessions left behind. O(sessions + blocks of the cold ones).
  std::vector<Victim> cold_paths(std::size_t blocks);
  /// Another path to a leaf, held, whoever else holds it; for a walk over all of them. `from`
  /// starts at 0 and goes on. None where there is no further one; passes those that there is no
  /// room to hold.
  std::optional<BlockTable> next_path(std::size_t& from);
  /// Lets go of a path and evicts those last blocks that nobody holds or has pinned.
  void evict(Victim&& victim);
  /// Blocks that sequences which are a demand have taken, ever.
  std::uint64_t blocks_taken() const;
  /// Blocks to evict for the pool to have `low` blocks filled, once more than `high` are; 0 before.
  std::size_t blocks_to_free(std::size_t high, std::size_t low) const;

  // -- Reports (kv_cache_facts.cpp)

  CacheStats stats() const;
  /// How much of a prompt start() would find in whole blocks, in tokens. Counts as no use.
  std::size_t known_tokens(const std::string& name_space, std::span<const TokenId> tokens) const;
  /// Blocks of the index that have this salt.
  std::size_t owner_blocks(std::string_view salt) const;
  /// O(blocks of the prompt + namespaces).
  MissReport explain_miss(const std::string& name_space, std::span<const TokenId> tokens) const;
  EventLog::Batch events(std::uint64_t from, std::size_t limit) const;
  /// All that is stored, parents first; `next` is the event to go on with. O(pool).
  EventLog::Batch snapshot() const;
  /// Throws Error{kInternal} where anything that is kept twice disagrees. O(pool).
  void check_integrity() const;

 private:
  friend class BlockTable;
  void release(BlockTable& table) noexcept;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_KV_CACHE_H_
