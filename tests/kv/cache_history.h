// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_KV_CACHE_HISTORY_H_
#define INCIPIT_TESTS_KV_CACHE_HISTORY_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fake_sequence.h"
#include "kv/kv_cache.h"
#include "model_cache.h"
#include "support/fake_device.h"

namespace incipit::test {

/// Random steps on a KvCache and on the ModelCache. After each one, both must say the same, all
/// live sequences must find what their tokens demand in their blocks, and the cache must be whole.
///
/// A failed Catch assertion names the seed.
class CacheHistory {
 public:
  /// Pool, policy, quota and the rest follow from the seed.
  explicit CacheHistory(std::uint64_t seed);

  void step();
  /// Ends all sequences.
  void end();

  CacheStats stats() const { return cache_.stats(); }

 private:
  struct Live {
    std::unique_ptr<FakeSequence> sequence = {};  // none: just a holder of blocks
    kv::KvCache::Victim held = {};
    ModelCache::TablePtr model = {};
    std::size_t room = 0;  // tokens that may still be generated
    bool is_victim = false;
    const kv::BlockTable& table() const { return sequence ? sequence->table() : held.path; }
  };
  using LivePtr = std::unique_ptr<Live>;

  static kv::KvCacheOptions random_options(std::mt19937_64& random, const kv::Time& now);

  std::size_t pick(std::size_t count) { return random_() % count; }
  Tokens random_text(std::size_t length);
  Tokens random_prompt();
  std::string random_name_space();
  CacheLabels random_labels(const std::string& name_space);
  Live* random_live(bool with_sequence);
  static Tokens computed(const Live& live);

  void start();
  void advance();
  void fork();
  void share();
  void drop();
  void mark();
  void pin();
  void take_victims();
  void invalidate();
  void told();
  void check();
  void check_facts(const Live& live) const;

  std::mt19937_64 random_;
  kv::Time now_ = kv::Time(std::chrono::seconds(1000));
  kv::KvCacheOptions options_;
  FakeDevice device_;
  kv::KvCache cache_;
  ModelCache model_;
  std::uint64_t next_event_ = 0;
  std::vector<Tokens> texts_;
  std::vector<LivePtr> live_;
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_KV_CACHE_HISTORY_H_
