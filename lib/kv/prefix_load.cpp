// SPDX-License-Identifier: Apache-2.0
#include "kv/prefix_load.h"

#include <algorithm>
#include <utility>

#include "base/caught.h"
#include "base/check.h"

namespace incipit::kv {
namespace {

using device::kBlockTokens;

// Loading is left alone while it is expected to take less than this share of the time that
// computing would take; beyond that both work.
constexpr double kClearlyFaster = 0.25;
// What a request waits for the first extent at most, as a share of what it would compute.
constexpr double kPatience = 0.02;

std::chrono::steady_clock::duration seconds(double value) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(std::clamp(value, 0.0, 3600.0)));
}

}  // namespace

PrefixLoad::PrefixLoad(std::vector<ColdTier*> tiers, Options options)
    : tiers_(std::move(tiers)),
      options_(std::move(options)),
      extent_blocks_(extent_blocks(options_.target.pool.layout.block_bytes())),
      last_arrival_(options_.begin) {
  INCIPIT_CHECK(options_.tokens.size() % kBlockTokens == 0 &&
                options_.target.blocks.size() * kBlockTokens == options_.tokens.size());
}

std::size_t PrefixLoad::search() {
  std::size_t tier = 0;
  std::vector<Part> parts;
  // Whatever goes wrong, the search has an end, and the request goes on without what it sought.
  static_cast<void>(base::caught([&] {
    chain_ = prefix_chain(options_.name_space, options_.tokens);
    ColdTier::Found best;
    for (std::size_t i = 0; i < tiers_.size() && best.blocks + 1 < chain_.size(); ++i) {
      if (is_cancelled()) return;
      const auto found = tiers_[i]->find(chain_, std::max(options_.known, best.blocks));
      if (!found) continue;
      best = *found;
      tier = i;
    }
    parts = parts_of(best);
  }));
  const std::lock_guard lock(mutex_);
  searched_ = true;
  tier_ = tier;
  if (!cancelled_) {
    parts_ = std::move(parts);
    leave_out(taken_);
  }
  notify();
  return parts_.size();
}

/// What compute has taken before it was known what would come stays compute's: by now those blocks
/// may be shared, or replaced by others.
void PrefixLoad::leave_out(std::size_t tokens) {
  const std::size_t blocks = (tokens + kBlockTokens - 1) / kBlockTokens;
  std::erase_if(parts_, [&](const Part& part) { return part.end() <= blocks; });
  if (parts_.empty() || parts_.front().first >= blocks) return;
  parts_.front().blocks = parts_.front().end() - blocks;
  parts_.front().first = blocks;
}

bool PrefixLoad::is_cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

/// With mutex_ held, so that nobody is told of anything once cancel() has returned.
void PrefixLoad::notify() const {
  if (!cancelled_) options_.on_change();
}

/// Whole extents up to the one that the pointer names; what stands in front is known by its place.
std::vector<PrefixLoad::Part> PrefixLoad::parts_of(const ColdTier::Found& found) const {
  std::vector<Part> parts;
  const Pointer& last = found.pointer;
  if (found.blocks <= options_.known || last.first_block % extent_blocks_ != 0 ||
      last.first_block >= found.blocks ||
      found.blocks - last.first_block > std::min<std::size_t>(last.blocks, extent_blocks_)) {
    return parts;
  }
  for (std::size_t start = options_.known / extent_blocks_ * extent_blocks_; start < found.blocks;
       start += extent_blocks_) {
    Part part;
    part.extent_first = start;
    part.first = std::max(start, options_.known);
    part.blocks = std::min(start + extent_blocks_, found.blocks) - part.first;
    part.extent = start == last.first_block ? last.extent : chain_[start + extent_blocks_];
    parts.push_back(part);
  }
  return parts;
}

void PrefixLoad::fetch() {
  StoreBuffer buffer;
  while (fetch_one(buffer)) {
  }
}

ExtentFacts PrefixLoad::wanted_of(const Part& part) const {
  ExtentFacts wanted;
  wanted.first_block = static_cast<std::uint32_t>(part.extent_first);
  wanted.blocks = static_cast<std::uint32_t>(part.end() - part.extent_first);
  wanted.block_bytes = options_.target.pool.layout.block_bytes();
  wanted.parent = chain_[part.extent_first];
  wanted.tokens = std::span(options_.tokens)
                      .subspan(part.extent_first * kBlockTokens, wanted.blocks * kBlockTokens);
  return wanted;
}

void PrefixLoad::upload(const Part& part, base::Bytes payload) const {
  const std::size_t bytes = options_.target.pool.layout.block_bytes();
  payload = payload.subspan((part.first - part.extent_first) * bytes);
  for (std::size_t block = part.first; block < part.end(); ++block) {
    options_.target.device->upload(payload.first(bytes),
                                   options_.target.pool.block(options_.target.blocks[block]));
    payload = payload.subspan(bytes);
  }
}

