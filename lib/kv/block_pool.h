// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_BLOCK_POOL_H_
#define INCIPIT_KV_BLOCK_POOL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device.h"
#include "device/kv_layout.h"

namespace incipit::kv {

using device::BlockId;

/// A fixed number of KV blocks in one piece of device memory, and how often each is held. Holders
/// are live tables and the index. A block that nobody holds is free.
///
/// Not thread-safe.
class BlockPool {
 public:
  /// Throws Error{kInvalidArgument, kOutOfMemory}.
  BlockPool(device::Device& device, const device::KvLayout& layout, std::size_t blocks,
            bool poison_freed_blocks);

  /// Writes to the blocks that are taken first, up to so many bytes, while all are free: where
  /// memory comes with the first write to it, and costs more than what is written, it is there
  /// then.
  void make_ready(std::size_t bytes);

  const device::KvPoolView& view() const noexcept { return view_; }
  std::size_t free_blocks() const noexcept { return free_.size(); }

  /// A free block, now held once. The one that was freed last, so that a pool that is larger than
  /// what is needed does not take all of its physical memory.
  BlockId take();
  /// Holds a block that is held already, once more. Returns how often it is held now.
  std::uint32_t retain(BlockId block);
  /// The opposite. Returns how often it is held now; 0: it is free.
  std::uint32_t release(BlockId block);
  std::uint32_t holders(BlockId block) const { return holders_.at(block); }

  /// Copies all of a block. For the front of one that is wanted: what follows is overwritten
  /// before it is read.
  void copy(BlockId from, BlockId to) { device_.copy_block(view_, from, to); }

  /// Throws Error{kInternal} where the free list and the counts disagree. O(pool).
  void check_integrity() const;

 private:
  void poison(BlockId block);

  device::Device& device_;
  device::Buffer memory_;
  device::KvPoolView view_;
  std::vector<std::uint32_t> holders_;  // [block]
  std::vector<BlockId> free_;           // a stack
  std::vector<std::byte> poison_;       // the bytes of a poisoned block, or empty
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_BLOCK_POOL_H_
