// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_FOLDER_SWEEP_H_
#define INCIPIT_STORE_FOLDER_SWEEP_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "incipit/store.h"
#include "store/clock.h"
#include "store/store_folder.h"

namespace incipit::store {

struct SweepOptions {
  std::uint64_t victim_bytes = 0;             // what one pass finds to remove, at least
  std::chrono::seconds temporary_grace{600};  // no write takes longer
  WallClock clock = {};
};

/// Walks through a folder again and again, a few files at a time: counts what the files take,
/// removes what a killed writer left, and notes the files that were not used for the longest time.
/// A file's time of last use is the time of its last modification, which all processes see and no
/// mount option turns off. Not thread-safe.
class FolderSweep {
 public:
  explicit FolderSweep(SweepOptions options) : options_(std::move(options)) {}

  /// Looks at `steps` more files or folders. True: a pass has ended here. Its count went to the
  /// folder's usage (`coming` as there), and its victims take the place of all earlier ones.
  bool advance(const std::shared_ptr<StoreFolder>& folder, std::uint64_t steps,
               std::uint64_t coming);

  /// Removes victims of the last pass, the longest unused first, until at least `bytes` are free or
  /// none is left. Passes over those that were used meanwhile. Returns the bytes freed.
  std::uint64_t evict(StoreFolder& folder, std::uint64_t bytes);

  bool has_victims() const noexcept { return !victims_.empty(); }
  /// About how many values there are.
  std::uint64_t files() const noexcept;

 private:
  struct Victim {
    std::int64_t used = 0;      // nanoseconds since 1970; 0 for a time that cannot be
    std::int64_t modified = 0;  // as it was seen
    std::uint64_t bytes = 0;
    StoreKey key = {};
  };
  static bool sooner(const Victim& a, const Victim& b) noexcept { return a.used < b.used; }

  void begin(const std::shared_ptr<StoreFolder>& folder);
  void end(std::uint64_t coming);
  bool open_next();
  std::optional<std::string_view> next_name();
  void visit_temporary(const char* name);
  void visit_value(std::string_view name);
  void consider(const Victim& victim);

  const SweepOptions options_;

  // The pass under way; none where folder_ is null.
  std::shared_ptr<StoreFolder> folder_;
  unsigned next_ = 0;                        // of the folders: the temporary one, then the shards
  Descriptor open_;                          // folder next_ - 1, or none
  std::vector<std::byte> entries_;           // of it, as the system gives them
  std::size_t entry_ = 0, entries_end_ = 0;  // the next one in entries_, and their end
  bool complete_ = true;                     // nothing could not be read so far
  FolderUsage::Numbers before_;              // the folder's usage when the pass began
  std::uint64_t counted_ = 0;                // bytes so far
  std::uint64_t values_ = 0;                 // files so far
  std::int64_t latest_ = 0;                  // nanoseconds: a later time cannot be
  std::vector<Victim> candidates_;           // a heap; the most lately used is in front
  std::uint64_t candidate_bytes_ = 0;

  // Of the last whole pass.
  std::vector<Victim> victims_;  // the next one is at the end
  std::uint64_t files_ = 0;
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_FOLDER_SWEEP_H_
