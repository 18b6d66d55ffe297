// SPDX-License-Identifier: Apache-2.0
#include "incipit/prefix_cache.h"

#include <unistd.h>

#include <algorithm>

#include "base/bytes.h"
#include "kv/cache_file.h"
#include "kv/prefix_cache_impl.h"

namespace incipit::kv {
namespace {

// What destructors wait for the tiers.
constexpr std::chrono::seconds kLastFlush{1};

// What only ever goes up.
void add_counts(CacheStats& sum, const CacheStats& one) noexcept {
  sum.lookups += one.lookups;
  sum.tokens_wanted += one.tokens_wanted;
  sum.tokens_reused += one.tokens_reused;
  sum.evictions += one.evictions;
}

}  // namespace

std::string name_space_of(const std::string& model_fields, std::string_view salt,
                          std::string_view version) {
  return base::FieldWriter()
      .add("model", model_fields)
      .add("salt", salt)
      .add("version", version)
      .str();
}

CacheRegistry::CacheRegistry(PrefixCacheOptions options, const store::SteadyClock& clock)
    : options_(std::move(options)), log_(options_.log), process_(getpid()) {
  if (!options_.tiers.empty()) tiers_ = std::make_unique<ColdTiers>(options_, log_, clock);
}

CacheRegistry::~CacheRegistry() {
  // The threads of the parent do not exist in a child of fork(): there is nothing to join.
  if (getpid() != process_) static_cast<void>(tiers_.release());
}

void CacheRegistry::check_process() const {
  if (tiers_ != nullptr && getpid() != process_) {
    base::throw_error(ErrorCode::kForked,
                      "this PrefixCache was made before fork(); make one in the child process");
  }
}

CacheRegistry::Registration::~Registration() {
  if (registry_ != nullptr) registry_->withdraw(cache_);
}

CacheRegistry::Registration CacheRegistry::add(KvCache& cache, device::Device& device,
                                               std::string model_fields) {
  check_process();
  Registration registration(shared_from_this(), &cache);
  const std::lock_guard lock(mutex_);
  caches_.push_back({&cache, &device, std::move(model_fields)});
  return registration;
}

void CacheRegistry::withdraw(const KvCache* cache) noexcept {
  if (tiers_ != nullptr) {
    tiers_->flush(kLastFlush);
    tiers_->leave(*cache);
  }
  const std::lock_guard lock(mutex_);
  const auto is_it = [&](const Member& member) { return member.cache == cache; };
  if (std::erase_if(caches_, is_it) > 0) add_counts(withdrawn_, cache->stats());
}

void CacheRegistry::for_each_cache(base::FunctionRef<void(KvCache&)> work) {
  const std::lock_guard lock(mutex_);
  for (const Member& member : caches_) work(*member.cache);
}

CacheLabels CacheRegistry::cache_labels(const CacheLabels& labels) const {
  // The same with and without tiers, so that a file which one cache has saved suits any other.
  return base::have_crypto() ? ColdTiers::cache_labels(labels) : labels;
}

std::shared_ptr<const TierTicket> CacheRegistry::begin_request(const std::string& name_space,
                                                               const CacheLabels& labels) {
  if (tiers_ == nullptr) return nullptr;
  check_process();
  tiers_->refresh([this](std::span<const ColdTiers::Forgotten> all) {
    for_each_cache([&](KvCache& cache) {
      for (const ColdTiers::Forgotten& forgotten : all) forget_in(cache, forgotten);
      cache.clear_stored(0xff);
    });
  });
  return tiers_->ticket(name_space, labels);
}

void CacheRegistry::forget_in(KvCache& cache, const ColdTiers::Forgotten& forgotten) {
  switch (forgotten.kind) {
    case LabelKind::kAll:
      cache.clear();
      break;
    case LabelKind::kNameSpace:
      cache.invalidate_name_space(forgotten.name);
      break;
    case LabelKind::kOwner:
      cache.invalidate_owner(forgotten.name);
      break;
    case LabelKind::kVersion:
      cache.invalidate_version(forgotten.name, forgotten.name2);
      break;
    case LabelKind::kSession:
      cache.invalidate_session(forgotten.name);
      break;
    case LabelKind::kTag:
      cache.invalidate_tag(forgotten.name);
      break;
  }
}

/// In memory before and after: what the tiers gave in between, they gave before they were told.
Invalidation CacheRegistry::forget(LabelKind kind, std::string_view name,
                                   base::FunctionRef<void(KvCache&)> in_memory) {
  check_process();
  {
    const std::lock_guard lock(mutex_);
    ++withdrawn_.invalidations;
  }
  for_each_cache(in_memory);
  Invalidation invalidation;
  if (tiers_ == nullptr) return invalidation;
  invalidation.unreached = tiers_->forget(kind, name, [&] {
    for_each_cache([&](KvCache& cache) {
      in_memory(cache);
      cache.clear_stored(0xff);
    });
  });
  return invalidation;
}

Invalidation CacheRegistry::clear() {
  return forget(LabelKind::kAll, "", [](KvCache& cache) { cache.clear(); });
}

Invalidation CacheRegistry::invalidate_tag(std::string_view tag) {
  CacheLabels labels;
  labels.tags = {std::string(tag)};
  labels = cache_labels(labels);
  return forget(LabelKind::kTag, tag,
                [&](KvCache& cache) { cache.invalidate_tag(labels.tags.front()); });
}

Invalidation CacheRegistry::invalidate_session(std::string_view session) {
  CacheLabels labels;
  labels.session = session;
  labels = cache_labels(labels);
  return forget(LabelKind::kSession, session,
                [&](KvCache& cache) { cache.invalidate_session(labels.session); });
}

Invalidation CacheRegistry::invalidate_owner(std::string_view salt) {
  return forget(LabelKind::kOwner, salt, [&](KvCache& cache) { cache.invalidate_owner(salt); });
}

Invalidation CacheRegistry::invalidate_version(std::string_view salt, std::string_view version) {
  return forget(LabelKind::kVersion, ColdTiers::version_name(salt, version),
                [&](KvCache& cache) { cache.invalidate_version(salt, version); });
}

Invalidation CacheRegistry::invalidate_name_space(std::string_view name_space) {
  return forget(LabelKind::kNameSpace, name_space,
                [&](KvCache& cache) { cache.invalidate_name_space(name_space); });
}

Invalidation CacheRegistry::invalidate_prefix(std::string_view name_space,
                                              std::span<const TokenId> tokens) {
  return forget(LabelKind::kNameSpace, name_space,
                [&](KvCache& cache) { cache.invalidate_prefix(name_space, tokens); });
}

PathNames CacheRegistry::find_elsewhere(const std::string& name_space,
                                        std::span<const TokenId> tokens) {
  PathNames found;
  for_each_cache([&](KvCache& cache) {
    PathNames names = cache.explain_miss(name_space, tokens).elsewhere;
    if (found.tokens.empty()) found = std::move(names);
  });
  return found;
}

bool CacheRegistry::flush(std::chrono::milliseconds at_most) {
  check_process();
  return tiers_ == nullptr || tiers_->flush(at_most);
}

std::size_t CacheRegistry::save(const std::filesystem::path& file) {
  check_process();
  const Sealer sealer(sealer_options(options_));
  CacheFileWriter writer(file, sealer);
  std::size_t blocks = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const Member& member : caches_) blocks += writer.add(*member.cache, *member.device);
  }
  writer.finish();
  return blocks * device::kBlockTokens;
}

