// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_BLOCK_TABLE_H_
#define INCIPIT_KV_BLOCK_TABLE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "device/device.h"
#include "incipit/sampling.h"
#include "kv/labels.h"
#include "kv/scopes.h"

namespace incipit::kv {

using device::BlockId;
using Time = std::chrono::steady_clock::time_point;

class KvCache;

/// The blocks of one live sequence, in order: an RAII pin, and the only way to reach blocks. The
/// front may be shared with other sequences and is immutable (`committed` blocks); the rest is
/// private. Move-only; gives its blocks back when it goes, which is cheap and never fails.
///
/// For one thread at a time. Only reserve() moves blocks(), but commit() may replace entries of it.
class BlockTable {
 public:
  BlockTable() = default;
  ~BlockTable() { reset(); }
  BlockTable(BlockTable&& other) noexcept { swap(other); }
  BlockTable& operator=(BlockTable&& other) noexcept;

  std::span<const BlockId> blocks() const noexcept { return blocks_; }
  /// Blocks at the front that others may share; they are never written again.
  std::size_t committed() const noexcept { return committed_; }
  /// Tokens that it may grow to within what is reserved.
  std::size_t room() const noexcept { return (blocks_.size() + reserved_) * device::kBlockTokens; }

 private:
  friend class KvCache;

  /// How dearly some of its blocks are kept, from the request's labels.
  struct Retention {
    std::size_t first_block = 0, end_block = 0;
    CachePriority priority = CachePriority::kNormal;
    Time until = Time::max();
  };

  Retention retention(std::size_t block) const noexcept;
  void swap(BlockTable& other) noexcept;
  void reset() noexcept;

  KvCache* cache_ = nullptr;
  std::vector<BlockId> blocks_ = {};
  ScopeId scope_ = kNoScope;               // none: it has no namespace
  LabelSetId labels_ = kNoLabelSet;        // held
  bool indexed_ = false;                   // false: commit() does nothing from here on
  std::uint64_t started_ = 0;              // the cache's epoch then; see KvCache::Impl::is_cut()
  Time expires_ = Time::max();             // of its blocks
  std::vector<Retention> retention_ = {};  // later ones win
  std::size_t committed_ = 0;              // nodes of the index, save what was invalidated
  std::size_t reserved_ = 0;               // blocks promised to this table and not taken yet
  std::uint64_t chain_hash_ = 0;           // of the committed blocks
  bool counts_ = true;                     // as a use of its blocks, when it goes
  bool is_demand_ = true;                  // for the room that it takes
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_BLOCK_TABLE_H_
