// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_PREFIX_CACHE_IMPL_H_
#define INCIPIT_KV_PREFIX_CACHE_IMPL_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "incipit/metrics.h"
#include "incipit/prefix_cache.h"
#include "kv/kv_cache.h"

namespace incipit::kv {

/// The caches of the engines that share a PrefixCache.
///
/// Thread-safe. Calls hold the registry's mutex for as long as they use a cache, so that a cache
/// that withdraws is not in use any more.
class CacheRegistry : public std::enable_shared_from_this<CacheRegistry> {
 public:
  /// Withdraws a cache when it goes, which is before the cache goes. Keeps the registry alive.
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

  /// The registry must be owned by a shared_ptr.
  [[nodiscard]] Registration add(KvCache& cache);

  void clear();
  /// Counts of caches that have withdrawn stay in; blocks and bytes do not.
  CacheStats stats() const;

 private:
  void withdraw(const KvCache* cache) noexcept;

  mutable std::mutex mutex_;
  std::vector<KvCache*> caches_;  // guarded by mutex_
  CacheStats withdrawn_;          // guarded by mutex_
};

}  // namespace incipit::kv

namespace incipit::inline v0 {

class PrefixCache::Impl : public kv::CacheRegistry {};

}  // namespace incipit::inline v0

#endif  // INCIPIT_KV_PREFIX_CACHE_IMPL_H_
