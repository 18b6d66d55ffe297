// SPDX-License-Identifier: Apache-2.0
#include "model_cache.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/hash.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

constexpr int kPinnedRank = 3;

}  // namespace

void ModelCache::must(bool holds, const char* what) {
  if (!holds) FAIL(what);
}

Tokens ModelCache::front(const Tokens& tokens, std::size_t count) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)};
}

bool ModelCache::begins_with(const Tokens& tokens, const Tokens& prefix) {
  return prefix.size() <= tokens.size() && std::equal(prefix.begin(), prefix.end(), tokens.begin());
}

std::uint64_t ModelCache::identity(const Key& key) {
  std::uint64_t hash = base::xxh3_64(base::as_bytes(key.first));
  for (std::size_t i = 0; i < key.second.size(); i += kBlock) {
    hash = base::xxh3_64(std::as_bytes(std::span(key.second).subspan(i, kBlock)), hash);
  }
  return hash;
}

void ModelCache::begin(kv::Time now, const std::vector<CacheEvent>& events) {
  must(events_.empty(), "a step was not ended");
  now_ = now;
  events_.assign(events.begin(), events.end());
}

void ModelCache::end() const { must(events_.empty(), "something happened that is not expected"); }

CacheEvent ModelCache::next_event() {
  must(!events_.empty(), "something did not happen that is expected");
  const CacheEvent event = events_.front();
  events_.pop_front();
  return event;
}

ModelCache::At ModelCache::next_removed() {
  const CacheEvent event = next_event();
  must(event.kind == CacheEvent::Kind::kRemoved, "a removal is expected");
  const auto found = identities_.find(event.identity);
  must(found != identities_.end(), "what is removed was not there");
  return found->second;
}

ModelCache::Entry* ModelCache::find(const std::string& name_space, const Tokens& tokens,
                                    std::size_t length) {
  if (length > tokens.size()) return nullptr;
  const auto at = entries_.find({name_space, front(tokens, length)});
  return at == entries_.end() ? nullptr : &at->second;
}

// Descendants of a prefix follow it in the map's order.
bool ModelCache::is_leaf(At at) const {
  const auto next = std::next(at);
  return next == entries_.end() || next->first.first != at->first.first ||
         !begins_with(next->first.second, at->first.second);
}

int ModelCache::rank(const Entry& entry) const {
  if (entry.pinned_until != kv::Time::min()) return kPinnedRank;
  const Labels& labels = entry.labels;
  if (options_.hot_sessions > 0 && !labels.common && labels.sessions.size() == 1) {
    const std::size_t hot = std::min(options_.hot_sessions, sessions_.size());
    const auto first = sessions_.end() - static_cast<std::ptrdiff_t>(hot);
    if (std::find(first, sessions_.end(), *labels.sessions.begin()) == sessions_.end()) return 0;
  }
  return static_cast<int>(entry.priority);
}

std::size_t ModelCache::idle() const {
  return static_cast<std::size_t>(std::count_if(
      entries_.begin(), entries_.end(), [](const auto& entry) { return !entry.second.held(); }));
}

std::size_t ModelCache::owner_blocks(const std::string& salt_of_all) const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(),
                    [&](const auto& entry) { return salt(entry.first.first) == salt_of_all; }));
}

/// Tables whose path is broken index nothing more.
void ModelCache::erase(At at) {
  for (const auto& known : tables_) {
    const TablePtr table = known.lock();
    if (table->name_space != at->first.first) continue;
    if (begins_with(table->committed, at->first.second)) table->cut = true;
  }
  identities_.erase(identity(at->first));
  entries_.erase(at);
}

/// The next event is an eviction; of an owner's block, where one is named.
void ModelCache::evict_for(const std::string* owner, bool check_rank) {
  const At victim = next_removed();
  must(is_candidate(victim), "what is evicted is held or no leaf");
  must(owner == nullptr || salt(victim->first.first) == *owner, "another owner's block is evicted");
  for (At at = entries_.begin(); check_rank && at != entries_.end(); ++at) {
    if (owner != nullptr && salt(at->first.first) != *owner) continue;
    if (rank(at->second) >= rank(victim->second) || !is_candidate(at)) continue;
    FAIL("a block of a lower rank should have been evicted");
  }
  ++counters_.evictions;
  erase(victim);
}

bool ModelCache::is_over_quota(const std::string& salt_of_all) {
  if (options_.owner_quota_blocks == 0) return false;
  if (owner_blocks(salt_of_all) <= options_.owner_quota_blocks) return false;
  for (At at = entries_.begin(); at != entries_.end(); ++at) {
    if (salt(at->first.first) != salt_of_all || !is_candidate(at)) continue;
    if (rank(at->second) < kPinnedRank) return true;
  }
  return false;
}

