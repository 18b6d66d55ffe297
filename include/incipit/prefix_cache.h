// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_PREFIX_CACHE_H_
#define INCIPIT_PREFIX_CACHE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "incipit/export.h"
#include "incipit/log.h"
#include "incipit/metrics.h"
#include "incipit/store.h"

namespace incipit::inline v0 {

/// Which blocks make room for new ones. Leaves of the prefix tree that no request uses go first,
/// whatever the policy; it chooses among them. benchmarks/README.md compares the four on traces.
enum class Eviction {
  kLru,  ///< Least recently used.
  /// S3-FIFO: what no second prompt asks for goes soon, so that many long prompts which come once
  /// do not push out what is shared. Best where the pool is small against what is asked for.
  kS3Fifo,
  /// ARC: balances recent against frequent use, by what it regrets to have evicted.
  kArc,
  /// GDSF: least use times work to compute again, with ageing; blocks far from the front of a
  /// prompt are worth more.
  kGdsf,
};

/// When what was computed goes to a tier.
enum class WritePolicy {
  kThrough,     ///< When its request ends.
  kSecondHit,   ///< When a request ends that has found it: what comes once is never written.
  kOnEviction,  ///< When it is about to leave the pool.
};

/// A cold tier: a store, when it is written, and how long it may take.
struct Tier {
  std::shared_ptr<Store> store = {};          ///< make_directory_store() and its like, or your own.
  WritePolicy write = WritePolicy::kThrough;  ///< kSecondHit suits servers.
  std::chrono::milliseconds deadline{250};    ///< Of one read; later than that it is computed.
  std::chrono::milliseconds write_deadline{2000};  ///< Of one write, in the background.
  /// Entries are compressed without loss (zstd) where that saves a tenth or more. For tiers that
  /// are slower than about 300 MB/s, or short of room: docs/caching.md has numbers. Any process
  /// with zstd reads both kinds.
  bool compress = false;
};

/// How a PrefixCache works.
struct PrefixCacheOptions {
  std::vector<Tier> tiers = {};  ///< Fastest first; none: memory only.
  /// What a request waits for the tiers in any case. Beyond that it waits where loading is clearly
  /// faster than computing, which is measured, and computes from the front meanwhile where not.
  std::chrono::milliseconds tier_patience{2};
  Eviction eviction = Eviction::kArc;    ///< Of the engines' pools.
  std::chrono::seconds time_to_live{0};  ///< Where CacheLabels name none; 0: until evicted.
  std::size_t owner_quota_tokens = 0;    ///< Of each salt, in each pool; 0: no quota.
  /// Blocks that only other sessions than the so many most recent ones have used go first; with
  /// tiers they are stored and leave the pool. 5 is a good number; 0: off.
  std::size_t hot_sessions = 0;

  std::size_t event_buffer = 0;  ///< Events that each engine keeps for Engine::cache_events().

  /// The key of an epoch, 32 bytes, asked for by the constructor, save() and load(): records in the
  /// tiers are encrypted (AES-256-GCM), and their names are HMACs. None: they are not, and hold
  /// prompts and KV in plain.
  std::function<std::vector<std::byte>(std::uint32_t key_epoch)> encryption_key = {};
  std::uint32_t key_epoch = 0;  ///< Another one finds nothing that was stored under this one.

  /// One in so many requests is computed without the cache as well, before it runs, and compared
  /// where it had a hit; 0: none. A difference empties the cache
  /// for that model and labels, is counted, and the request gets the right answer.
  std::size_t validate_every = 0;
  LogSink log = {};  ///< Silent without one.
};

/// What an invalidation could not reach.
struct Invalidation {
  /// Tiers that did not answer. Here, nothing is taken from them until they have been told; other
  /// processes may still take it.
  std::vector<std::string> unreached = {};
  /// Done everywhere.
  bool complete() const noexcept { return unreached.empty(); }
};

/// Keeps the KV of prompt prefixes for one or several engines: in their block pools, and in cold
/// tiers behind them, which survive the process and can be shared by many.
///
/// A prefix is found by the token ids of the prompt, in blocks of 16; the front of one more block
/// is reused too. A hash only finds an entry, the token ids prove it. A damaged, missing or foreign
/// entry costs time, never a wrong token (who can write to a tier can forge one unless there is a
/// key); a tier that is slow or down costs its deadline once.
///
/// Each Engine registers its block pool here and withdraws it when it is destroyed: on the CPU that
/// pool is where the blocks live, so without engine and tiers a cache holds nothing.
///
/// Invalidations are done when they return: no request that starts later finds what was there, here
/// or in the tiers; in other processes that share a tier, no request that begins a second later.
/// Running requests keep the blocks that they hold, and leave none behind. Cost: O(blocks of the
/// pools) and three small writes per tier.
///
/// Thread safety: all member functions may be called concurrently. A cache with tiers that was made
/// before fork() throws Error{kForked} in the child.
class INCIPIT_API PrefixCache {
 public:
  /// Throws Error{kInvalidArgument}: a tier without a store, more than 8 tiers, a key that has not
  /// 32 bytes, tiers in a build without OpenSSL, or Tier::compress in one without zstd.
  explicit PrefixCache(PrefixCacheOptions options = {});
  /// What the tiers still lack has been written by the engines' destructors.
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  /// Forgets everything.
  Invalidation clear();
  /// Forgets what requests with this CacheLabels::tag have used.
  Invalidation invalidate_tag(std::string_view tag);
  /// Forgets what only requests of this CacheLabels::session have used.
  Invalidation invalidate_session(std::string_view session);
  /// Forgets a tenant.
  Invalidation invalidate_salt(std::string_view salt);
  /// Forgets a version of a tenant's texts.
  Invalidation invalidate_version(std::string_view salt, std::string_view version);

  /// Writes what the pools of all engines know into a file, sealed as in the tiers; other calls of
  /// this cache wait meanwhile, requests without tiers do not. Returns how many tokens. Throws
  /// Error{kInvalidArgument} where it cannot be written, or in a build without OpenSSL. Cost: all
  /// of that KV is written.
  std::size_t save(const std::filesystem::path& file) const;
  /// Brings back what suits the engines that there are, as far as their pools have room. Returns
  /// how many tokens, which count as looked up. What is damaged, or was saved with another key, is
  /// left out; what was forgotten after it was saved comes back. Throws Error{kInvalidArgument}
  /// where it cannot be read.
  std::size_t load(const std::filesystem::path& file);

  /// Waits until the tiers have been given what was computed, `at_most` so long. False: not yet.
  /// What a tier refuses is not stored: see TierStats::failures.
  bool flush(std::chrono::milliseconds at_most);

  /// A snapshot, consistent per engine. Includes what engines that are gone have counted.
  /// Cost: O(engines + tiers).
  CacheStats stats() const;

 private:
  friend class Engine;
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace incipit::inline v0

#endif  // INCIPIT_PREFIX_CACHE_H_
