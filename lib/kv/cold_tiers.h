// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_COLD_TIERS_H_
#define INCIPIT_KV_COLD_TIERS_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/log.h"
#include "base/work_queue.h"
#include "kv/cold_tier.h"
#include "kv/kv_cache.h"
#include "kv/prefix_load.h"

namespace incipit::kv {

/// What a request may do with the tiers, fixed when it begins: what it stores carries the epochs of
/// that time, so that it cannot bring back what was forgotten meanwhile.
struct TierTicket {
  std::string name_space = {};
  std::string salt = {}, version = {};
  // By tier: of everything, namespace, salt and version. None: the tier is not used.
  std::vector<std::optional<std::vector<LabelEpoch>>> epochs = {};
};

/// The cold tiers of a PrefixCache, and the threads that work for them.
///
/// Thread-safe.
class ColdTiers {
 public:
  /// `options` has tiers. Throws Error{kInvalidArgument}; see PrefixCache.
  /// `clock` is for tests.
  ColdTiers(const PrefixCacheOptions& options, const base::Log& log,
            const store::SteadyClock& clock = {});
  /// Drops what is not stored yet; all caches have been left().
  ~ColdTiers();
  ColdTiers(const ColdTiers&) = delete;
  ColdTiers& operator=(const ColdTiers&) = delete;

  /// A label as KvCache knows it: its digest, since entries name no labels.
  static std::string cache_label(LabelKind kind, std::string_view name);
  /// The labels of a request as KvCache gets them.
  static CacheLabels cache_labels(CacheLabels labels);

  /// Something that was forgotten in the tiers, by whomever.
  struct Forgotten {
    LabelKind kind = LabelKind::kAll;
    std::string name = {};   // as KvCache knows it
    std::string name2 = {};  // kVersion: the version; `name` is the salt
  };
  using ForgetAll = base::FunctionRef<void(std::span<const Forgotten>)>;
  /// Has memory forget what other processes have forgotten since the last look, which was a second
  /// ago at most.
  void refresh(ForgetAll in_memory);
  /// Forgets, and has memory forget; returns the names of the tiers that could not be told. They
  /// are told before they are used again.
  std::vector<std::string> forget(LabelKind kind, std::string_view name,
                                  base::FunctionRef<void()> in_memory);
  /// What a version is called: a salt may have any number of them.
  static std::string version_name(std::string_view salt, std::string_view version);

  /// `labels` as KvCache gets them.
  std::shared_ptr<const TierTicket> ticket(const std::string& name_space,
                                           const CacheLabels& labels);

  /// The tier that has most of a prompt, and how much.
  struct Stored {
    std::string tier = {};
    std::size_t blocks = 0;
  };
  Stored find(const TierTicket& ticket, std::span<const TokenId> tokens);
  /// Begins to load what the tiers have of a prompt.
  std::shared_ptr<PrefixLoad> load(const TierTicket& ticket, PrefixLoad::Options options);
  /// Notes what a load has brought: its blocks are committed now.
  void loaded(KvCache& cache, const BlockTable& table, const PrefixLoad::Result& result);

  /// Stores blocks in the background, each where its tier's policy says so.
  void store(KvCache& cache, device::Device& device, BlockTable blocks,
             std::shared_ptr<const TierTicket> ticket);
  /// Waits until all that is to be stored is. False: not in time.
  bool flush(std::chrono::milliseconds at_most);
  /// Gives back all blocks of a cache: when it needs room, or goes.
  void leave(const KvCache& cache);

  std::vector<TierStats> stats() const;

 private:
  struct Job {
    KvCache* cache = nullptr;
    device::Device* device = nullptr;
    BlockTable blocks = {};
    std::shared_ptr<const TierTicket> ticket = nullptr;
    std::optional<std::uint64_t> evicting = {};  // whatever the policy says; then: settled()
  };

  /// What was last seen of a cache and of the tiers on its behalf.
  struct Watched {
    std::vector<std::uint64_t> generations = {};  // by tier
    std::uint64_t taken = 0;                      // KvCache::blocks_taken()
    std::size_t room = 0;                         // blocks that should be free
  };

  /// While one lives, memory may still have what has a new epoch already. What is stored meanwhile
  /// would come back.
  class Forgetting {
   public:
    explicit Forgetting(ColdTiers& tiers) noexcept : tiers_(tiers) { ++tiers_.forgets_begun_; }
    ~Forgetting() { ++tiers_.forgets_done_; }
    Forgetting(const Forgetting&) = delete;
    Forgetting& operator=(const Forgetting&) = delete;

   private:
    ColdTiers& tiers_;
  };

  void write_jobs();
  bool write(Job& job);
  bool write_to(std::size_t tier, Job& job, const PathNames& names, const PathFacts& facts,
                std::span<const Digest256> chain);
  void make_room(KvCache& cache, device::Device& device);
  std::size_t room_wanted(const KvCache& cache);
  std::size_t blocks_to_move(const KvCache& cache);
  bool move_out(KvCache& cache, device::Device& device, KvCache::Victim&& victim);
  bool wants(std::size_t tier, const Job& job, const BlockFacts& block) const;
  std::optional<EntryLabels> labels_of(std::size_t tier, const Job& job, const PathFacts& facts,
                                       std::size_t first, std::size_t end, bool& answered);
  LabelNames names_of(const EntryLabels& labels) const;
  std::optional<std::uint64_t> settled() const noexcept;
  bool is_untold(std::size_t tier, const EntryLabels& labels) const;
  void tell_late(std::size_t tier);
  void watch_generation(std::size_t tier, KvCache& cache);
  bool abandoned(const KvCache* cache) const;

  const base::Log& log_;
  const Sealer sealer_;
  const std::chrono::milliseconds patience_;
  std::vector<std::unique_ptr<ColdTier>> tiers_;
  bool writes_on_eviction_ = false;
  bool hot_sessions_ = false;

  std::atomic<std::uint64_t> forgets_begun_{0}, forgets_done_{0};
  std::atomic<std::size_t> waiting_loads_{0};
  std::mutex refresh_mutex_;  // held while tiers and caches work; taken before all others

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;                        // guarded by mutex_, as all below
  const KvCache* writing_ = nullptr;            // of the job that is being written
  std::multiset<const KvCache*> leaving_ = {};  // whose jobs are to end
  bool stopping_ = false;
  std::map<LabelDigest, Forgotten> names_;     // of everything, namespaces, salts and versions
  std::vector<std::set<LabelDigest>> untold_;  // by tier
  std::map<const KvCache*, Watched> watched_;

  StoreBuffer record_;  // of the writing thread
  base::WorkQueue loaders_{2};
  std::thread writer_;  // last: starts when all else is there
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_COLD_TIERS_H_
