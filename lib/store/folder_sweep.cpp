// SPDX-License-Identifier: Apache-2.0
#include "store/folder_sweep.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "store/stamp.h"
#include "store/value_name.h"

namespace incipit::store {
namespace {

// 3 MiB of them: a bound on memory where the files are very small.
constexpr std::size_t kMostVictims = 1 << 16;

// struct linux_dirent64: u64 inode, i64 offset, u16 length of the entry, u8 type, char name[].
constexpr std::size_t kEntryLength = 16;
constexpr std::size_t kEntryName = 19;
constexpr std::size_t kEntriesBytes = 16384;

std::int64_t nanoseconds(const timespec& time) noexcept {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

std::int64_t nanoseconds(std::chrono::system_clock::time_point time) noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

bool FolderSweep::advance(const std::shared_ptr<StoreFolder>& folder, std::uint64_t steps,
                          std::uint64_t coming) {
  if (folder_ != folder) begin(folder);
  for (; steps > 0; --steps) {
    if (!open_ && !open_next()) {
      if (next_ <= kShards) continue;
      end(coming);
      return true;
    }
    const auto name = next_name();
    if (!name) {
      open_ = {};
    } else if (next_ == 1) {
      visit_temporary(name->data());
    } else {
      visit_value(*name);
    }
  }
  return false;
}

void FolderSweep::begin(const std::shared_ptr<StoreFolder>& folder) {
  folder_ = folder;
  next_ = 0;
  open_ = {};
  folder->usage().refresh();
  before_ = folder->usage().numbers();
  struct stat small = {};
  const bool has_small = folder->calls().status_of(folder->folder(), kSmallValues, small) == 0;
  complete_ = has_small || errno == ENOENT;
  counted_ = has_small ? disk_bytes(small) : 0;
  values_ = 0;
  latest_ = nanoseconds(now(options_.clock) + kClockSlack);
  candidates_.clear();
  candidate_bytes_ = 0;
}

void FolderSweep::end(std::uint64_t coming) {
  if (complete_) folder_->usage().correct(counted_, before_, coming);
  files_ = values_;
  std::ranges::sort(candidates_, [](const Victim& a, const Victim& b) { return sooner(b, a); });
  victims_ = std::exchange(candidates_, {});
  folder_ = nullptr;
  entries_ = {};
}

// False where there is none, or no more.
bool FolderSweep::open_next() {
  if (next_ > kShards) return false;
  const unsigned number = next_++;
  if (number == 0) {
    open_ = folder_->open_folder("temporary");
  } else {
    open_ = folder_->open_folder(shard_name(number - 1).data());
  }
  entry_ = entries_end_ = 0;
  if (!open_) {
    // Links and files in a folder's place hold no values.
    complete_ = complete_ && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP);
    return false;
  }
  struct stat status = {};
  if (folder_->calls().status(open_.get(), status) == 0) counted_ += disk_bytes(status);
  return true;
}

// None at the end of the open folder. A zero byte follows the name.
std::optional<std::string_view> FolderSweep::next_name() {
  if (entry_ >= entries_end_) {
    entries_.resize(kEntriesBytes);
    const ssize_t got = folder_->calls().list(open_.get(), entries_);
    if (got < 0) complete_ = false;
    if (got <= 0) return std::nullopt;
    entry_ = 0;
    entries_end_ = static_cast<std::size_t>(got);
  }
  std::uint16_t length = 0;
  std::memcpy(&length, &entries_[entry_ + kEntryLength], sizeof length);
  const auto* name = reinterpret_cast<const char*>(&entries_[entry_ + kEntryName]);
  entry_ += length;
  return std::string_view(name);
}

void FolderSweep::visit_temporary(const char* name) {
  if (!std::string_view(name).starts_with(kTemporaryPrefix)) return;
  struct stat status = {};
  FileCalls& calls = folder_->calls();
  if (calls.status_of(open_.get(), name, status) != 0) return;
  const std::int64_t modified = nanoseconds(status.st_mtim);
  const std::int64_t oldest =
      latest_ -
      nanoseconds(std::chrono::system_clock::time_point(kClockSlack + options_.temporary_grace));
  const bool stale = modified <= oldest || modified > latest_;
  if (stale && calls.unlink(open_.get(), name) == 0) return;
  counted_ += disk_bytes(status);
}

void FolderSweep::visit_value(std::string_view name) {
  const auto key = key_of(next_ - 2, name);
  if (!key) return;  // nothing of ours
  struct stat status = {};
  FileCalls& calls = folder_->calls();
  if (calls.status_of(open_.get(), name.data(), status) != 0) {
    complete_ = complete_ && errno == ENOENT;
    return;
  }
  if (!S_ISREG(status.st_mode)) {
    if (!S_ISDIR(status.st_mode)) calls.unlink(open_.get(), name.data());
    return;
  }
  const std::uint64_t bytes = disk_bytes(status);
  counted_ += bytes;
  ++values_;
  const std::int64_t modified = nanoseconds(status.st_mtim);
  consider({modified > latest_ ? 0 : modified, modified, bytes, *key});
}

// Keeps the candidate, and drops the latest of those that are not needed.
void FolderSweep::consider(const Victim& victim) {
  candidates_.push_back(victim);
  std::ranges::push_heap(candidates_, sooner);
  candidate_bytes_ += victim.bytes;
  while (candidates_.size() > 1 &&
         (candidate_bytes_ - candidates_.front().bytes >= options_.victim_bytes ||
          candidates_.size() > kMostVictims)) {
    candidate_bytes_ -= candidates_.front().bytes;
    std::ranges::pop_heap(candidates_, sooner);
    candidates_.pop_back();
  }
}

std::uint64_t FolderSweep::evict(StoreFolder& folder, std::uint64_t bytes) {
  std::uint64_t freed = 0;
  while (freed < bytes && !victims_.empty()) {
    const Victim victim = victims_.back();
    victims_.pop_back();
    const ValueName name = value_name(victim.key);
    const Descriptor shard = folder.open_folder(name.shard.data());
    struct stat status = {};
    FileCalls& calls = folder.calls();
    if (!shard || calls.status_of(shard.get(), name.file.data(), status) != 0 ||
        nanoseconds(status.st_mtim) != victim.modified) {
      continue;
    }
    if (calls.unlink(shard.get(), name.file.data()) != 0) continue;
    freed += disk_bytes(status);
    folder.usage().subtract(disk_bytes(status));
  }
  return freed;
}

std::uint64_t FolderSweep::files() const noexcept {
  if (next_ == 0) return files_;
  // The shards are equally full.
  return std::max(files_, values_ * (kShards + 1) / next_);
}

}  // namespace incipit::store
