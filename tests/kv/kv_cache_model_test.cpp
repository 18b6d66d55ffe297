// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fake_sequence.h"
#include "kv/kv_cache.h"
#include "reference_cache.h"
#include "support/catch.h"
#include "support/fake_device.h"

namespace incipit::test {
namespace {

/// Random steps on a KvCache and on the ReferenceCache. After each one, both must say the same, all
/// live sequences must find what their tokens demand in their blocks, and the cache must be whole.
class Model {
 public:
  Model(kv::KvCacheOptions options, std::uint64_t seed)
      : blocks_(options.blocks),
        cache_(device_, tiny_layout(), std::move(options)),
        reference_(blocks_),
        random_(seed) {}

  void step() {
    switch (pick(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        start();
        break;
      case 4:
      case 5:
      case 6:
        drop();
        break;
      case 7:
        if (pick(30) == 0) clear();
        break;
      default:
        advance();
    }
    check();
  }

  void drop_all() {
    while (!live_.empty()) drop();
    check();
  }

  CacheStats stats() const { return cache_.stats(); }

 private:
  struct Live {
    FakeSequence real;
    ReferenceCache::Table reference = {};
    std::size_t room = 0;  // tokens that may still be generated
  };

  std::size_t pick(std::size_t count) { return random_() % count; }

  /// Tokens of few kinds, so that unlike texts have common fronts.
  Tokens random_text(std::size_t length) {
    Tokens text(length);
    for (TokenId& token : text) token = static_cast<TokenId>(pick(2));
    return text;
  }

  /// The front of one of the texts that everybody uses, cut near a block's edge as often as not,
  /// and a tail of its own.
  Tokens random_prompt() {
    if (texts_.size() < 8) texts_.push_back(random_text(1 + pick(blocks_ * 8)));
    Tokens prompt = texts_[pick(texts_.size())];
    std::size_t cut = pick(prompt.size() + 1);
    if (pick(2) == 0) cut = std::min(cut / 16 * 16 + pick(3), prompt.size());
    if (pick(4) != 0) prompt.resize(cut);
    prompt = std::move(prompt) + random_text(pick(3) == 0 ? 0 : 1 + pick(20));
    return prompt.empty() ? random_text(1) : prompt;
  }

  void start() {
    if (live_.size() == 6) return;
    static constexpr const char* kNames[] = {"", "a", "a", "a", "b"};
    Live made{.real = FakeSequence(device_, cache_, kNames[pick(5)])};
    const Tokens prompt = random_prompt();
    made.room = pick(3) == 0 ? pick(50) : 0;
    const auto expected =
        reference_.start(made.real.name_space(), prompt, prompt.size() + made.room, made.reference);
    REQUIRE(made.real.start(prompt, made.room) == expected.has_value());
    if (!expected) return;
    REQUIRE(made.real.reused() == *expected);
    live_.push_back(std::make_unique<Live>(std::move(made)));
  }

  void advance() {
    if (live_.empty()) return;
    Live& live = *live_[pick(live_.size())];
    if (live.real.computed() == live.real.tokens().size() && live.room > 0) {
      live.real.generate(static_cast<TokenId>(pick(2)));
      --live.room;
    }
    live.real.compute(1 + pick(40));
    reference_.extend(live.reference, live.real.computed());
    if (pick(3) == 0) return;
    live.real.commit();
    Tokens computed = live.real.tokens();
    computed.resize(live.real.computed());
    reference_.commit(live.reference, computed);
  }

  void drop() {
    if (live_.empty()) return;
    std::swap(live_[pick(live_.size())], live_.back());
    live_.back()->real.drop();
    reference_.release(live_.back()->reference);
    live_.pop_back();
  }

  void clear() {
    cache_.clear();
    reference_.clear();
  }

  void check() const {
    cache_.check_integrity();
    for (const auto& live : live_) {
      if (!live->real.intact()) FAIL("a live sequence has lost its KV");
      if (live->real.table().committed() != live->reference.committed.size() / 16 ||
          live->real.table().blocks().size() != live->reference.blocks.size()) {
        FAIL("a table has other blocks than the model's");
      }
    }
    const auto all_of = [](const CacheStats& stats) {
      return std::array{stats.lookups,      stats.tokens_wanted, stats.tokens_reused,
                        stats.evictions,    stats.blocks_total,  stats.blocks_cached,
                        stats.blocks_in_use};
    };
    REQUIRE(all_of(cache_.stats()) == all_of(reference_.stats()));
  }

  std::size_t blocks_;
  FakeDevice device_;
  kv::KvCache cache_;
  ReferenceCache reference_;
  std::mt19937_64 random_;
  std::vector<Tokens> texts_;
  std::vector<std::unique_ptr<Live>> live_;
};

std::uint64_t weak_hash(std::uint64_t parent, std::span<const TokenId> tokens) {
  std::uint64_t sum = parent;
  for (const TokenId token : tokens) sum = sum * 31 + static_cast<std::uint32_t>(token);
  return sum % 256;
}

std::uint64_t constant_hash(std::uint64_t, std::span<const TokenId>) { return 7; }

TEST_CASE("whatever happens, each sequence has its own KV and the cache agrees with the model") {
  const std::size_t blocks = GENERATE(3u, 4u, 5u, 8u, 13u, 20u, 40u);
  const int hash = GENERATE(0, 1, 2);
  kv::KvCacheOptions options{.blocks = blocks, .poison_freed_blocks = true};
  if (hash == 1) options.hash = weak_hash;
  if (hash == 2) options.hash = constant_hash;
  CAPTURE(blocks, hash);

  Model model(options, blocks);
  for (int i = 0; i < 5000; ++i) model.step();
  model.drop_all();
  // That it happened at all.
  CHECK(model.stats().evictions > 50);
  CHECK(model.stats().tokens_reused > 200);
  CHECK(model.stats().blocks_in_use == 0);
}

}  // namespace
}  // namespace incipit::test
