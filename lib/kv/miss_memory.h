// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_MISS_MEMORY_H_
#define INCIPIT_KV_MISS_MEMORY_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace incipit::kv {

/// Why a block is not known.
enum class Gone : std::uint8_t {
  kNever,        // it is not known to have been there
  kEvicted,      // it made room
  kExpired,      // its time to live was over
  kInvalidated,  // it was forgotten on command
};

/// Remembers of many blocks why they went, by a hash of their prefixes; later ones overwrite
/// earlier ones. For explanations: a hash that collides explains wrongly.
///
/// Memory is fixed at construction. Not thread-safe.
class MissMemory {
 public:
  /// For about as many as there are blocks.
  explicit MissMemory(std::size_t blocks)
      : slots_(std::bit_ceil(std::clamp<std::size_t>(2 * blocks, 16, kMaxSlots))) {}

  /// Starts to load what remember() of this one will write.
  void prefetch(std::uint64_t identity) const noexcept {
    __builtin_prefetch(&slots_[identity & (slots_.size() - 1)], 1);
  }
  void remember(std::uint64_t identity, Gone why) noexcept { slot(identity) = {identity, why}; }
  Gone recall(std::uint64_t identity) const noexcept {
    const Slot& found = slots_[identity & (slots_.size() - 1)];
    return found.identity == identity ? found.why : Gone::kNever;
  }

 private:
  static constexpr std::size_t kMaxSlots = 1 << 16;
  struct Slot {
    std::uint64_t identity = 0;
    Gone why = Gone::kNever;
  };
  Slot& slot(std::uint64_t identity) noexcept { return slots_[identity & (slots_.size() - 1)]; }

  std::vector<Slot> slots_;  // a power of two
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_MISS_MEMORY_H_
