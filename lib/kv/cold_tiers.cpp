// SPDX-License-Identifier: Apache-2.0
#include "kv/cold_tiers.h"

#include <algorithm>
#include <iterator>

#include "base/caught.h"
#include "base/check.h"

namespace incipit::kv {
namespace {

// One bit each in BlockFacts::stored.
constexpr std::size_t kMaxTiers = 8;
// Requests whose blocks wait to be stored, at most: waiting blocks are in nobody else's way, but
// they cannot be evicted.
constexpr std::size_t kMaxJobs = 64;
// Loads that wait for a loading thread, at most: with more the tiers are behind, and computing
// wins.
constexpr std::size_t kMaxWaitingLoads = 64;

std::string as_name(const LabelDigest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

LabelDigest as_digest(const std::string& name) {
  LabelDigest digest = {};
  INCIPIT_CHECK(name.size() == digest.size());
  std::ranges::copy(base::as_bytes(name), digest.begin());
  return digest;
}

}  // namespace

ColdTiers::ColdTiers(const PrefixCacheOptions& options, const base::Log& log,
                     const store::SteadyClock& clock)
    : log_(log),
      sealer_(sealer_options(options)),
      patience_(options.tier_patience),
      hot_sessions_(options.hot_sessions > 0),
      untold_(options.tiers.size()) {
  if (options.tiers.size() > kMaxTiers) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "PrefixCacheOptions::tiers has " + std::to_string(options.tiers.size()) +
                          " tiers; at most " + std::to_string(kMaxTiers) + " are possible");
  }
  base::sha256({});  // says so where the build has no OpenSSL
  for (const Tier& tier : options.tiers) {
    if (tier.store == nullptr) {
      base::throw_error(ErrorCode::kInvalidArgument,
                        "a tier of PrefixCacheOptions::tiers has no store; make one with "
                        "make_directory_store() or the like");
    }
    tiers_.push_back(std::make_unique<ColdTier>(tier, sealer_, clock));
    writes_on_eviction_ |= tier.write == WritePolicy::kOnEviction;
  }
  writer_ = std::thread([this] { write_jobs(); });
}

ColdTiers::~ColdTiers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  writer_.join();
}

std::string ColdTiers::cache_label(LabelKind kind, std::string_view name) {
  return as_name(label_digest(kind, name));
}

CacheLabels ColdTiers::cache_labels(CacheLabels labels) {
  if (!labels.session.empty()) labels.session = cache_label(LabelKind::kSession, labels.session);
  for (std::string& tag : labels.tags) tag = cache_label(LabelKind::kTag, tag);
  return labels;
}

std::string ColdTiers::version_name(std::string_view salt, std::string_view version) {
  return base::FieldWriter().add("salt", salt).add("version", version).str();
}

// ---- Forgetting

/// A number that changes with each forgetting; none while one is under way.
std::optional<std::uint64_t> ColdTiers::settled() const noexcept {
  const std::uint64_t done = forgets_done_;
  const std::uint64_t begun = forgets_begun_;
  return begun == done ? std::optional(begun) : std::nullopt;
}

void ColdTiers::refresh(ForgetAll in_memory) {
  // Until memory has forgotten, nobody else may take what the tiers say for fresh.
  const std::lock_guard one_thread(refresh_mutex_);
  std::vector<LabelDigest> changed;
  std::optional<Forgetting> forgetting;
  const auto begin = [&] {
    if (!forgetting) forgetting.emplace(*this);
  };
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
    tell_late(tier);
    tiers_[tier]->epochs().refresh(changed, begin);
  }
  std::vector<Forgotten> forgotten;
  {
    const std::lock_guard lock(mutex_);
    for (const LabelDigest& label : changed) {
      if (const auto known = names_.find(label); known != names_.end()) {
        forgotten.push_back(std::move(known->second));
        names_.erase(known);
      } else {
        forgotten.push_back({LabelKind::kSession, as_name(label)});
        forgotten.push_back({LabelKind::kTag, as_name(label)});
      }
    }
  }
  if (!forgotten.empty()) in_memory(forgotten);
}

std::vector<std::string> ColdTiers::forget(LabelKind kind, std::string_view name,
                                           base::FunctionRef<void()> in_memory) {
  const LabelDigest label = label_digest(kind, name);
  const Forgetting forgetting(*this);
  std::vector<std::string> unreached;
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
    if (tiers_[tier]->epochs().renew(label)) continue;
    unreached.emplace_back(tiers_[tier]->store().name());
    const std::lock_guard lock(mutex_);
    untold_[tier].insert(label);
  }
  in_memory();
  return unreached;
}

