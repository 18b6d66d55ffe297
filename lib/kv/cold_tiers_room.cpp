// SPDX-License-Identifier: Apache-2.0
// What leaves the pool for the tiers: what is about to be evicted, and what cold sessions left.
#include <algorithm>
#include <utility>

#include "kv/cold_tiers.h"

namespace incipit::kv {
namespace {

// Shares of a pool that should be free, so that requests need not evict what is not stored yet: at
// least, and at most. Blocks begin to be moved out when less is free; then so much more is freed.
constexpr double kLeastRoom = 0.05, kMostRoom = 0.5, kMore = 0.05;
// What is left of a demand from one look to the next is less by one part in so many.
constexpr std::size_t kDecay = 8;

std::size_t share(const KvCache& cache, double part) {
  return static_cast<std::size_t>(part * static_cast<double>(cache.pool().blocks));
}

}  // namespace

/// As much as was taken since the last look, or lately: requests that follow each other are mostly
/// about as long, and as many.
std::size_t ColdTiers::room_wanted(const KvCache& cache) {
  const std::uint64_t taken = cache.blocks_taken();
  const std::size_t most = share(cache, kMostRoom);
  const std::size_t least = std::max<std::size_t>(share(cache, kLeastRoom), 1);
  const std::lock_guard lock(mutex_);
  Watched& seen = watched_[&cache];
  const std::uint64_t demand = taken - std::exchange(seen.taken, taken);
  const std::size_t before = seen.room - (seen.room + kDecay - 1) / kDecay;
  seen.room = std::max<std::size_t>(std::min<std::uint64_t>(demand, most), before);
  return std::max(seen.room, least);
}

std::size_t ColdTiers::blocks_to_move(const KvCache& cache) {
  const std::size_t high = cache.pool().blocks - room_wanted(cache);
  return cache.blocks_to_free(high, high - std::min(high, share(cache, kMore)));
}

/// Stores a victim wherever a tier wants it, and evicts it. False where that did not go well: what
/// no tier took may still be found where it is, until its room is needed.
bool ColdTiers::move_out(KvCache& cache, device::Device& device, KvCache::Victim&& victim) {
  const PathNames names = cache.names(victim.path);
  CacheLabels labels;
  labels.salt = names.salt;
  labels.version = names.version;
  const auto before = settled();
  if (!before || abandoned(&cache)) return false;
  Job job{&cache, &device, std::move(victim.path), ticket(names.name_space, labels), before};
  if (!write(job)) return false;
  cache.evict({std::move(job.blocks), victim.blocks});
  return true;
}

/// Moves out what cold sessions left, and what would be evicted soon where a tier wants it then.
void ColdTiers::make_room(KvCache& cache, device::Device& device) {
  // Few at a time: what is held meanwhile is nobody's room. False where it did not go well.
  const std::size_t step = std::max<std::size_t>(share(cache, kMore), 1);
  const auto move = [&](std::size_t left, auto next) {
    while (left > 0) {
      std::vector<KvCache::Victim> victims = next(std::min(left, step));
      if (victims.empty()) return true;
      for (KvCache::Victim& victim : victims) {
        left -= std::min(left, victim.blocks);
        if (!move_out(cache, device, std::move(victim))) return false;
      }
    }
    return true;
  };
  const auto cold = [&](std::size_t blocks) { return cache.cold_paths(blocks); };
  if (hot_sessions_ && !move(cache.pool().blocks, cold)) return;
  if (!writes_on_eviction_) return;
  move(blocks_to_move(cache), [&](std::size_t blocks) { return cache.victims(blocks); });
}

}  // namespace incipit::kv
