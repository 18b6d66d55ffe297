// SPDX-License-Identifier: Apache-2.0
#include "incipit/prefix_cache.h"

#include "kv/prefix_cache_impl.h"

namespace incipit::kv {
namespace {

// What only ever goes up.
void add_counts(CacheStats& sum, const CacheStats& one) noexcept {
  sum.lookups += one.lookups;
  sum.tokens_wanted += one.tokens_wanted;
  sum.tokens_reused += one.tokens_reused;
  sum.evictions += one.evictions;
}

}  // namespace

CacheRegistry::Registration::~Registration() {
  if (registry_ != nullptr) registry_->withdraw(cache_);
}

CacheRegistry::Registration CacheRegistry::add(KvCache& cache) {
  Registration registration(shared_from_this(), &cache);
  const std::lock_guard lock(mutex_);
  caches_.push_back(&cache);
  return registration;
}

void CacheRegistry::withdraw(const KvCache* cache) noexcept {
  const std::lock_guard lock(mutex_);
  if (std::erase(caches_, cache) > 0) add_counts(withdrawn_, cache->stats());
}

void CacheRegistry::clear() {
  const std::lock_guard lock(mutex_);
  for (KvCache* cache : caches_) cache->clear();
}

CacheStats CacheRegistry::stats() const {
  const std::lock_guard lock(mutex_);
  CacheStats sum = withdrawn_;
  for (const KvCache* cache : caches_) {
    const CacheStats one = cache->stats();
    add_counts(sum, one);
    sum.blocks_total += one.blocks_total;
    sum.blocks_cached += one.blocks_cached;
    sum.blocks_in_use += one.blocks_in_use;
    sum.bytes += one.bytes;
  }
  return sum;
}

}  // namespace incipit::kv

namespace incipit::inline v0 {

PrefixCache::PrefixCache() : impl_(std::make_shared<Impl>()) {}

PrefixCache::~PrefixCache() = default;

void PrefixCache::clear() { impl_->clear(); }

CacheStats PrefixCache::stats() const { return impl_->stats(); }

}  // namespace incipit::inline v0
