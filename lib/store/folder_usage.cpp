// SPDX-License-Identifier: Apache-2.0
#include "store/folder_usage.h"

#include <sys/file.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

namespace incipit::store {
namespace {

// Above any disk: a larger total in the file is damage.
constexpr std::int64_t kMost = std::int64_t{1} << 60;
// For so long at most another process may hold the file; then the exchange waits for the next
// occasion.
constexpr int kTries = 50;
constexpr std::chrono::microseconds kPause{20};

std::int64_t as_signed(std::uint64_t bytes) noexcept {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, kMost));
}

// The counters of all there ever was may go round.
std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

std::int64_t wrapping_difference(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

FolderUsage::Numbers sum(const FolderUsage::Numbers& a, const FolderUsage::Numbers& b) noexcept {
  return {std::clamp<std::int64_t>(a.total + b.total, 0, kMost), wrapping_sum(a.added, b.added),
          wrapping_sum(a.removed, b.removed), wrapping_sum(a.corrections, b.corrections)};
}

}  // namespace

FolderUsage::FolderUsage(FileCalls& calls, Descriptor file, std::uint64_t unnoticed)
    : calls_(calls), file_(std::move(file)), unnoticed_(as_signed(unnoticed)) {
  const auto numbers = read();
  was_known_ = numbers.has_value();
  shared_ = numbers.value_or(Numbers{});
}

FolderUsage::~FolderUsage() {
  if (own_.added != 0 || own_.removed != 0) {
    exchange([this](const Numbers& shared) { return sum(shared, own_); });
  }
}

FolderUsage::Numbers FolderUsage::numbers() const noexcept {
  const std::lock_guard lock(mutex_);
  return sum(shared_, own_);
}

void FolderUsage::refresh() noexcept {
  const std::lock_guard lock(mutex_);
  shared_ = read().value_or(shared_);
}

void FolderUsage::change(std::int64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  change_locked(bytes);
}

void FolderUsage::change_locked(std::int64_t bytes) noexcept {
  own_.total = std::clamp(own_.total + bytes, -kMost, kMost);
  std::int64_t& moved = bytes > 0 ? own_.added : own_.removed;
  moved = wrapping_sum(moved, bytes > 0 ? bytes : -bytes);
  if (own_.total < unnoticed_ && own_.total > -unnoticed_) return;
  exchange([this](const Numbers& shared) { return sum(shared, own_); });
}

void FolderUsage::settle(std::uint64_t bytes, std::int64_t change,
                         std::int64_t corrections) noexcept {
  const std::lock_guard lock(mutex_);
  shared_ = read().value_or(shared_);
  // A correction may have dropped the bytes that were added in advance. It may have kept them, too;
  // then the total is too high until the next one.
  const bool is_kept = wrapping_sum(shared_.corrections, own_.corrections) == corrections;
  change_locked(is_kept ? change - as_signed(bytes) : change);
}

void FolderUsage::correct(std::uint64_t counted, const Numbers& before,
                          std::uint64_t coming) noexcept {
  const std::lock_guard lock(mutex_);
  exchange([&](const Numbers& shared) {
    Numbers numbers = sum(shared, own_);
    const auto since = [](std::int64_t now, std::int64_t then) {
      return std::clamp<std::int64_t>(wrapping_difference(now, then), 0, kMost / 4);
    };
    const std::int64_t here = std::min(as_signed(counted), kMost / 4);
    const std::int64_t most = here + since(numbers.added, before.added) + as_signed(coming);
    const std::int64_t least =
        std::max<std::int64_t>(here - since(numbers.removed, before.removed), 0);
    numbers.total = std::clamp(numbers.total, least, std::min(most, kMost));
    numbers.corrections = wrapping_sum(numbers.corrections, 1);
    return numbers;
  });
}

std::optional<FolderUsage::Numbers> FolderUsage::read() noexcept {
  Numbers numbers;
  const auto out = std::as_writable_bytes(std::span(&numbers, 1));
  if (!file_ || calls_.read(file_.get(), out, 0) != sizeof numbers) return std::nullopt;
  if (numbers.total < 0 || numbers.total > kMost) return std::nullopt;
  return numbers;
}

bool FolderUsage::lock() noexcept {
  if (!file_) return false;
  for (int tries = 0; calls_.lock(file_.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK || tries == kTries) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

// Replaces the numbers in the file, which other processes leave alone meanwhile. What cannot be
// told now is kept for later.
template <class Change>
void FolderUsage::exchange(Change change) noexcept {
  const bool locked = lock();
  const Numbers numbers = change(locked ? read().value_or(shared_) : shared_);
  const auto bytes = std::as_bytes(std::span(&numbers, 1));
  const bool told = locked && calls_.write(file_.get(), bytes, 0) == sizeof numbers;
  if (locked) calls_.lock(file_.get(), LOCK_UN);
  if (told) {
    shared_ = numbers;
    own_ = {};
  } else {
    own_ = {numbers.total - shared_.total, wrapping_difference(numbers.added, shared_.added),
            wrapping_difference(numbers.removed, shared_.removed),
            wrapping_difference(numbers.corrections, shared_.corrections)};
  }
}

}  // namespace incipit::store
