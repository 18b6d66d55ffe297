// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_KV_TIER_NODE_H_
#define INCIPIT_TESTS_KV_TIER_NODE_H_

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "fake_sequence.h"
#include "kv/prefix_cache_impl.h"
#include "sealed_records.h"
#include "support/fake_device.h"

namespace incipit::test {

/// Tokens of a prompt, by where their KV was found. `intact`: the right KV, down to the last byte.
struct Served {
  std::size_t in_memory = 0, from_tiers = 0;
  bool intact = true, refused = false;

  std::size_t found() const { return in_memory + from_tiers; }
};

/// A process with one engine: what an engine does with a PrefixCache that has tiers, with
/// FakeSequence for a model. Thread-safe where registry and cache are; needs no Catch.
class TierNode {
 public:
  explicit TierNode(PrefixCacheOptions options, const FakeClock& clock = {},
                    std::size_t blocks = 200)
      : cache_(device_, tiny_layout(),
               {.blocks = blocks,
                .poison_freed_blocks = true,
                .eviction = options.eviction,
                .time_to_live = options.time_to_live,
                .hot_sessions = options.hot_sessions}),
        registry_(std::make_shared<kv::CacheRegistry>(std::move(options), clock.steady())),
        registration_(registry_->add(cache_, device_, "")) {}

  static std::string name_space(const CacheLabels& labels) {
    return base::FieldWriter().add("salt", labels.salt).add("version", labels.version).str();
  }

  /// Runs a request and leaves behind what it has computed.
  Served serve(const Tokens& prompt, const CacheLabels& labels = {}) {
    return run(prompt, labels, true);
  }
  /// How much a request would find.
  Served look(const Tokens& prompt, const CacheLabels& labels = {}) {
    return run(prompt, labels, false);
  }

  /// What a sequence that has just started wants of the tiers; takes the room for it.
  kv::PrefixLoad::Options load_options(FakeSequence& sequence) {
    const std::size_t blocks = whole_blocks(sequence);
    cache_.extend(sequence.table(), blocks * device::kBlockTokens);
    kv::PrefixLoad::Options options;
    options.name_space = sequence.name_space();
    options.tokens = sequence.tokens();
    options.tokens.resize(blocks * device::kBlockTokens);
    options.known = sequence.table().committed();
    const auto table = sequence.table().blocks().first(blocks);
    options.target = {&device_, cache_.pool(), {table.begin(), table.end()}};
    options.on_change = [] {};
    options.begin = std::chrono::steady_clock::now();
    return options;
  }

  bool flush() { return tiers().flush(std::chrono::seconds(20)); }
  kv::CacheRegistry& registry() { return *registry_; }
  kv::ColdTiers& tiers() { return *registry_->tiers(); }
  kv::KvCache& cache() { return cache_; }
  FakeDevice& device() { return device_; }

 private:
  /// A token is left to compute.
  static std::size_t whole_blocks(const FakeSequence& sequence) {
    return (sequence.tokens().size() - 1) / device::kBlockTokens;
  }

  Served run(const Tokens& prompt, const CacheLabels& given, bool keep) {
    const std::string space = name_space(given);
    const CacheLabels labels = registry_->cache_labels(given);
    const auto ticket = registry_->begin_request(space, labels);
    FakeSequence sequence(device_, cache_, space);
    Served served;
    if (!sequence.start(prompt, 0, labels)) {
      tiers().leave(cache_);
      if (!sequence.start(prompt, 0, labels)) {
        served.refused = true;
        return served;
      }
    }
    served.in_memory = sequence.reused();
    load(sequence, *ticket, keep);
    served.from_tiers = sequence.computed() - sequence.reused();
    if (keep) {
      sequence.compute();
      sequence.commit();
    }
    served.intact = sequence.intact();
    if (keep) {
      const kv::BlockTable& table = sequence.table();
      tiers().store(cache_, device_, cache_.share(table, table.committed()), ticket);
    }
    return served;
  }

  void load(FakeSequence& sequence, const kv::TierTicket& ticket, bool keep) {
    if (whole_blocks(sequence) <= sequence.table().committed()) return;
    const auto load = tiers().load(ticket, load_options(sequence));
    if (load == nullptr) return;
    // Not longer: a gap would be computed now.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (;;) {
      sequence.arrived(load->advance(sequence.computed()));
      if (load->finished(sequence.computed()) || std::chrono::steady_clock::now() > end) break;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    load->cancel();
    if (!keep) return;
    sequence.commit();
    tiers().loaded(cache_, sequence.table(), load->take(static_cast<std::size_t>(-1)));
  }

  FakeDevice device_;
  kv::KvCache cache_;
  std::shared_ptr<kv::CacheRegistry> registry_;
  kv::CacheRegistry::Registration registration_;
};

/// Options with one tier, whose deadlines no clock passes that jumps by less than an hour.
inline PrefixCacheOptions with_tier(std::shared_ptr<Store> store,
                                    WritePolicy write = WritePolicy::kThrough) {
  PrefixCacheOptions options;
  options.tiers = {{.store = std::move(store),
                    .write = write,
                    .deadline = std::chrono::hours(1),
                    .write_deadline = std::chrono::hours(1)}};
  return options;
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_KV_TIER_NODE_H_
