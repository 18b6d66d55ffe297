// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_CACHE_FILE_H_
#define INCIPIT_KV_CACHE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "kv/kv_cache.h"
#include "kv/sealer.h"

namespace incipit::kv {

inline constexpr std::uint64_t kNoRecord = static_cast<std::uint64_t>(-1);

/// A run of blocks of a prefix, with what a pool has to know of it.
struct SavedRun {
  std::string name_space = {}, salt = {}, version = {};
  LabelNames labels = {};            // of all of its blocks
  std::vector<TokenId> tokens = {};  // of the prefix, from position 0 to the end of the run
  std::uint64_t front = kNoRecord;   // that has the block in front of the run
  std::uint32_t first_block = 0;     // of the run
  std::uint64_t block_bytes = 0;
  WallSeconds expires = 0;                  // 0: never
  std::span<const std::byte> payload = {};  // [blocks of the run][block_bytes]
};

/// Writes what pools know into one file: sealed runs, each behind its length. A run has the token
/// ids of its own blocks and names the record in front of it, so the file grows with what is in the
/// pools and not with its square. The file has its name when it is complete, and not before.
class CacheFileWriter {
 public:
  /// Throws Error{kInvalidArgument} where the file cannot be made.
  CacheFileWriter(const std::filesystem::path& path, const Sealer& sealer);
  ~CacheFileWriter();  // removes what was not finished
  CacheFileWriter(const CacheFileWriter&) = delete;
  CacheFileWriter& operator=(const CacheFileWriter&) = delete;

  /// All that a pool knows, path by path; what comes and goes meanwhile may be missing. Returns how
  /// many blocks.
  std::size_t add(KvCache& cache, device::Device& device);
  /// Throws Error{kInvalidArgument} where not all could be written.
  void finish();

 private:
  void add_run(const SavedRun& run, std::span<const BlockId> blocks, const KvCache& cache,
               device::Device& device);

  const std::filesystem::path path_, temporary_;
  const Sealer& sealer_;
  std::ofstream file_;
  std::uint64_t records_ = 0;
  std::map<Digest256, std::uint64_t> written_;  // the record of each block, by its prefix
  StoreBuffer record_;
};

/// Reads such a file. A damaged record counts as not there.
class CacheFileReader {
 public:
  /// Throws Error{kInvalidArgument} where the file cannot be read. `most_blocks`: of a prefix that
  /// has room anywhere. So whatever the file names, a run takes no longer than a prompt of as many.
  CacheFileReader(const std::filesystem::path& path, const Sealer& sealer, std::size_t most_blocks);

  /// The next run, whose payload is valid until the next call; without blocks where it is damaged,
  /// or ends too far behind. False: there is none.
  bool next(SavedRun& run);

 private:
  // A run that was read: where it stands and its own tokens; none where it was damaged.
  struct Seen {
    std::string name_space = {};
    std::uint64_t front = kNoRecord;
    std::size_t first_block = 0;
    std::vector<TokenId> tokens = {};
  };
  bool put_in_front(SavedRun& run) const;

  const Sealer& sealer_;
  const std::size_t most_blocks_;
  std::ifstream file_;
  std::uint64_t left_ = 0;       // bytes of the file
  std::vector<Seen> seen_ = {};  // by record
  StoreBuffer record_;
};

/// Makes a run known to a pool whose engine has this namespace, where what is in front of it is
/// known. Returns how many blocks that adds; none where there is no room.
std::size_t restore(const SavedRun& run, KvCache& cache, device::Device& device);

}  // namespace incipit::kv

#endif  // INCIPIT_KV_CACHE_FILE_H_
