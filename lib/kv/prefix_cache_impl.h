// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_PREFIX_CACHE_IMPL_H_
#define INCIPIT_KV_PREFIX_CACHE_IMPL_H_

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/log.h"
#include "incipit/metrics.h"
#include "incipit/prefix_cache.h"
#include "kv/cold_tiers.h"
#include "kv/kv_cache.h"

namespace incipit::kv {

/// What stands for a model, and for who may share: `model_fields` are tagged, length-prefixed
/// fields of everything that changes KV bytes.
std::string name_space_of(const std::string& model_fields, std::string_view salt,
                          std::string_view version);

/// The caches of the engines that share a PrefixCache, and the tiers behind them.
///
/// Thread-safe. Calls hold the registry's mutex for as long as they use a cache, so that a cache
/// that withdraws is not in use any more.
class CacheRegistry : public std::enable_shared_from_this<CacheRegistry> {
 public:
  /// Throws Error{kInvalidArgument}; see PrefixCache.
  /// `clock` is the tiers', for tests.
  explicit CacheRegistry(PrefixCacheOptions options, const store::SteadyClock& clock = {});
  ~CacheRegistry();

  /// Withdraws a cache when it goes, which is before the cache goes, and after the tiers have got
  /// what it has for them, for a second at most. Keeps the registry alive.
  class Registration {
   public:
    Registration() = default;
    ~Registration();
    Registration(Registration&& other) noexcept
        : registry_(std::move(other.registry_)), cache_(other.cache_) {}
    Registration& operator=(Registration&& other) noexcept {
      Registration taken(std::move(other));
      std::swap(registry_, taken.registry_);
      std::swap(cache_, taken.cache_);
      return *this;
    }

   private:
    friend class CacheRegistry;
    Registration(std::shared_ptr<CacheRegistry> registry, const KvCache* cache) noexcept
        : registry_(std::move(registry)), cache_(cache) {}

    std::shared_ptr<CacheRegistry> registry_ = nullptr;
    const KvCache* cache_ = nullptr;
  };

  /// The registry must be owned by a shared_ptr. `model` is what the namespaces of the cache's
  /// engine begin with.
  [[nodiscard]] Registration add(KvCache& cache, device::Device& device, std::string model);

  const PrefixCacheOptions& options() const noexcept { return options_; }
  /// None without tiers.
  ColdTiers* tiers() const noexcept { return tiers_.get(); }

  /// The labels of a request as KvCache gets them.
  CacheLabels cache_labels(const CacheLabels& labels) const;
  /// What a request that begins now may do with the tiers; none without tiers. Learns of what other
  /// processes have forgotten.
  std::shared_ptr<const TierTicket> begin_request(const std::string& name_space,
                                                  const CacheLabels& labels);

  Invalidation clear();
  Invalidation invalidate_tag(std::string_view tag);
  Invalidation invalidate_session(std::string_view session);
  Invalidation invalidate_owner(std::string_view salt);
  Invalidation invalidate_version(std::string_view salt, std::string_view version);
  Invalidation invalidate_name_space(std::string_view name_space);
  /// In the tiers the whole namespace goes.
  Invalidation invalidate_prefix(std::string_view name_space, std::span<const TokenId> tokens);

  /// Another namespace, of any cache, that knows the first block of a prompt; no tokens: none does.
  PathNames find_elsewhere(const std::string& name_space, std::span<const TokenId> tokens);

  /// See PrefixCache.
  bool flush(std::chrono::milliseconds at_most);
  /// See PrefixCache. Both return tokens.
  std::size_t save(const std::filesystem::path& file);
  std::size_t load(const std::filesystem::path& file);

  /// Notes that a hit was computed again.
  void count_validation(bool equal);

  /// Counts of caches that have withdrawn stay in; blocks and bytes do not.
  CacheStats stats() const;

 private:
  struct Member {
    KvCache* cache = nullptr;
    device::Device* device = nullptr;
    std::string model_fields = {};
  };

  /// Throws Error{kForked} in a child of fork(), which has the threads of the tiers no more.
  void check_process() const;
  void withdraw(const KvCache* cache) noexcept;
  void for_each_cache(base::FunctionRef<void(KvCache&)> work);
  Invalidation forget(LabelKind kind, std::string_view name,
                      base::FunctionRef<void(KvCache&)> in_memory);
  static void forget_in(KvCache& cache, const ColdTiers::Forgotten& forgotten);

  const PrefixCacheOptions options_;
  const base::Log log_;
  const pid_t process_;
  std::unique_ptr<ColdTiers> tiers_;
  mutable std::mutex mutex_;
  std::vector<Member> caches_;  // guarded by mutex_
  CacheStats withdrawn_;        // guarded by mutex_; and what is counted here
};

}  // namespace incipit::kv

namespace incipit::inline v0 {

class PrefixCache::Impl : public kv::CacheRegistry {
 public:
  using CacheRegistry::CacheRegistry;
};

}  // namespace incipit::inline v0

#endif  // INCIPIT_KV_PREFIX_CACHE_IMPL_H_