void ModelCache::enforce(const std::string& salt_of_all) {
  while (is_over_quota(salt_of_all)) evict_for(&salt_of_all);
}

void ModelCache::tick() {
  for (;;) {
    kv::Time next = kv::Time::max();
    for (const auto& [key, entry] : entries_) {
      next = std::min(next, entry.expires);
      if (entry.pinned_until != kv::Time::min()) next = std::min(next, entry.pinned_until);
      if (entry.priority != CachePriority::kNormal) next = std::min(next, entry.priority_until);
    }
    if (next > now_) return;
    end_deadlines(next);
  }
}

/// Ends what ends at `deadline`, in any order.
void ModelCache::end_deadlines(kv::Time deadline) {
  std::set<Key> expired;
  std::set<std::string> owners;
  for (auto& [key, entry] : entries_) {
    const bool pin_ends = entry.pinned_until == deadline;
    const bool priority_ends =
        entry.priority != CachePriority::kNormal && entry.priority_until == deadline;
    if (!pin_ends && !priority_ends && entry.expires != deadline) continue;
    if (entry.expires <= now_) {
      for (const auto& [other, ignored] : entries_) {
        if (other.first == key.first && begins_with(other.second, key.second)) {
          expired.insert(other);
        }
      }
      continue;
    }
    // What ends at one time for a node ends for it at once.
    if (entry.pinned_until <= now_) entry.pinned_until = kv::Time::min();
    if (entry.priority != CachePriority::kNormal && entry.priority_until <= now_) {
      entry.priority = CachePriority::kNormal;
      entry.priority_until = kv::Time::max();
    }
    owners.insert(salt(key.first));
  }
  const auto over_quota = [this](const std::string& owner) { return is_over_quota(owner); };
  for (;;) {
    const bool over = std::any_of(owners.begin(), owners.end(), over_quota);
    if (expired.empty() && !over) return;
    must(!events_.empty(), "what has expired was not removed");
    const auto known = identities_.find(events_.front().identity);
    must(known != identities_.end(), "what is removed was not there");
    if (expired.erase(known->second->first) > 0) {
      const At removed = next_removed();
      must(is_leaf(removed), "a node went before its descendants");
      erase(removed);
    } else {
      const std::string owner = salt(known->second->first.first);
      must(over_quota(owner), "something was evicted without need");
      evict_for(&owner, false);
    }
  }
}

ModelCache::TablePtr ModelCache::add_table(Table table) {
  TablePtr made = std::make_shared<Table>(std::move(table));
  tables_.push_back(made);
  return made;
}

std::optional<std::size_t> ModelCache::start(const std::string& name_space,
                                             const CacheLabels& labels, const Tokens& tokens,
                                             std::size_t total, TablePtr& table) {
  const std::size_t needed = (total + kBlock - 1) / kBlock;
  if (needed > options_.blocks) return std::nullopt;
  tick();
  Table made{.name_space = name_space, .given = labels, .started = now_};
  made.indexed = !name_space.empty();
  const std::chrono::seconds life =
      labels.time_to_live.count() > 0 ? labels.time_to_live : options_.time_to_live;
  if (made.indexed && life.count() > 0) made.expires = now_ + life;

  std::vector<Entry*> path;
  while (Entry* entry =
             made.indexed ? find(name_space, tokens, (path.size() + 1) * kBlock) : nullptr) {
    if ((path.size() + 1) * kBlock >= tokens.size()) break;
    path.push_back(entry);
  }
  const std::size_t whole = path.size() * kBlock;
  const std::size_t fresh = needed - path.size();
  std::size_t unheld = 0;
  for (const Entry* entry : path) unheld += entry->held() ? 0u : 1u;
  if (free() + idle() < promised_ + fresh + unheld) return std::nullopt;

  for (const Entry* entry : path) made.blocks.push_back(entry->block);
  made.committed = front(tokens, whole);
  made.reserved = fresh;
  promised_ += fresh;
  use_session(name_space.empty() ? "" : labels.session);
  for (std::size_t i = 0; i < path.size(); ++i) touch(*path[i], made, i);
  table = add_table(std::move(made));
  std::size_t run = 0;
  if (!name_space.empty()) {
    const At source = longest_run(name_space, tokens, whole, run);
    if (run > 0) copy(source, *table);
    ++counters_.lookups;
    counters_.tokens_wanted += tokens.size();
    counters_.tokens_reused += whole + run;
  }
  return whole + run;
}