/// Tells a tier what it did not hear when it should have. It counts as not told until it is.
void ColdTiers::tell_late(std::size_t tier) {
  std::set<LabelDigest> labels;
  {
    const std::lock_guard lock(mutex_);
    labels = untold_[tier];
  }
  for (const LabelDigest& label : labels) {
    if (!tiers_[tier]->epochs().renew(label)) return;
    const std::lock_guard lock(mutex_);
    untold_[tier].erase(label);
  }
}

bool ColdTiers::is_untold(std::size_t tier, const EntryLabels& labels) const {
  const auto untold = [&](const LabelEpoch& label) { return untold_[tier].contains(label.label); };
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(labels.all, untold) || std::ranges::any_of(labels.any, untold);
}

// ---- Requests

std::shared_ptr<const TierTicket> ColdTiers::ticket(const std::string& name_space,
                                                    const CacheLabels& labels) {
  const std::array<Forgotten, 4> base = {
      Forgotten{LabelKind::kAll}, Forgotten{LabelKind::kNameSpace, name_space},
      Forgotten{LabelKind::kOwner, labels.salt},
      Forgotten{LabelKind::kVersion, labels.salt, labels.version}};
  std::vector<LabelDigest> digests;
  for (const Forgotten& label : base) {
    digests.push_back(label.kind == LabelKind::kVersion
                          ? label_digest(label.kind, version_name(label.name, label.name2))
                          : label_digest(label.kind, label.name));
  }
  std::vector<LabelDigest> others;  // that are only remembered, so that a change is noticed
  if (!labels.session.empty()) others.push_back(as_digest(labels.session));
  for (const std::string& tag : labels.tags) others.push_back(as_digest(tag));

  const auto ticket = std::make_shared<TierTicket>();
  ticket->name_space = name_space;
  ticket->salt = labels.salt;
  ticket->version = labels.version;
  ticket->epochs.resize(tiers_.size());
  std::vector<bool> told(tiers_.size());
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < base.size(); ++i) names_.try_emplace(digests[i], base[i]);
    for (std::size_t tier = 0; tier < tiers_.size(); ++tier) told[tier] = untold_[tier].empty();
  }
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
    // Asked in any case, so that a change will be noticed.
    const bool known = tiers_[tier]->epochs().current(others).has_value();
    auto epochs = tiers_[tier]->epochs().current(digests);
    if (told[tier] && known) ticket->epochs[tier] = std::move(epochs);
  }
  return ticket;
}

ColdTiers::Stored ColdTiers::find(const TierTicket& ticket, std::span<const TokenId> tokens) {
  const std::vector<Digest256> chain = prefix_chain(ticket.name_space, tokens);
  Stored best;
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
    if (!ticket.epochs[tier]) continue;
    const auto found = tiers_[tier]->find(chain, best.blocks);
    if (found) best = {std::string(tiers_[tier]->store().name()), found->blocks};
  }
  return best;
}

std::shared_ptr<PrefixLoad> ColdTiers::load(const TierTicket& ticket, PrefixLoad::Options options) {
  std::vector<ColdTier*> tiers;
  {
    // What a tier does not know to be forgotten may have been forgotten since the ticket was made.
    const std::lock_guard lock(mutex_);
    for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
      if (ticket.epochs[tier] && untold_[tier].empty()) tiers.push_back(tiers_[tier].get());
    }
  }
  if (tiers.empty() || waiting_loads_ >= kMaxWaitingLoads) return nullptr;
  options.least_patience = patience_;
  const auto load = std::make_shared<PrefixLoad>(std::move(tiers), std::move(options));
  ++waiting_loads_;
  loaders_.push([this, load] {
    --waiting_loads_;
    const std::size_t extents = load->search();
    for (std::size_t i = 1; i < std::min<std::size_t>(extents, loaders_.threads()); ++i) {
      loaders_.push([load] { load->fetch(); });
    }
    load->fetch();
  });
  return load;
}

LabelNames ColdTiers::names_of(const EntryLabels& labels) const {
  LabelNames names;
  names.common = labels.any.empty();
  for (const LabelEpoch& label : labels.any) names.sessions.push_back(as_name(label.label));
  const std::lock_guard lock(mutex_);
  for (const LabelEpoch& label : labels.all) {
    if (!names_.contains(label.label)) names.tags.push_back(as_name(label.label));
  }
  return names;
}

