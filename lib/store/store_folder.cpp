// SPDX-License-Identifier: Apache-2.0
#include "store/store_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <random>
#include <utility>

namespace incipit::store {
namespace {

constexpr char kTemporary[] = "temporary";
constexpr char kUsage[] = "usage";
// The share of the capacity that need not be told to other processes at once.
constexpr std::uint64_t kUnnoticed = 256;

Descriptor open_at(FileCalls& calls, int directory, const char* name, int flags) noexcept {
  return {calls, calls.open(directory, name, flags)};
}

Descriptor open_temporary(FileCalls& calls, int folder) noexcept {
  // That it exists is the usual case, and that it cannot be made shows when it is opened. Without
  // the right to write into the folder there is no use for it.
  calls.make_directory(folder, kTemporary);
  return open_at(calls, folder, kTemporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Descriptor open_usage(FileCalls& calls, int folder) noexcept {
  Descriptor file =
      open_at(calls, folder, kUsage, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  struct stat status = {};
  if (file && (calls.status(file.get(), status) != 0 || !S_ISREG(status.st_mode))) return {};
  return file;
}

std::uint64_t random_number() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

}  // namespace

std::shared_ptr<StoreFolder> StoreFolder::open(std::shared_ptr<FileCalls> calls,
                                               const std::filesystem::path& path,
                                               std::uint64_t capacity_bytes) {
  // The folder itself may be a link: it is the host that names it.
  Descriptor folder = open_at(*calls, AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY);
  if (!folder) return nullptr;
  return std::shared_ptr<StoreFolder>(
      new StoreFolder(std::move(calls), std::move(folder), capacity_bytes));
}

StoreFolder::StoreFolder(std::shared_ptr<FileCalls> calls, Descriptor folder,
                         std::uint64_t capacity_bytes)
    : calls_(std::move(calls)),
      folder_(std::move(folder)),
      temporary_(open_temporary(*calls_, folder_.get())),
      capacity_bytes_(capacity_bytes),
      usage_(*calls_, open_usage(*calls_, folder_.get()), capacity_bytes / kUnnoticed),
      random_(random_number()) {}

Descriptor StoreFolder::open_folder(const char* name) const noexcept {
  return open_at(*calls_, folder(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Descriptor StoreFolder::make_shard(const char* name, bool sync) noexcept {
  Descriptor shard = open_folder(name);
  if (shard || errno != ENOENT) return shard;
  const bool made = calls_->make_directory(folder(), name) == 0;
  if (!made && errno != EEXIST) return {};
  shard = open_folder(name);
  struct stat status = {};
  if (made && shard && calls_->status(shard.get(), status) == 0) usage_.add(disk_bytes(status));
  if (made && sync && calls_->sync(folder()) != 0) return {};
  return shard;
}

std::shared_ptr<SmallValues> StoreFolder::small_values() {
  const std::lock_guard lock(small_mutex_);
  if (small_ && small_->is_removed()) small_ = nullptr;
  if (!small_) small_ = open_small_values();
  // Never in place of a table that only could not be opened now.
  if (!small_ && errno == ENOENT) small_ = make_small_values();
  return small_;
}

// Null, with the reason in errno: ENOENT where there is none, or something else that may go.
std::shared_ptr<SmallValues> StoreFolder::open_small_values() {
  const int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Descriptor file = open_at(*calls_, folder(), kSmallValues, O_RDWR | flags);
  if (!file && (errno == EROFS || errno == EACCES)) {
    file = open_at(*calls_, folder(), kSmallValues, O_RDONLY | flags);
  }
  if (!file && (errno == ELOOP || errno == ENXIO)) errno = ENOENT;  // a link, a socket
  struct stat status = {};
  if (!file || calls_->status(file.get(), status) != 0) return nullptr;
  const auto sets = SmallValues::sets_of(static_cast<std::uint64_t>(status.st_size));
  if (!S_ISREG(status.st_mode) || !sets) {
    errno = ENOENT;
    return nullptr;
  }
  return std::make_shared<SmallValues>(*calls_, std::move(file), *sets);
}

// In place of what is there. Other processes notice that theirs was replaced.
std::shared_ptr<SmallValues> StoreFolder::make_small_values() {
  if (temporary() < 0) {
    errno = ENOENT;  // which may have changed since
    return nullptr;
  }
  const std::string name = temporary_name();
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;
  Descriptor file = open_at(*calls_, temporary(), name.c_str(), flags);
  if (!file) return nullptr;
  const std::uint64_t bytes = SmallValues::bytes_for(capacity_bytes_);
  if (calls_->resize(file.get(), bytes) != 0 ||
      calls_->rename(temporary(), name.c_str(), folder(), kSmallValues) != 0) {
    const int error = errno;
    calls_->unlink(temporary(), name.c_str());
    errno = error;
    return nullptr;
  }
  return std::make_shared<SmallValues>(*calls_, std::move(file),
                                       SmallValues::sets_of(bytes).value());
}

std::string StoreFolder::temporary_name() {
  std::string name(kTemporaryPrefix);
  name += std::to_string(::getpid()) + '.' + std::to_string(++names_) + '.';
  return name + std::to_string(random_);
}

bool StoreFolder::is_removed() const noexcept {
  struct stat status = {};
  return calls_->status(folder(), status) == 0 && status.st_nlink == 0;
}

}  // namespace incipit::store