/// The last extent that is still wanted. False where there is none.
bool PrefixLoad::fetch_one(StoreBuffer& buffer) {
  std::unique_lock lock(mutex_);
  const auto at = std::ranges::find(parts_.rbegin(), parts_.rend(), State::kWanted, &Part::state);
  if (at == parts_.rend() || cancelled_) return false;
  Part& part = *at;  // parts_ does not change any more
  part.state = State::kFetching;
  ColdTier& tier = *tiers_[tier_];
  lock.unlock();
  std::optional<Extent> extent;
  bool arrived = !base::caught([&] { extent = tier.read(part.extent, wanted_of(part), buffer); });
  lock.lock();
  if (part.state != State::kFetching) return true;  // compute took it meanwhile
  if (arrived && extent) {
    part.state = State::kUploading;
    ++uploads_;
    lock.unlock();
    arrived = !base::caught([&] { upload(part, extent->payload); });
    lock.lock();
    --uploads_;
    uploaded_.notify_all();
  }
  if (arrived && extent) {
    part.state = State::kLoaded;
    arrived_blocks_ += part.blocks;
    last_arrival_ = std::chrono::steady_clock::now();
    part.labels = std::move(extent->labels);
  } else {
    part.state = State::kGone;
  }
  notify();
  return true;
}

std::size_t PrefixLoad::advance(std::size_t computed) const {
  const std::lock_guard lock(mutex_);
  for (const Part& part : parts_) {
    if (part.first * kBlockTokens > computed) break;
    if (part.state == State::kLoaded) computed = std::max(computed, part.end() * kBlockTokens);
  }
  return computed;
}

std::size_t PrefixLoad::claim(std::size_t computed, std::size_t want) {
  const std::lock_guard lock(mutex_);
  for (Part& part : parts_) {
    const std::size_t first = part.first * kBlockTokens;
    if (part.end() * kBlockTokens <= computed) continue;
    if (first >= computed + want) break;
    if (part.state == State::kUploading || part.state == State::kLoaded) {
      want = first > computed ? first - computed : 0;
      break;
    }
    part.state = State::kGone;
  }
  taken_ = std::max(taken_, computed + want);
  return want;
}

std::size_t PrefixLoad::wanted_blocks() const {
  std::size_t blocks = 0;
  for (const Part& part : parts_) {
    if (part.state == State::kWanted || part.state == State::kFetching) blocks += part.blocks;
  }
  return blocks;
}

/// What the rest is expected to take: by what has arrived, else by what the tier is known for. With
/// neither, loading is assumed to win.
double PrefixLoad::seconds_left(Time now) const {
  const auto blocks = static_cast<double>(wanted_blocks());
  if (arrived_blocks_ > 0) {
    const std::chrono::duration<double> spent = now - options_.begin;
    return spent.count() / static_cast<double>(arrived_blocks_) * blocks;
  }
  const auto per_byte = tiers_[tier_]->seconds_per_byte();
  if (!per_byte) return 0.0;
  const auto bytes = static_cast<double>(options_.target.pool.layout.block_bytes());
  const double latency = tiers_[tier_]->store().latency_seconds().value_or(0.0);
  return blocks * bytes * *per_byte + latency * static_cast<double>(parts_.size());
}

PrefixLoad::Time PrefixLoad::wait_until(std::size_t computed, std::size_t prompt_tokens,
                                        double rate, Time now) const {
  const std::lock_guard lock(mutex_);
  const double compute_seconds =
      static_cast<double>(prompt_tokens - std::min(computed, prompt_tokens)) / rate;
  const auto patience = std::max<std::chrono::steady_clock::duration>(
      seconds(kPatience * compute_seconds), options_.least_patience);
  if (searched_ && uploads_ == 0 && wanted_blocks() == 0) return options_.begin;  // nothing comes
  if (searched_ && seconds_left(now) > kClearlyFaster * compute_seconds) {
    return options_.begin + options_.least_patience;
  }
  if (arrived_blocks_ == 0) return options_.begin + patience;
  // It keeps coming at the pace that it has had, or compute begins.
  const auto pace = (last_arrival_ - options_.begin) / static_cast<long>(arrived_blocks_) *
                    static_cast<long>(extent_blocks_);
  return last_arrival_ + std::max(patience, 4 * pace);
}

bool PrefixLoad::finished(std::size_t computed) const {
  const std::lock_guard lock(mutex_);
  if (computed >= options_.tokens.size()) return true;
  return searched_ && std::ranges::all_of(parts_, [&](const Part& part) {
           return part.state == State::kGone ||
                  (part.state == State::kLoaded && part.end() * kBlockTokens <= computed);
         });
}

void PrefixLoad::cancel() {
  std::unique_lock lock(mutex_);
  cancelled_ = true;
  for (Part& part : parts_) {
    if (part.state == State::kWanted || part.state == State::kFetching) part.state = State::kGone;
  }
  uploaded_.wait(lock, [this] { return uploads_ == 0; });
}

PrefixLoad::Result PrefixLoad::take(std::size_t computed) {
  const std::lock_guard lock(mutex_);
  Result result;
  result.tier = tiers_[tier_];
  for (Part& part : parts_) {
    if (part.state != State::kLoaded || part.end() * kBlockTokens > computed) continue;
    if (std::exchange(part.taken, true)) continue;
    const std::size_t known = std::max(part.first * kBlockTokens, options_.known_tokens);
    result.loaded.push_back(
        {part.first, part.blocks, part.end() * kBlockTokens - known, part.labels});
  }
  return result;
}

}  // namespace incipit::kv