ModelCache::At ModelCache::longest_run(const std::string& name_space, const Tokens& tokens,
                                       std::size_t whole, std::size_t& run) {
  if (tokens.size() == whole + kBlock) {
    // All is known: the block itself, not one that is like it.
    const At exact = entries_.find({name_space, tokens});
    if (exact != entries_.end()) {
      run = kBlock - 1;
      return exact;
    }
  }
  At best = entries_.end();
  for (At at = entries_.begin(); at != entries_.end(); ++at) {
    const auto& [entry_space, prefix] = at->first;
    if (entry_space != name_space || prefix.size() != whole + kBlock) continue;
    const std::size_t limit = std::min(tokens.empty() ? 0 : tokens.size() - 1, prefix.size());
    std::size_t common = 0;
    while (common < limit && tokens[common] == prefix[common]) ++common;
    if (common <= whole || common - whole < run) continue;
    if (common - whole == run && best->second.created > at->second.created) continue;
    run = common - whole;
    best = at;
  }
  return best;
}

void ModelCache::copy(At source, Table& table) {
  if (!source->second.held() && free() == 0 && idle() == 1) {
    must(next_removed() == source, "the block itself changes hands");
    ++counters_.evictions;
    give(source->second.block, table);
    erase(source);
    return;
  }
  const BlockPtr held = source->second.block;
  take(table);
}

void ModelCache::take(Table& table) {
  if (free() == 0) evict_for(nullptr);
  give(BlockPtr(new Block,
                [this](Block* block) {
                  --live_;
                  delete block;
                }),
       table);
  ++live_;
}

void ModelCache::give(BlockPtr block, Table& table) {
  table.blocks.push_back(std::move(block));
  --table.reserved;
  --promised_;
}

void ModelCache::use_session(const std::string& session) {
  if (session.empty()) return;
  std::erase(sessions_, session);
  sessions_.push_back(session);
}

std::pair<CachePriority, kv::Time> ModelCache::retention(const Table& table, std::size_t at) const {
  std::pair<CachePriority, kv::Time> last{CachePriority::kNormal, kv::Time::max()};
  for (const CacheRetention& given : table.given.retention) {
    if (given.first_token / kBlock > at || given.end_token <= at * kBlock) continue;
    const bool ends = given.duration.count() > 0;
    last = {given.priority, ends ? table.started + given.duration : kv::Time::max()};
  }
  return last;
}

void ModelCache::touch(Entry& entry, const Table& table, std::size_t at) {
  ++entry.hits;
  Labels all = entry.labels;
  all.tags.insert(table.given.tags.begin(), table.given.tags.end());
  if (table.given.session.empty()) all.common = true;
  if (!all.common) all.sessions.insert(table.given.session);
  if (all.common) all.sessions.clear();
  if (!(all == entry.labels)) entry.stored = 0;
  entry.labels = all;
  entry.expires = std::max(entry.expires, table.expires);
  const auto [priority, until] = retention(table, at);
  if (priority > entry.priority) {
    entry.priority = priority;
    entry.priority_until = until;
  } else if (priority == entry.priority) {
    entry.priority_until = std::max(entry.priority_until, until);
  }
}

void ModelCache::extend(Table& table, std::size_t tokens) {
  while (table.blocks.size() * kBlock < tokens) take(table);
}

void ModelCache::commit(Table& table, const Tokens& tokens) {
  if (!table.indexed || table.committed.size() + kBlock > tokens.size()) return;
  tick();
  const auto concerns = [&](const Tokens& prefix) { return begins_with(tokens, prefix); };
  if (table.cut || table.expires <= now_ ||
      std::any_of(table.cut_prefixes.begin(), table.cut_prefixes.end(), concerns)) {
    table.indexed = false;
    return;
  }
  while (table.committed.size() + kBlock <= tokens.size()) {
    const std::size_t at = table.committed.size() / kBlock;
    BlockPtr& own = table.blocks[at];
    const std::uint64_t parent = identity({table.name_space, table.committed});
    table.committed = front(tokens, (at + 1) * kBlock);
    const auto [entry, is_new] = entries_.try_emplace({table.name_space, table.committed});
    if (!is_new) {
      if (own == entry->second.block) continue;
      own = entry->second.block;
      touch(entry->second, table, at);
      continue;
    }
    Entry& made = entry->second;
    made.block = own;
    touch(made, table, at);
    std::tie(made.priority, made.priority_until) = retention(table, at);
    made.expires = table.expires;
    made.hits = 0;
    made.created = ++clock_;
    identities_[identity(entry->first)] = entry;
    const CacheEvent event = next_event();
    must(event.kind == CacheEvent::Kind::kStored && event.parent == parent &&
             event.identity == identity(entry->first),
         "another block is stored than is expected");
  }
  enforce(salt(table.name_space));
}

