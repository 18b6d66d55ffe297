// SPDX-License-Identifier: Apache-2.0
#include "store/small_values.h"

#include <sys/file.h>

#include <algorithm>
#include <bit>
#include <thread>

#include "base/hash.h"
#include "store/key_hash.h"

namespace incipit::store {
namespace {

constexpr std::uint64_t kMostSets = std::uint64_t{1} << 20;  // 4 GiB
constexpr std::uint64_t kFewestSets = 2;

}  // namespace

std::optional<std::uint64_t> SmallValues::sets_of(std::uint64_t file_bytes) noexcept {
  const std::uint64_t sets = file_bytes / kSetBytes;
  if (sets < kFewestSets || sets > kMostSets || !std::has_single_bit(sets) ||
      file_bytes % kSetBytes != 0) {
    return std::nullopt;
  }
  return sets;
}

std::uint64_t SmallValues::bytes_for(std::uint64_t capacity_bytes) noexcept {
  const std::uint64_t sets = std::bit_floor(capacity_bytes / 16 / kSetBytes);
  return std::clamp(sets, kFewestSets, kMostSets) * kSetBytes;
}

std::uint64_t SmallValues::Slot::computed_checksum() const noexcept {
  const auto bytes = std::as_bytes(std::span(this, 1)).subspan(2 * sizeof(std::uint64_t));
  const std::uint64_t sum = base::xxh3_64(bytes);
  return sum == 0 ? 1 : sum;
}

bool SmallValues::Slot::is_whole() const noexcept {
  return checksum != 0 && size <= kMostBytes && checksum == computed_checksum();
}

SmallValues::Set::iterator SmallValues::find(Set& set, const StoreKey& key) noexcept {
  return std::ranges::find_if(
      set, [&](const Slot& slot) { return slot.checksum != 0 && slot.key == key; });
}

bool SmallValues::is_removed() const noexcept {
  struct stat status = {};
  return calls_.status(file_.get(), status) == 0 && status.st_nlink == 0;
}

std::uint64_t SmallValues::offset_of(const StoreKey& key) const noexcept {
  return (KeyHash{}(key) & (sets_ - 1)) * kSetBytes;
}

// What is behind the end of the file is empty. False: the file cannot be read.
bool SmallValues::read_set(std::uint64_t offset, Set& set) noexcept {
  std::span<std::byte> out = std::as_writable_bytes(std::span(set));
  while (!out.empty()) {
    const ssize_t got = calls_.read(file_.get(), out, offset);
    if (got < 0) return false;
    if (got == 0) break;
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  std::ranges::fill(out, std::byte{0});
  return true;
}

StoreStatus SmallValues::get(const StoreKey& key, std::int64_t now, StoreBuffer& value) noexcept {
  const std::uint64_t offset = offset_of(key);
  // The second time for a slot that was written while it was read.
  for (int tries = 0; tries < 2; ++tries) {
    Set set;
    if (!read_set(offset, set)) return StoreStatus::kUnavailable;
    const auto found = find(set, key);
    if (found == set.end()) return StoreStatus::kMiss;
    if (!found->is_whole()) continue;
    if (found->stamp.has_expired(now)) return StoreStatus::kMiss;
    try {
      std::ranges::copy_n(found->value.begin(), static_cast<std::ptrdiff_t>(found->size),
                          value.resize(found->size).begin());
    } catch (...) {
      return StoreStatus::kUnavailable;
    }
    // Any number may be in the file; sums of unsigned ones go round and are then no recent times.
    const auto used = static_cast<std::uint64_t>(now);
    if (found->used + kTouchInterval <= used || found->used > used + kClockSlack.count()) {
      const auto place = static_cast<std::uint64_t>(found - set.begin()) * kSlotBytes;
      // Should the slot be another value's by now, that one stays a little longer.
      calls_.write(file_.get(), std::as_bytes(std::span(&used, 1)),
                   offset + place + sizeof(Slot::checksum));
    }
    return StoreStatus::kOk;
  }
  return StoreStatus::kMiss;
}

int SmallValues::write_slot(std::uint64_t offset, const Slot& slot) noexcept {
  base::Bytes bytes = std::as_bytes(std::span(&slot, 1));
  while (!bytes.empty()) {
    const ssize_t put = calls_.write(file_.get(), bytes, offset);
    if (put < 0) return errno;
    if (put == 0) return EIO;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return 0;
}

// Reads a key's set, lets `change` write slots of it, and keeps all other writers away meanwhile.
// They are quick: waiting for one is a matter of microseconds.
template <class Change>
int SmallValues::change_set(const StoreKey& key, bool sync, Store::Deadline deadline,
                            Change change) noexcept {
  const std::lock_guard lock(mutex_);
  while (calls_.lock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return errno;
    if (std::chrono::steady_clock::now() >= deadline) return ETIMEDOUT;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  const std::uint64_t offset = offset_of(key);
  Set set;
  int error = read_set(offset, set) ? change(set, offset) : errno;
  calls_.lock(file_.get(), LOCK_UN);
  if (error == 0 && sync && calls_.sync(file_.get()) != 0) error = errno;
  return error;
}

int SmallValues::put(const StoreKey& key, std::span<const std::byte> value, const Stamp& stamp,
                     bool sync, Store::Deadline deadline, bool& is_first) noexcept {
  Slot slot;
  slot.used = stamp.created;
  slot.stamp = stamp;
  slot.key = key;
  slot.size = value.size();
  std::ranges::copy(value, slot.value.begin());
  slot.checksum = slot.computed_checksum();
  // The key's own slot, then one of no use, then the one that was not used for longest.
  const auto rank = [&](const Slot& other) -> std::uint64_t {
    if (other.checksum != 0 && other.key == key) return 0;
    const bool is_useless = !other.is_whole() ||
                            other.stamp.has_expired(static_cast<std::int64_t>(stamp.created)) ||
                            other.used > stamp.created + kClockSlack.count();
    return is_useless ? 1 : other.used + 2;
  };
  return change_set(key, sync, deadline, [&](Set& set, std::uint64_t offset) {
    is_first = std::ranges::none_of(set, [](const Slot& other) { return other.used != 0; });
    const auto place = std::ranges::min_element(set, {}, rank);
    return write_slot(offset + static_cast<std::uint64_t>(place - set.begin()) * kSlotBytes, slot);
  });
}

int SmallValues::erase(const StoreKey& key, bool sync, Store::Deadline deadline) noexcept {
  const auto change = [&](Set& set, std::uint64_t offset) {
    const auto found = find(set, key);
    if (found == set.end()) return 0;
    Slot erased;
    erased.used = 1;
    return write_slot(offset + static_cast<std::uint64_t>(found - set.begin()) * kSlotBytes,
                      erased);
  };
  return change_set(key, sync, deadline, change);
}

}  // namespace incipit::store