std::size_t CacheRegistry::load(const std::filesystem::path& file) {
  check_process();
  const Sealer sealer(sealer_options(options_));
  std::size_t most_blocks = 0, blocks = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const Member& member : caches_) {
      most_blocks = std::max(most_blocks, member.cache->pool().blocks);
    }
  }
  CacheFileReader reader(file, sealer, most_blocks);
  for (SavedRun run; reader.next(run);) {
    const std::lock_guard lock(mutex_);
    for (const Member& member : caches_) {
      if (run.name_space != name_space_of(member.model_fields, run.salt, run.version)) continue;
      blocks += restore(run, *member.cache, *member.device);
    }
  }
  return blocks * device::kBlockTokens;
}

void CacheRegistry::count_validation(bool equal) {
  const std::lock_guard lock(mutex_);
  ++withdrawn_.validations;
  if (!equal) ++withdrawn_.mismatches;
}

CacheStats CacheRegistry::stats() const {
  const std::lock_guard lock(mutex_);
  CacheStats sum = withdrawn_;
  for (const Member& member : caches_) {
    const CacheStats one = member.cache->stats();
    add_counts(sum, one);
    sum.blocks_total += one.blocks_total;
    sum.blocks_cached += one.blocks_cached;
    sum.blocks_in_use += one.blocks_in_use;
    sum.bytes += one.bytes;
  }
  if (tiers_ != nullptr) sum.tiers = tiers_->stats();
  for (const TierStats& tier : sum.tiers) sum.tokens_reused += tier.tokens_reused;
  return sum;
}

}  // namespace incipit::kv

namespace incipit::inline v0 {

PrefixCache::PrefixCache(PrefixCacheOptions options)
    : impl_(std::make_shared<Impl>(std::move(options))) {}

PrefixCache::~PrefixCache() = default;

Invalidation PrefixCache::clear() { return impl_->clear(); }

Invalidation PrefixCache::invalidate_tag(std::string_view tag) {
  return impl_->invalidate_tag(tag);
}

Invalidation PrefixCache::invalidate_session(std::string_view session) {
  return impl_->invalidate_session(session);
}

Invalidation PrefixCache::invalidate_salt(std::string_view salt) {
  return impl_->invalidate_owner(salt);
}

Invalidation PrefixCache::invalidate_version(std::string_view salt, std::string_view version) {
  return impl_->invalidate_version(salt, version);
}

std::size_t PrefixCache::save(const std::filesystem::path& file) const { return impl_->save(file); }

std::size_t PrefixCache::load(const std::filesystem::path& file) { return impl_->load(file); }

bool PrefixCache::flush(std::chrono::milliseconds at_most) { return impl_->flush(at_most); }

CacheStats PrefixCache::stats() const { return impl_->stats(); }

}  // namespace incipit::inline v0
