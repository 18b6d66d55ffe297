// SPDX-License-Identifier: Apache-2.0
// How a directory store keeps its budget: the rest of its class is in directory_store.cpp.
#include <sys/file.h>

#include <algorithm>
#include <thread>

#include "store/directory_store.h"

namespace incipit::store {
namespace {

using Clock = std::chrono::steady_clock;

// Files that are looked at, and bytes that are removed, between two looks at the deadline.
constexpr std::uint64_t kSteps = 256;
constexpr std::uint64_t kEvicted = 1 << 20;

/// The right to sweep a folder, given to one process at a time. Nobody waits for it.
class Election {
 public:
  explicit Election(StoreFolder& folder) noexcept
      : folder_(folder), won_(folder.calls().lock(folder.folder(), LOCK_EX | LOCK_NB) == 0) {}
  ~Election() {
    if (won_) folder_.calls().lock(folder_.folder(), LOCK_UN);
  }
  Election(const Election&) = delete;
  Election& operator=(const Election&) = delete;

  bool won() const noexcept { return won_; }

 private:
  StoreFolder& folder_;
  const bool won_;
};

/// False: the deadline has passed.
bool wait_for(std::unique_lock<std::mutex>& lock, Store::Deadline deadline) {
  while (!lock.try_lock()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

}  // namespace

// Sees to it that what is there, with the `bytes` that are about to come, is within the budget.
// They were added to the usage before, so that two processes do not both take the last room. Each
// put does a share of the sweeping that is in proportion to its size, so that a pass ends before
// the bytes between the watermarks are used up, and no put pays for all. Only where others were
// faster does one wait or do more.
bool DirectoryStore::make_room(const Folder& folder, std::uint64_t bytes, Deadline deadline) {
  const auto above = [&](std::uint64_t mark) {
    const std::uint64_t total = folder->usage().total();
    return total > mark ? total - mark : 0;
  };
  folder->usage().refresh();
  if (above(high_) == 0 && !counting_) return true;

  std::unique_lock lock(sweep_mutex_, std::defer_lock);
  if (!lock.try_lock()) {
    if (above(limit_) == 0) return true;
    if (!wait_for(lock, deadline)) return false;
  }
  const Election election(*folder);
  if (!election.won() && above(limit_) == 0) return true;

  if (!sweep_.has_victims()) {
    // A pass has ended when a 48th of the capacity was put in; from high_ to limit_ it is a 32nd.
    const double share =
        48.0 * static_cast<double>(bytes) / static_cast<double>(options_.capacity_bytes);
    const auto steps = static_cast<std::uint64_t>(share * static_cast<double>(sweep_.files()));
    if (sweep_.advance(folder, std::clamp<std::uint64_t>(steps, 16, 4096), bytes))
      counting_ = false;
  }
  if (above(high_) > 0) sweep_.evict(*folder, std::min(above(low_), 2 * bytes));

  int in_vain = 0;  // passes in a row that found nothing to remove
  while (above(limit_) > 0) {
    if (Clock::now() >= deadline) return false;
    if (sweep_.has_victims()) {
      sweep_.evict(*folder, std::min(above(limit_), kEvicted));
    } else if (in_vain == 2) {  // the second of them saw all files
      return false;
    } else if (sweep_.advance(folder, kSteps, bytes)) {
      in_vain = sweep_.has_victims() ? 0 : in_vain + 1;
    }
  }
  return true;
}

// The disk is full, whatever the budget says: removes values until `bytes` were freed.
void DirectoryStore::free_disk(const Folder& folder, std::uint64_t bytes, Deadline deadline) {
  std::unique_lock lock(sweep_mutex_, std::defer_lock);
  if (!wait_for(lock, deadline)) return;
  std::uint64_t freed = 0;
  int passes = 0;
  while (freed < bytes && passes < 2 && Clock::now() < deadline) {
    if (sweep_.has_victims()) {
      freed += sweep_.evict(*folder, std::min(bytes - freed, kEvicted));
    } else if (sweep_.advance(folder, kSteps, 0)) {
      ++passes;
    }
  }
}

}  // namespace incipit::store
