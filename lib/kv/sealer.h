// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_SEALER_H_
#define INCIPIT_KV_SEALER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/crypto.h"
#include "incipit/prefix_cache.h"
#include "incipit/store.h"
#include "kv/prefix_chain.h"

namespace incipit::kv {

/// What a record in a store is. The numbers are part of the format.
enum class RecordKind : std::uint32_t {
  kExtent = 1,   // KV of a run of blocks
  kPointer = 2,  // which extent holds a block
  kEpoch = 3,    // the present epoch of a label
  kRun = 4,      // a run of blocks in a file
};

/// Seconds since 1970. What a clock that jumps says is never trusted further than that an entry
/// counts as expired.
using WallSeconds = std::int64_t;
WallSeconds wall_seconds_now() noexcept;

struct SealerOptions {
  /// The key of an epoch, 32 bytes; called for `key_epoch` once. None: records are not encrypted.
  std::function<std::vector<std::byte>(std::uint32_t key_epoch)> key = {};
  std::uint32_t key_epoch = 0;
  std::function<WallSeconds()> now = wall_seconds_now;
};

SealerOptions sealer_options(const PrefixCacheOptions& options);

/// Makes records that prove themselves, and checks them: what open() gives is what was sealed under
/// this very name, whole, and has not expired.
///
///     header: magic 8 | format 4 | kind 4 | flags 4 | key epoch 4 | name 32 | salt 32
///             | created 8 | expires 8 | body bytes 8
///     body, compressed if that pays, then encrypted if there is a key
///     trailer 16: XXH3-128 of the body seeded by that of the header, or the tag of AES-256-GCM
///                 with the header as additional data and a key for this record only
///
/// All integers little-endian. With a key, names are HMACs: they betray no prompt. Another key
/// epoch has other names, so its records are not found any more.
///
/// Thread-safe.
class Sealer {
 public:
  /// Throws Error{kInvalidArgument} for a key that is none; what the callback throws.
  explicit Sealer(SealerOptions options);

  static constexpr std::size_t kHeaderBytes = 112;
  static constexpr std::size_t kTrailerBytes = 16;
  /// Records with a longer life are not believed.
  static constexpr std::chrono::seconds kMaxLife = std::chrono::hours(24 * 366 * 10);

  /// Where the record of this kind about `id` lies.
  StoreKey name(RecordKind kind, base::Bytes id) const;

  /// Room for a record with `body_bytes` in `record`; the caller writes the body into what it gets.
  static std::span<std::byte> make_room(StoreBuffer& record, std::size_t body_bytes);
  /// Compresses the body that stands in `record`, where that saves a tenth or more; see compress().
  /// True: seal() has to know.
  static bool compress_body(StoreBuffer& record, std::size_t value_bytes);
  /// Seals what make_room() gave. `time_to_live` 0: for ever.
  void seal(StoreBuffer& record, RecordKind kind, const StoreKey& name,
            std::chrono::seconds time_to_live, bool compressed = false) const;

  /// The body, which lies in `record`; none where anything is not as it should be. One that is
  /// compressed, to `most_bytes` at most, is decompressed.
  std::optional<std::span<std::byte>> open(StoreBuffer& record, RecordKind kind,
                                           const StoreKey& name, std::size_t most_bytes = 0) const;

 private:
  struct Header;
  bool is_current(const Header& header) const;

  const std::function<WallSeconds()> now_;
  const std::uint32_t key_epoch_;
  std::optional<base::SecretKey> entry_key_;  // of which each record's own key is made
  std::optional<base::SecretKey> name_key_;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_SEALER_H_
