// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_COLD_TIER_H_
#define INCIPIT_KV_COLD_TIER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/function_ref.h"
#include "incipit/metrics.h"
#include "incipit/prefix_cache.h"
#include "kv/entry.h"
#include "kv/label_epochs.h"
#include "kv/sealer.h"
#include "store/guarded_store.h"

namespace incipit::kv {

/// Extents are about this long: large enough for a disk or a network, small enough to overlap.
inline constexpr std::size_t kExtentBytes = std::size_t{4} << 20;

/// Blocks of a whole extent. The extents of a prefix start at multiples of it.
std::size_t extent_blocks(std::size_t block_bytes) noexcept;

/// A store as the cache uses it: sealed extents, and for each of their blocks a small pointer that
/// says where it is. So the longest stored part of a prefix takes O(log blocks) small reads to
/// find, whatever follows it in the store.
///
/// What does not prove itself counts as not there. Thread-safe; calls take as long as the store
/// does, within its deadlines.
class ColdTier {
 public:
  /// Throws Error{kInvalidArgument} where it is to compress and this build cannot. `clock` is for
  /// tests.
  ColdTier(const Tier& tier, const Sealer& sealer, const store::SteadyClock& clock = {});

  LabelEpochs& epochs() noexcept { return epochs_; }
  WritePolicy write_policy() const noexcept { return write_; }
  const store::GuardedStore& store() const noexcept { return store_; }

  /// Where the last stored block of a prefix lies, and how many blocks the prefix then has; more
  /// than `known`, at most chain.size() - 1.
  struct Found {
    std::size_t blocks = 0;
    Pointer pointer = {};
  };
  std::optional<Found> find(std::span<const Digest256> chain, std::size_t known);

  /// Reads an extent, named by the prefix that ends with it, and checks that it is what is wanted
  /// and that nobody has forgotten it. The payload lies in `buffer`.
  std::optional<Extent> read(const Digest256& extent, const ExtentFacts& wanted,
                             StoreBuffer& buffer);

  using Fill = base::FunctionRef<void(std::span<std::byte> payload)>;
  /// Stores an extent whose first block stands behind `chain[facts.first_block]`, then its
  /// pointers. `fill` writes the payload, `record` is scratch. False where the store refuses, or
  /// `goes_on`, which is asked before each call of it.
  bool write(const ExtentFacts& facts, std::span<const Digest256> chain,
             std::chrono::seconds time_to_live, StoreBuffer& record, Fill fill,
             base::FunctionRef<bool()> goes_on);

  /// What a byte of KV takes until it is there, its share of the store's time and all that is done
  /// with it, as far as that is known. Seconds.
  std::optional<double> seconds_per_byte() const;

  /// Tokens that requests took from it.
  void count_reuse(std::size_t tokens) noexcept { tokens_reused_ += tokens; }
  TierStats stats() const;

 private:
  std::optional<Pointer> read_pointer(const Digest256& prefix);
  void learn(double stored_share, double opening);

  const Sealer& sealer_;
  const WritePolicy write_;
  const bool compress_;
  const store::SteadyClock clock_;
  store::GuardedStore store_;
  LabelEpochs epochs_;
  std::atomic<std::uint64_t> rejected_{0};  // records that did not prove themselves
  std::atomic<std::uint64_t> tokens_reused_{0};

  mutable std::mutex mutex_;
  std::optional<double> stored_share_;  // bytes in the store by byte of KV; guarded by mutex_
  std::optional<double> opening_;       // seconds by byte of KV behind the store; the same
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_COLD_TIER_H_
