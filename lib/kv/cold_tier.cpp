// SPDX-License-Identifier: Apache-2.0
#include "kv/cold_tier.h"

#include <algorithm>

#include "base/check.h"
#include "kv/compression.h"

namespace incipit::kv {
namespace {

store::GuardOptions guard_options(const Tier& tier, const store::SteadyClock& clock) {
  store::GuardOptions options;
  options.get_deadline = tier.deadline;
  options.put_deadline = tier.write_deadline;
  options.clock = clock;
  return options;
}

// What an extent is worth against all before it.
constexpr double kNewest = 0.25;

void blend(std::optional<double>& average, double sample) {
  average = average ? *average + kNewest * (sample - *average) : sample;
}

}  // namespace

std::size_t extent_blocks(std::size_t block_bytes) noexcept {
  return std::clamp<std::size_t>(kExtentBytes / block_bytes, 1, kMaxExtentBlocks);
}

ColdTier::ColdTier(const Tier& tier, const Sealer& sealer, const store::SteadyClock& clock)
    : sealer_(sealer),
      write_(tier.write),
      compress_(tier.compress),
      clock_(clock),
      store_(tier.store, guard_options(tier, clock)),
      epochs_(store_, sealer, {.clock = clock, .budget = tier.deadline}) {
  if (compress_) compress({}, 1);  // says so where the build has no zstd
}

std::optional<Pointer> ColdTier::read_pointer(const Digest256& prefix) {
  const StoreKey name = sealer_.name(RecordKind::kPointer, prefix);
  StoreBuffer record;
  if (store_.get(name, record) != StoreStatus::kOk) return std::nullopt;
  const auto body = sealer_.open(record, RecordKind::kPointer, name);
  auto pointer = body ? kv::read_pointer(*body, prefix) : std::nullopt;
  if (!pointer) {
    ++rejected_;
  } else if (!epochs_.hold(pointer->labels)) {
    pointer.reset();
  }
  return pointer;
}

/// A prefix is stored front to back, so that where a block is, those in front of it mostly are. A
/// gap costs finding less.
std::optional<ColdTier::Found> ColdTier::find(std::span<const Digest256> chain, std::size_t known) {
  INCIPIT_CHECK(!chain.empty());
  std::optional<Found> best;
  std::size_t low = known, high = chain.size() - 1;  // stored blocks: at least, at most
  for (std::size_t probe = high; low < high; probe = low + (high - low + 1) / 2) {
    auto pointer = read_pointer(chain[probe]);
    if (pointer) {
      best = {probe, std::move(*pointer)};
      low = probe;
    } else {
      high = probe - 1;
    }
  }
  return best;
}

std::optional<Extent> ColdTier::read(const Digest256& extent, const ExtentFacts& wanted,
                                     StoreBuffer& buffer) {
  const StoreKey name = sealer_.name(RecordKind::kExtent, extent);
  if (store_.get(name, buffer) != StoreStatus::kOk) return std::nullopt;
  const auto arrived = store::now(clock_);
  const std::size_t stored = buffer.bytes().size();
  const std::size_t most = most_extent_bytes(extent_blocks(wanted.block_bytes), wanted.block_bytes);
  const auto body = sealer_.open(buffer, RecordKind::kExtent, name, most);
  auto found = body ? read_extent(*body, wanted) : std::nullopt;
  if (!found) {
    ++rejected_;
  } else if (!epochs_.hold(found->labels)) {
    found.reset();
  } else {
    const auto bytes = static_cast<double>(body->size());
    const std::chrono::duration<double> opening = store::now(clock_) - arrived;
    learn(static_cast<double>(stored) / bytes, opening.count() / bytes);
  }
  return found;
}

void ColdTier::learn(double stored_share, double opening) {
  const std::lock_guard lock(mutex_);
  blend(stored_share_, stored_share);
  blend(opening_, opening);
}

std::optional<double> ColdTier::seconds_per_byte() const {
  const auto rate = store_.bytes_per_second();
  if (!rate) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return stored_share_.value_or(1.0) / *rate + opening_.value_or(0.0);
}

bool ColdTier::write(const ExtentFacts& facts, std::span<const Digest256> chain,
                     std::chrono::seconds time_to_live, StoreBuffer& record, Fill fill,
                     base::FunctionRef<bool()> goes_on) {
  const std::size_t end = facts.first_block + facts.blocks;
  INCIPIT_CHECK(facts.blocks > 0 && end < chain.size());
  const auto put = [&](RecordKind kind, const Digest256& id, bool compressed = false) {
    const StoreKey name = sealer_.name(kind, id);
    sealer_.seal(record, kind, name, time_to_live, compressed);
    return goes_on() && store_.put(name, record.bytes(), time_to_live) == StoreStatus::kOk;
  };
  const std::span<std::byte> body =
      Sealer::make_room(record, facts.facts_bytes() + facts.payload_bytes());
  fill(write_extent(facts, body));
  const bool compressed = compress_ && Sealer::compress_body(record, facts.value_bytes);
  if (!put(RecordKind::kExtent, chain[end], compressed)) return false;
  // Readers search from the end, so the first pointer to be seen must not be the last one.
  for (std::size_t blocks = facts.first_block + 1; blocks <= end; ++blocks) {
    const Pointer pointer{chain[blocks], chain[end], facts.first_block, facts.blocks, facts.labels};
    write_pointer(pointer, Sealer::make_room(record, pointer.bytes()));
    if (!put(RecordKind::kPointer, chain[blocks])) return false;
  }
  return true;
}

TierStats ColdTier::stats() const {
  const store::StoreCounters counters = store_.counters();
  TierStats stats;
  stats.name = store_.name();
  stats.bytes = store_.size_bytes();
  stats.tokens_reused = tokens_reused_;
  stats.reads = counters.gets;
  stats.read_hits = counters.hits;
  stats.read_bytes = counters.bytes_read;
  stats.read_microseconds = counters.get_microseconds;
  stats.writes = counters.puts;
  stats.written_bytes = counters.bytes_written;
  stats.write_microseconds = counters.put_microseconds;
  stats.rejected = rejected_;
  stats.failures = counters.failures;
  stats.open = counters.breaker_open;
  return stats;
}

}  // namespace incipit::kv
