// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_TEXT_MAP_H_
#define INCIPIT_COMPRESS_TEXT_MAP_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace incipit::compress {

/// Numbers by text. Texts belong to others and must stay where they are.
class TextMap {
 public:
  /// The number of `text` (good until the next call), which is `number` where it had none; whether
  /// it had none. SIZE_MAX is no number.
  std::pair<std::size_t*, bool> emplace(std::string_view text, std::size_t number) {
    if (slots_.size() <= 2 * used_) grow();
    const std::uint64_t hash = base::xxh3_64(base::as_bytes(text));
    Slot& slot = slots_[find(slots_, text, hash)];
    const bool is_new = slot.number == kFree;
    if (is_new) {
      slot = {text, hash, number};
      ++used_;
    }
    return {&slot.number, is_new};
  }

 private:
  static constexpr std::size_t kFirstSlots = 64;
  static constexpr std::size_t kFree = SIZE_MAX;
  struct Slot {
    std::string_view text = {};
    std::uint64_t hash = 0;
    std::size_t number = kFree;
  };

  static std::size_t find(const std::vector<Slot>& slots, std::string_view text,
                          std::uint64_t hash) {
    const std::size_t mask = slots.size() - 1;
    std::size_t at = hash & mask;
    while (slots[at].number != kFree && (slots[at].hash != hash || slots[at].text != text)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  void grow() {
    std::vector<Slot> larger(slots_.empty() ? kFirstSlots : 2 * slots_.size());
    for (const Slot& slot : slots_) {
      if (slot.number != kFree) larger[find(larger, slot.text, slot.hash)] = slot;
    }
    slots_ = std::move(larger);
  }

  std::vector<Slot> slots_;  // a power of two of them, at most half of them used
  std::size_t used_ = 0;
};

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_TEXT_MAP_H_