void ColdTiers::loaded(KvCache& cache, const BlockTable& table, const PrefixLoad::Result& result) {
  if (result.loaded.empty()) return;
  const auto found = std::ranges::find(tiers_, result.tier, &std::unique_ptr<ColdTier>::get);
  INCIPIT_CHECK(found != tiers_.end());
  const auto tier = static_cast<std::size_t>(found - tiers_.begin());
  for (const PrefixLoad::Loaded& part : result.loaded) {
    const LabelNames names = names_of(part.labels);
    cache.add_labels(table, part.first, part.blocks, names);
    tiers_[tier]->count_reuse(part.tokens);
    // What was forgotten between the reading and the labelling was not found by its labels.
    if (tiers_[tier]->epochs().refute(part.labels) || is_untold(tier, part.labels)) {
      for (const std::string& tag : names.tags) cache.invalidate_tag(tag);
      for (const std::string& session : names.sessions) cache.invalidate_session(session);
    }
    // The entry lacks the tags that the request has brought: it is to be stored again with them.
    const PathFacts facts = cache.facts(table);
    if (facts.blocks.size() < part.first + part.blocks) continue;
    const auto blocks = std::span(facts.blocks).subspan(part.first, part.blocks);
    if (std::ranges::all_of(blocks, [&](const BlockFacts& block) {
          const LabelNames& all = facts.label_sets.at(block.label_set);
          return !all.any_tag && all.tags.size() <= names.tags.size();
        })) {
      cache.mark_stored(table, part.first, blocks, static_cast<std::uint8_t>(1u << tier));
    }
  }
}

// ---- Storing

void ColdTiers::store(KvCache& cache, device::Device& device, BlockTable blocks,
                      std::shared_ptr<const TierTicket> ticket) {
  if (blocks.blocks().empty()) return;
  Job job{&cache, &device, std::move(blocks), std::move(ticket)};
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() >= kMaxJobs) return;  // `job` gives its blocks back behind the lock
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

bool ColdTiers::flush(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  // Longer waits would overflow the clock.
  at_most = std::min<std::chrono::milliseconds>(at_most, std::chrono::hours(24 * 366));
  return changed_.wait_for(lock, at_most, [this] { return jobs_.empty() && writing_ == nullptr; });
}

void ColdTiers::leave(const KvCache& cache) {
  std::deque<Job> dropped;  // give their blocks back behind the lock
  std::unique_lock lock(mutex_);
  const auto first = std::stable_partition(jobs_.begin(), jobs_.end(),
                                           [&](const Job& job) { return job.cache != &cache; });
  std::move(first, jobs_.end(), std::back_inserter(dropped));
  jobs_.erase(first, jobs_.end());
  const auto leaving = leaving_.insert(&cache);
  changed_.wait(lock, [&] { return writing_ != &cache; });
  leaving_.erase(leaving);
  watched_.erase(&cache);
  changed_.notify_all();
}

bool ColdTiers::abandoned(const KvCache* cache) const {
  const std::lock_guard lock(mutex_);
  return stopping_ || leaving_.contains(cache);
}

void ColdTiers::write_jobs() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      writing_ = job.cache;
    }
    if (base::caught([&] {
          write(job);
          make_room(*job.cache, *job.device);
        })) {
      log_.warning("blocks could not be stored in the cold tiers");
    }
    job = {};
    {
      const std::lock_guard lock(mutex_);
      writing_ = nullptr;
    }
    changed_.notify_all();
  }
}

/// False where none of the tiers that are written on eviction took what it wants.
bool ColdTiers::write(Job& job) {
  bool asked = false, taken = false;  // by tiers that are written on eviction
  const PathNames names = job.cache->names(job.blocks);
  const std::vector<Digest256> chain = prefix_chain(names.name_space, names.tokens);
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) {
    bool went_well = job.ticket->epochs[tier].has_value();
    if (went_well) {
      watch_generation(tier, *job.cache);
      went_well = write_to(tier, job, names, job.cache->facts(job.blocks), chain);
    }
    if (tiers_[tier]->write_policy() != WritePolicy::kOnEviction) continue;
    asked = true;
    taken = taken || went_well;
  }
  return taken || !asked;
}

/// A tier that was away may have lost what it had.
void ColdTiers::watch_generation(std::size_t tier, KvCache& cache) {
  const std::uint64_t generation = tiers_[tier]->store().generation();
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t>& seen = watched_[&cache].generations;
  seen.resize(tiers_.size());
  if (std::exchange(seen[tier], generation) == generation) return;
  cache.clear_stored(static_cast<std::uint8_t>(1u << tier));
}

bool ColdTiers::wants(std::size_t tier, const Job& job, const BlockFacts& block) const {
  if ((block.stored >> tier & 1) != 0) return false;
  switch (tiers_[tier]->write_policy()) {
    case WritePolicy::kThrough:
      return true;
    case WritePolicy::kSecondHit:
      return block.hits > 0;
    case WritePolicy::kOnEviction:
      return job.evicting.has_value();
  }
  return false;
}

