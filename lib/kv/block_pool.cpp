// SPDX-License-Identifier: Apache-2.0
#include "kv/block_pool.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "base/check.h"

namespace incipit::kv {
namespace {

// Block and node ids are 32 bits wide, and the index keeps two slots per block.
constexpr std::size_t kMaxBlocks = std::size_t{1} << 30;

// All bits set is a NaN in each of F32, F16 and BF16, and in the scales of int8.
constexpr std::byte kNanByte{0xff};

std::size_t pool_bytes(std::size_t blocks, std::size_t block_bytes) {
  if (blocks == 0 || blocks > kMaxBlocks || block_bytes == 0) {
    base::throw_error(ErrorCode::kInvalidArgument, "a KV pool of " + std::to_string(blocks) +
                                                       " blocks of " + std::to_string(block_bytes) +
                                                       " bytes cannot be made; 1 to " +
                                                       std::to_string(kMaxBlocks) + " blocks can");
  }
  if (block_bytes > std::numeric_limits<std::size_t>::max() / blocks) {
    base::throw_error(ErrorCode::kOutOfMemory, "a KV pool of " + std::to_string(blocks) +
                                                   " blocks of " + std::to_string(block_bytes) +
                                                   " bytes is beyond any memory; ask for less");
  }
  return blocks * block_bytes;
}

}  // namespace

BlockPool::BlockPool(device::Device& device, const device::KvLayout& layout, std::size_t blocks,
                     bool poison_freed_blocks)
    : device_(device),
      memory_(device.allocate(pool_bytes(blocks, layout.block_bytes()))),
      view_{memory_.data(), blocks, layout},
      holders_(blocks, 0),
      free_(blocks) {
  std::iota(free_.rbegin(), free_.rend(), BlockId{0});
  if (!poison_freed_blocks) return;
  poison_.assign(layout.block_bytes(), kNanByte);
  for (const BlockId block : free_) poison(block);
}

void BlockPool::make_ready(std::size_t bytes) {
  INCIPIT_CHECK(free_.size() == holders_.size());
  const std::size_t ready = std::min(bytes / view_.layout.block_bytes(), free_.size());
  if (ready == 0 || !poison_.empty()) return;  // with poison, all has been written
  const std::vector<std::byte> zeros(view_.layout.block_bytes());
  for (std::size_t block = 0; block < ready; ++block) {
    device_.upload(zeros, view_.block(static_cast<BlockId>(block)));
  }
}

BlockId BlockPool::take() {
  INCIPIT_CHECK(!free_.empty());
  const BlockId block = free_.back();
  free_.pop_back();
  holders_[block] = 1;
  return block;
}

std::uint32_t BlockPool::retain(BlockId block) {
  INCIPIT_CHECK(holders_.at(block) > 0);
  return ++holders_[block];
}

std::uint32_t BlockPool::release(BlockId block) {
  INCIPIT_CHECK(holders_.at(block) > 0);
  if (--holders_[block] > 0) return holders_[block];
  if (!poison_.empty()) poison(block);
  free_.push_back(block);  // within its first capacity
  return 0;
}

void BlockPool::poison(BlockId block) { device_.upload(poison_, view_.block(block)); }

void BlockPool::check_integrity() const {
  std::vector<bool> is_free(holders_.size(), false);
  for (const BlockId block : free_) {
    INCIPIT_CHECK(block < holders_.size());
    INCIPIT_CHECK(!is_free[block]);
    is_free[block] = true;
  }
  for (std::size_t block = 0; block < holders_.size(); ++block) {
    INCIPIT_CHECK((holders_[block] == 0) == is_free[block]);
  }
}

}  // namespace incipit::kv
