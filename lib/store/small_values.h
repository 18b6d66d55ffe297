// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_SMALL_VALUES_H_
#define INCIPIT_STORE_SMALL_VALUES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "incipit/store.h"
#include "store/file_calls.h"
#include "store/stamp.h"

namespace incipit::store {

/// The small values of a folder, in one file that all its processes share. (A file each would take
/// 4 KiB on the disk for 150 bytes, and where many files were deleted a new one costs ext4 up to a
/// millisecond.)
///
/// The file is a table of sets, each 4 KiB: 8 slots of 512 bytes. A key's set follows from the key;
/// in a full set the slot that was not used for longest is written over. A slot has a checksum over
/// all but its time of use, so one that is half written, by whatever accident, is an empty one.
/// Writers hold the file's lock; readers hold none. Thread-safe.
class SmallValues {
 public:
  static constexpr std::size_t kSlotBytes = 512;
  static constexpr std::size_t kSlots = 8;
  static constexpr std::size_t kSetBytes = kSlotBytes * kSlots;
  static constexpr std::size_t kMostBytes = 440;  // of a value
  /// A time of use that is younger is not written anew. Seconds.
  static constexpr std::uint64_t kTouchInterval = 60;

  /// `file_bytes` of an existing file; none where they cannot be a table's.
  static std::optional<std::uint64_t> sets_of(std::uint64_t file_bytes) noexcept;
  /// Of a new file in a folder of this capacity: a 32nd to a 16th of it. It takes as much disk as
  /// has been written.
  static std::uint64_t bytes_for(std::uint64_t capacity_bytes) noexcept;

  SmallValues(FileCalls& calls, Descriptor file, std::uint64_t sets) noexcept
      : calls_(calls), file_(std::move(file)), sets_(sets) {}

  /// Somebody removed or replaced the file.
  bool is_removed() const noexcept;

  // Times are wall-clock seconds since 1970.
  StoreStatus get(const StoreKey& key, std::int64_t now, StoreBuffer& value) noexcept;
  /// `value` has at most kMostBytes. 0, or an errno: then the old value or none is there.
  /// `is_first`: its set was empty, so that the file may take kSetBytes more now.
  int put(const StoreKey& key, std::span<const std::byte> value, const Stamp& stamp, bool sync,
          Store::Deadline deadline, bool& is_first) noexcept;
  /// The same; nothing where the key is not there.
  int erase(const StoreKey& key, bool sync, Store::Deadline deadline) noexcept;

 private:
  struct Slot {                  // as it is in the file, little-endian
    std::uint64_t checksum = 0;  // XXH3-64 of what follows the time of use; 0: an empty slot
    std::uint64_t used = 0;      // seconds since 1970; 0: the slot was never written
    Stamp stamp = {};
    StoreKey key = {};
    std::uint64_t size = 0;  // of the value
    std::array<std::byte, kMostBytes> value = {};

    std::uint64_t computed_checksum() const noexcept;
    bool is_whole() const noexcept;
  };
  static_assert(sizeof(Slot) == kSlotBytes);
  using Set = std::array<Slot, kSlots>;

  static Set::iterator find(Set& set, const StoreKey& key) noexcept;
  std::uint64_t offset_of(const StoreKey& key) const noexcept;
  bool read_set(std::uint64_t offset, Set& set) noexcept;
  int write_slot(std::uint64_t offset, const Slot& slot) noexcept;
  template <class Change>
  int change_set(const StoreKey& key, bool sync, Store::Deadline deadline, Change change) noexcept;

  FileCalls& calls_;
  const Descriptor file_;
  const std::uint64_t sets_;  // a power of two
  std::mutex mutex_;          // the file's lock does not keep threads of one process apart
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_SMALL_VALUES_H_