/// False where the store refuses, or it ends early. What must not be stored is no failure.
bool ColdTiers::write_to(std::size_t tier, Job& job, const PathNames& names, const PathFacts& facts,
                         std::span<const Digest256> chain) {
  const std::size_t known = std::min(facts.blocks.size(), chain.size() - 1);
  std::size_t end = known;
  while (end > 0 && !wants(tier, job, facts.blocks[end - 1])) --end;

  const device::KvPoolView& pool = job.cache->pool();
  const std::size_t step = extent_blocks(pool.layout.block_bytes());
  for (std::size_t first = 0; first < end; first += step) {
    const std::size_t blocks = std::min(step, end - first);
    const auto seen = std::span(facts.blocks).subspan(first, blocks);
    if (std::ranges::none_of(seen, [&](const BlockFacts& b) { return wants(tier, job, b); })) {
      continue;
    }
    if (abandoned(job.cache)) return false;
    const auto before = job.evicting ? job.evicting : settled();
    bool answered = true;
    auto labels = labels_of(tier, job, facts, first, first + blocks, answered);
    // Looked at behind the epochs: what is still there was not forgotten before they were read.
    const PathFacts now = job.cache->facts(job.blocks);
    if (!before || settled() != before) return false;
    if (!answered) return false;
    if (!labels || now.blocks.size() < first + blocks) return true;
    // Those in front live as long or longer.
    std::chrono::seconds life = now.blocks[first + blocks - 1].life;
    if (life.count() <= 0) return true;
    if (life == std::chrono::seconds::max()) life = {};
    ExtentFacts extent;
    extent.first_block = static_cast<std::uint32_t>(first);
    extent.blocks = static_cast<std::uint32_t>(blocks);
    extent.block_bytes = pool.layout.block_bytes();
    extent.value_bytes = device::value_bytes(pool.layout.shape().type);
    extent.parent = chain[first];
    extent.labels = std::move(*labels);
    extent.tokens = std::span(names.tokens)
                        .subspan(first * device::kBlockTokens, blocks * device::kBlockTokens);
    const auto fill = [&](std::span<std::byte> payload) {
      for (std::size_t i = 0; i < blocks; ++i) {
        job.device->download(pool.block(job.blocks.blocks()[first + i]),
                             payload.subspan(i * extent.block_bytes, extent.block_bytes));
      }
    };
    const auto goes_on = [&] { return !abandoned(job.cache); };
    if (!tiers_[tier]->write(extent, chain, life, record_, fill, goes_on)) return false;
    job.cache->mark_stored(job.blocks, first, seen, static_cast<std::uint8_t>(1u << tier));
  }
  return true;
}

/// Of an extent, whose blocks may have come from different places: it goes with any tag of theirs,
/// and stays for sessions that all of them belong to. None where it must not be stored, or where
/// the store has not `answered` what epochs its labels have.
std::optional<EntryLabels> ColdTiers::labels_of(std::size_t tier, const Job& job,
                                                const PathFacts& facts, std::size_t first,
                                                std::size_t end, bool& answered) {
  std::set<std::uint32_t> sets;
  for (std::size_t i = first; i < end; ++i) sets.insert(facts.blocks[i].label_set);
  std::set<std::string> tag_names;
  std::optional<std::vector<std::string>> session_names;
  for (const std::uint32_t set : sets) {
    const LabelNames& names = facts.label_sets.at(set);
    if (names.any_tag) return std::nullopt;
    tag_names.insert(names.tags.begin(), names.tags.end());
    if (names.common) continue;
    if (!session_names) session_names = names.sessions;
    std::erase_if(*session_names, [&](const std::string& session) {
      return std::ranges::find(names.sessions, session) == names.sessions.end();
    });
    if (session_names->empty()) return std::nullopt;
  }
  LabelEpochs& epochs = tiers_[tier]->epochs();
  std::vector<LabelDigest> tags, sessions;
  for (const std::string& tag : tag_names) tags.push_back(as_digest(tag));
  if (session_names) {
    for (const std::string& session : *session_names) sessions.push_back(as_digest(session));
  }
  const auto all = epochs.current(tags);
  const auto any = epochs.current(sessions);
  answered = all && any;
  if (!answered) return std::nullopt;
  EntryLabels labels{*job.ticket->epochs[tier], *any};
  answered = epochs.hold({labels.all, {}});
  if (!answered) return std::nullopt;
  labels.all.insert(labels.all.end(), all->begin(), all->end());
  if (labels.all.size() > kMaxLabels || labels.any.size() > kMaxLabels) return std::nullopt;
  return labels;
}

std::vector<TierStats> ColdTiers::stats() const {
  std::vector<TierStats> stats;
  for (const auto& tier : tiers_) stats.push_back(tier->stats());
  return stats;
}

}  // namespace incipit::kv