ModelCache::TablePtr ModelCache::share(const Table& table, std::size_t blocks) {
  Table made = table;
  made.blocks.resize(blocks);
  made.committed = front(table.committed, std::min(blocks * kBlock, table.committed.size()));
  made.reserved = 0;
  return add_table(std::move(made));
}

ModelCache::TablePtr ModelCache::fork(const Table& table, std::size_t tokens, std::size_t total) {
  const std::size_t full = tokens / kBlock;
  const std::size_t needed = (total + kBlock - 1) / kBlock;
  if (needed > options_.blocks || free() + idle() < promised_ + needed - full) return nullptr;
  TablePtr made = share(table, full);
  made->reserved = needed - full;
  promised_ += made->reserved;
  if (tokens % kBlock != 0) take(*made);
  return made;
}

void ModelCache::release(TablePtr table) {
  promised_ -= table->reserved;
  table->blocks.clear();
  const std::string name_space = table->name_space;
  table.reset();
  std::erase_if(tables_, [](const auto& other) { return other.expired(); });
  const auto is_of_it = [&](const auto& other) { return other.lock()->name_space == name_space; };
  if (std::none_of(tables_.begin(), tables_.end(), is_of_it)) prefix_cuts_.erase(name_space);
  if (!name_space.empty()) enforce(salt(name_space));
}

void ModelCache::pin(const std::string& name_space, const Tokens& tokens, kv::Time until) {
  tick();
  for (std::size_t length = kBlock; until > now_ && length <= tokens.size(); length += kBlock) {
    Entry* entry = find(name_space, tokens, length);
    if (entry == nullptr) return;
    entry->pinned_until = std::max(entry->pinned_until, until);
  }
}

/// The real cache has chosen the path.
ModelCache::TablePtr ModelCache::hold_victim(const std::string& name_space, const Tokens& path) {
  const At leaf = entries_.find({name_space, path});
  must(leaf != entries_.end() && is_candidate(leaf), "a victim is no leaf that nobody holds");
  must(rank(leaf->second) < kPinnedRank, "a victim is pinned");
  Table made{.name_space = name_space, .committed = path};
  for (std::size_t length = kBlock; length <= path.size(); length += kBlock) {
    made.blocks.push_back(find(name_space, path, length)->block);
  }
  must(free() + idle() >= promised_, "victims take room that is promised");
  return add_table(std::move(made));
}

void ModelCache::evict(TablePtr table, std::size_t blocks) {
  const Key key{table->name_space, table->committed};
  const std::size_t known = path(*table).size();  // what is left of its own path
  release(std::move(table));
  if (known * kBlock < key.second.size()) return;
  for (std::size_t i = 0; i < blocks; ++i) {
    const At at = entries_.find({key.first, front(key.second, key.second.size() - i * kBlock)});
    if (at == entries_.end() || !is_candidate(at) || rank(at->second) == kPinnedRank) return;
    must(next_removed() == at, "a victim was not evicted");
    ++counters_.evictions;
    erase(at);
  }
}

void ModelCache::mark_stored(const Table& table, std::size_t first, std::size_t count,
                             std::uint8_t bits) {
  const std::size_t known = path(table).size();
  for (std::size_t i = first; i < known && i < first + count; ++i) {
    find(table.name_space, table.committed, (i + 1) * kBlock)->stored |= bits;
  }
}

CacheStats ModelCache::stats() const {
  CacheStats stats = counters_;
  stats.blocks_total = options_.blocks;
  stats.blocks_cached = entries_.size();
  stats.blocks_in_use = options_.blocks - free() - idle();
  return stats;
}

std::vector<const ModelCache::Entry*> ModelCache::path(const Table& table) const {
  std::vector<const Entry*> found;
  for (std::size_t i = 0; (i + 1) * kBlock <= table.committed.size(); ++i) {
    const auto at = entries_.find({table.name_space, front(table.committed, (i + 1) * kBlock)});
    // A block of the same tokens may have come after the table's own was forgotten.
    if (at == entries_.end() || at->second.block != table.blocks[i]) break;
    found.push_back(&at->second);
  }
  return found;
}

}  // namespace incipit::test
