// SPDX-License-Identifier: Apache-2.0
#include "cache_history.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "support/catch.h"

namespace incipit::test {
namespace {

using std::chrono::seconds;

constexpr std::size_t kMaxLive = 7;
constexpr std::array kNameSpaces = {"A1", "A1", "A2", "B1"};  // see ModelCache::salt()

}  // namespace

kv::KvCacheOptions CacheHistory::random_options(std::mt19937_64& random, const kv::Time& now) {
  static constexpr std::size_t kBlocks[] = {3, 4, 6, 9, 14, 24, 40, 64};
  kv::KvCacheOptions options{.blocks = kBlocks[random() % std::size(kBlocks)],
                             .poison_freed_blocks = true,
                             .eviction = static_cast<Eviction>(random() % 4),
                             .event_buffer = 1024,
                             .clock = [&now] { return now; }};
  if (random() % 3 == 0) options.time_to_live = seconds(100);
  if (random() % 3 == 0) options.owner_quota_blocks = 1 + options.blocks / 3;
  if (random() % 3 == 0) options.hot_sessions = 1 + random() % 3;
  return options;
}

CacheHistory::CacheHistory(std::uint64_t seed)
    : random_(seed),
      options_(random_options(random_, now_)),
      cache_(device_, tiny_layout(), options_),
      model_(options_) {}

void CacheHistory::step() {
  if (pick(4) == 0) now_ += seconds(pick(4));
  switch (pick(24)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      start();
      break;
    case 5:
    case 6:
    case 7:
    case 8:
      drop();
      break;
    case 9:
      fork();
      break;
    case 10:
      share();
      break;
    case 11:
      mark();
      break;
    case 12:
      if (pick(3) == 0) pin();
      break;
    case 13:
      if (pick(3) == 0) take_victims();
      break;
    case 14:
      if (pick(3) == 0) invalidate();
      break;
    default:
      advance();
  }
  check();
}

void CacheHistory::end() {
  while (!live_.empty()) {
    drop();
    check();
  }
}

/// Tokens of few kinds, so that unlike texts have common fronts.
Tokens CacheHistory::random_text(std::size_t length) {
  Tokens text(length);
  for (TokenId& token : text) token = static_cast<TokenId>(pick(2));
  return text;
}

/// The front of one of the texts that everybody uses, cut near a block's edge as often as not, and
/// a tail of its own.
Tokens CacheHistory::random_prompt() {
  if (texts_.size() < 8) texts_.push_back(random_text(1 + pick(options_.blocks * 8)));
  Tokens prompt = texts_[pick(texts_.size())];
  std::size_t cut = pick(prompt.size() + 1);
  if (pick(2) == 0) cut = std::min(cut / 16 * 16 + pick(3), prompt.size());
  if (pick(4) != 0) prompt.resize(cut);
  prompt = std::move(prompt) + random_text(pick(3) == 0 ? 0 : 1 + pick(20));
  return prompt.empty() ? random_text(1) : prompt;
}

std::string CacheHistory::random_name_space() { return kNameSpaces[pick(kNameSpaces.size())]; }

CacheLabels CacheHistory::random_labels(const std::string& name_space) {
  if (name_space.empty()) return {};
  CacheLabels labels{.salt = ModelCache::salt(name_space),
                     .version = ModelCache::version(name_space)};
  if (pick(3) != 0) labels.session = std::string(1, static_cast<char>('p' + pick(5)));
  while (pick(3) == 0) labels.tags.emplace_back(1, static_cast<char>('x' + pick(3)));
  if (pick(4) == 0) labels.time_to_live = seconds(1 + pick(60));
  while (pick(4) == 0) {
    const std::size_t first = pick(40);
    labels.retention.push_back({.first_token = first,
                                .end_token = first + 1 + pick(100),
                                .priority = static_cast<CachePriority>(pick(3)),
                                .duration = seconds(pick(2) * pick(40))});
  }
  return labels;
}

CacheHistory::Live* CacheHistory::random_live(bool with_sequence) {
  if (live_.empty()) return nullptr;
  Live* const live = live_[pick(live_.size())].get();
  return live->sequence == nullptr && with_sequence ? nullptr : live;
}

Tokens CacheHistory::computed(const Live& live) {
  Tokens tokens = live.sequence->tokens();
  tokens.resize(live.sequence->computed());
  return tokens;
}

/// Tells the model what the real cache has told.
void CacheHistory::told() {
  const kv::EventLog::Batch batch = cache_.events(next_event_, SIZE_MAX);
  if (batch.lost) FAIL("one step has more events than are kept");
  next_event_ = batch.next;
  model_.begin(now_, batch.events);
}

void CacheHistory::start() {
  if (live_.size() >= kMaxLive) return;
  auto made = std::make_unique<Live>();
  const std::string name_space = pick(8) == 0 ? "" : random_name_space();
  made->sequence = std::make_unique<FakeSequence>(device_, cache_, name_space);
  const Tokens prompt = random_prompt();
  const CacheLabels labels = random_labels(name_space);
  made->room = pick(3) == 0 ? pick(50) : 0;
  const bool started = made->sequence->start(prompt, made->room, labels);
  told();
  const auto expected =
      model_.start(name_space, labels, prompt, prompt.size() + made->room, made->model);
  REQUIRE(started == expected.has_value());
  if (!started) return;
  REQUIRE(made->sequence->reused() == *expected);
  live_.push_back(std::move(made));
}

void CacheHistory::advance() {
  Live* const live = random_live(true);
  if (live == nullptr) return;
  FakeSequence& sequence = *live->sequence;
  if (sequence.computed() == sequence.tokens().size() && live->room > 0) {
    sequence.generate(static_cast<TokenId>(pick(2)));
    --live->room;
  }
  sequence.compute(1 + pick(40));
  told();
  model_.extend(*live->model, sequence.computed());
  model_.end();
  if (pick(3) == 0) return;
  sequence.commit();
  told();
  model_.commit(*live->model, computed(*live));
}

void CacheHistory::fork() {
  Live* const live = random_live(true);
  if (live == nullptr || live_.size() >= kMaxLive) return;
  live->sequence->commit();
  told();
  model_.commit(*live->model, computed(*live));
  model_.end();
  auto made = std::make_unique<Live>();
  made->sequence = std::make_unique<FakeSequence>(device_, cache_, "");
  made->room = pick(40);
  const bool forked = live->sequence->fork(*made->sequence, made->room);
  told();
  const std::size_t tokens = live->sequence->computed();
  made->model = model_.fork(*live->model, tokens, tokens + made->room);
  REQUIRE(forked == (made->model != nullptr));
  if (forked) live_.push_back(std::move(made));
}

void CacheHistory::share() {
  Live* const live = random_live(false);
  if (live == nullptr || live_.size() >= kMaxLive) return;
  const std::size_t blocks = pick(live->table().committed() + 1);
  auto made = std::make_unique<Live>();
  made->held.path = cache_.share(live->table(), blocks);
  told();
  made->model = model_.share(*live->model, blocks);
  live_.push_back(std::move(made));
}

void CacheHistory::drop() {
  if (live_.empty()) return;
  std::swap(live_[pick(live_.size())], live_.back());
  const LivePtr live = std::move(live_.back());
  live_.pop_back();
  const bool evicts = live->is_victim && pick(4) != 0;
  const std::size_t blocks = live->held.blocks;
  if (evicts) {
    cache_.evict(std::move(live->held));
  } else {
    live->sequence.reset();
    live->held = {};
  }
  told();
  if (evicts) {
    model_.evict(std::move(live->model), blocks);
  } else {
    model_.release(std::move(live->model));
  }
}

void CacheHistory::mark() {
  Live* const live = random_live(false);
  if (live == nullptr) return;
  const std::size_t first = pick(4), count = pick(6);
  const auto bits = static_cast<std::uint8_t>(1 << pick(8));
  cache_.mark_stored(live->table(), first, count, bits);
  model_.mark_stored(*live->model, first, count, bits);
}

void CacheHistory::pin() {
  const std::string name_space = random_name_space();
  const Tokens prompt = random_prompt();
  // Off the times at which anything else ends.
  const kv::Time until = now_ + seconds(pick(20)) + std::chrono::milliseconds(500);
  cache_.pin(name_space, prompt, until);
  told();
  model_.pin(name_space, prompt, until);
}

void CacheHistory::take_victims() {
  const std::size_t wanted = 1 + pick(4);
  std::vector<kv::KvCache::Victim> victims =
      pick(3) == 0 ? cache_.cold_paths(wanted) : cache_.victims(wanted);
  told();
  model_.begin_victims();
  std::size_t blocks = 0;
  for (kv::KvCache::Victim& victim : victims) {
    auto made = std::make_unique<Live>();
    const kv::PathNames names = cache_.names(victim.path);
    blocks += victim.blocks;
    REQUIRE(victim.blocks > 0);
    made->model = model_.hold_victim(names.name_space, names.tokens);
    made->held = std::move(victim);
    made->is_victim = true;
    live_.push_back(std::move(made));
  }
  REQUIRE(blocks <= wanted);
}

void CacheHistory::invalidate() {
  const std::string name_space = random_name_space();
  const std::string session(1, static_cast<char>('p' + pick(5)));
  const std::string tag(1, static_cast<char>('x' + pick(3)));
  Tokens prefix = random_prompt();
  prefix.resize(pick(prefix.size() + 1));
  const std::string salt = ModelCache::salt(name_space), version = ModelCache::version(name_space);
  const auto both = [&](auto&& real, auto&& expected) {
    const std::size_t removed = real();
    told();
    REQUIRE(removed == expected());
  };
  switch (pick(20)) {
    case 0:
      cache_.clear();
      told();
      return model_.clear();
    case 1:
      return both([&] { return cache_.invalidate_owner(salt); },
                  [&] { return model_.invalidate_owner(salt); });
    case 2:
      return both([&] { return cache_.invalidate_version(salt, version); },
                  [&] { return model_.invalidate_version(salt, version); });
    case 3:
      return both([&] { return cache_.invalidate_name_space(name_space); },
                  [&] { return model_.invalidate_name_space(name_space); });
    case 4:
    case 5:
    case 6:
      return both([&] { return cache_.invalidate_tag(tag); },
                  [&] { return model_.invalidate_tag(tag); });
    case 7:
    case 8:
    case 9:
      return both([&] { return cache_.invalidate_session(session); },
                  [&] { return model_.invalidate_session(session); });
    default:
      return both([&] { return cache_.invalidate_prefix(name_space, prefix); },
                  [&] { return model_.invalidate_prefix(name_space, prefix); });
  }
}

void CacheHistory::check_facts(const Live& live) const {
  const kv::PathFacts facts = cache_.facts(live.table());
  const auto path = model_.path(*live.model);
  if (facts.blocks.size() != path.size()) FAIL("a table is indexed as far as the model says");
  for (std::size_t i = 0; i < path.size(); ++i) {
    const kv::BlockFacts& block = facts.blocks[i];
    const kv::LabelNames& names = facts.label_sets[block.label_set];
    const ModelCache::Labels labels{{names.sessions.begin(), names.sessions.end()},
                                    names.common,
                                    {names.tags.begin(), names.tags.end()}};
    if (block.hits != path[i]->hits || block.stored != path[i]->stored) FAIL("hits and marks");
    if (!(labels == path[i]->labels)) FAIL("a block has other labels than the model's");
  }
}

void CacheHistory::check() {
  model_.end();
  cache_.check_integrity();
  for (const LivePtr& live : live_) {
    if (live->sequence != nullptr && !live->sequence->intact()) {
      FAIL("a live sequence has lost its KV");
    }
    if (live->table().committed() != live->model->committed.size() / 16 ||
        live->table().blocks().size() != live->model->blocks.size()) {
      FAIL("a table has other blocks than the model's");
    }
  }
  if (!live_.empty()) check_facts(*live_[pick(live_.size())]);
  const auto all_of = [](const CacheStats& stats) {
    return std::array{stats.lookups,      stats.tokens_wanted, stats.tokens_reused, stats.evictions,
                      stats.blocks_total, stats.blocks_cached, stats.blocks_in_use};
  };
  REQUIRE(all_of(cache_.stats()) == all_of(model_.stats()));
  for (const char* const salt : {"A", "B"}) {
    REQUIRE(cache_.owner_blocks(salt) == model_.owner_blocks(salt));
  }
}

}  // namespace incipit::test
