// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_KV_REFERENCE_CACHE_H_
#define INCIPIT_TESTS_KV_REFERENCE_CACHE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/kv_layout.h"
#include "incipit/metrics.h"
#include "kv/prefix_index.h"

namespace incipit::test {

/// What KvCache must do, written so that it can be read and checked by eye: prefixes are whole
/// token sequences in a std::map, blocks are shared pointers whose count says who holds them, and
/// whatever is wanted is searched for.
class ReferenceCache {
 public:
  using Tokens = std::vector<TokenId>;
  struct Block {};
  using BlockPtr = std::shared_ptr<Block>;

  struct Table {
    std::string name_space = {};
    std::vector<BlockPtr> blocks = {};
    Tokens committed = {};
    std::size_t reserved = 0;
    std::uint64_t epoch = 0;
  };

  explicit ReferenceCache(std::size_t blocks) : blocks_(blocks) {}

  /// The tokens that are reused; nothing where there is no room.
  std::optional<std::size_t> start(const std::string& name_space, const Tokens& tokens,
                                   std::size_t total, Table& table) {
    Table made{.name_space = name_space, .epoch = epoch_};
    std::vector<Entry*> path;
    if (!name_space.empty()) {
      while (Entry* entry = find(name_space, tokens, (path.size() + 1) * kBlock)) {
        if ((path.size() + 1) * kBlock >= tokens.size()) break;
        path.push_back(entry);
      }
    }
    const std::size_t whole = path.size() * kBlock;
    const std::size_t fresh = (total + kBlock - 1) / kBlock - path.size();
    std::size_t unheld = 0;
    for (const Entry* entry : path) unheld += entry->held() ? 0u : 1u;
    if (free() + evictable() < promised_ + fresh + unheld) return std::nullopt;

    for (const Entry* entry : path) made.blocks.push_back(entry->block);
    made.committed.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(whole));
    made.reserved = fresh;
    promised_ += fresh;
    std::size_t run = 0;
    if (!name_space.empty()) {
      const auto source = longest_run(name_space, tokens, whole, run);
      if (run > 0) copy(source, made);
      ++counters_.lookups;
      counters_.tokens_wanted += tokens.size();
      counters_.tokens_reused += whole + run;
    }
    table = std::move(made);
    return whole + run;
  }

  void extend(Table& table, std::size_t tokens) {
    while (table.blocks.size() * kBlock < tokens) take(table);
  }

  void commit(Table& table, const Tokens& tokens) {
    if (table.name_space.empty() || table.epoch != epoch_) return;
    while (table.committed.size() + kBlock <= tokens.size()) {
      BlockPtr& own = table.blocks[table.committed.size() / kBlock];
      const auto front = static_cast<std::ptrdiff_t>(table.committed.size() + kBlock);
      table.committed.assign(tokens.begin(), tokens.begin() + front);
      const auto [at, is_new] = entries_.try_emplace({table.name_space, table.committed});
      if (is_new) {
        at->second = {.block = own, .created = ++clock_};
      } else {
        own = at->second.block;
      }
    }
  }

  void release(Table& table) {
    const bool indexed = table.epoch == epoch_;
    promised_ -= table.reserved;
    while (!table.blocks.empty()) {
      const std::size_t front = table.blocks.size() * kBlock;
      table.blocks.pop_back();
      if (!indexed || front > table.committed.size()) continue;
      Entry* entry = find(table.name_space, table.committed, front);
      if (!entry->held()) entry->used = ++clock_;
    }
    table = {};
  }

  void clear() {
    entries_.clear();
    ++epoch_;
  }

  CacheStats stats() const {
    CacheStats stats = counters_;
    stats.blocks_total = blocks_;
    stats.blocks_cached = entries_.size();
    stats.blocks_in_use = blocks_ - free() - evictable();
    return stats;
  }

 private:
  static constexpr std::size_t kBlock = device::kBlockTokens;

  struct Entry {
    BlockPtr block = {};
    std::uint64_t created = 0;
    std::uint64_t used = 0;
    bool held() const { return block.use_count() > 1; }
  };
  using Entries = std::map<std::pair<std::string, Tokens>, Entry>;

  Entry* find(const std::string& name_space, const Tokens& tokens, std::size_t length) {
    if (length > tokens.size()) return nullptr;
    const auto at = entries_.find(
        {name_space, Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length))});
    return at == entries_.end() ? nullptr : &at->second;
  }

  Entries::iterator longest_run(const std::string& name_space, const Tokens& tokens,
                                std::size_t whole, std::size_t& run) {
    if (tokens.size() ==
        whole + kBlock) {  // all is known: the block itself, not one that is like it
      const auto exact = entries_.find({name_space, tokens});
      if (exact != entries_.end()) {
        run = kBlock - 1;
        return exact;
      }
    }
    auto best = entries_.end();
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      const auto& [entry_space, prefix] = at->first;
      if (entry_space != name_space || prefix.size() != whole + kBlock) continue;
      const std::size_t limit = std::min(tokens.size() - 1, prefix.size());
      std::size_t common = 0;
      while (common < limit && tokens[common] == prefix[common]) ++common;
      if (common <= whole || common - whole < run) continue;
      const bool tie = common - whole == run;
      if (tie && best->second.created > at->second.created) continue;
      run = common - whole;
      best = at;
    }
    return best;
  }

  void copy(Entries::iterator source, Table& table) {
    if (!source->second.held()) {
      source->second.used = ++clock_;
      if (free() == 0 && evictable() == 1) {
        ++counters_.evictions;
        give(std::move(source->second.block), table);
        entries_.erase(source);
        return;
      }
    }
    take(table);
  }

  void take(Table& table) {
    if (free() == 0) evict();
    give(BlockPtr(new Block,
                  [this](Block* block) {
                    --live_;
                    delete block;
                  }),
         table);
    ++live_;
  }

  void give(BlockPtr block, Table& table) {
    table.blocks.push_back(std::move(block));
    --table.reserved;
    --promised_;
  }

  void evict() {
    auto victim = entries_.end();
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      if (at->second.held() || has_children(at)) continue;
      if (victim == entries_.end() || at->second.used < victim->second.used) victim = at;
    }
    ++counters_.evictions;
    entries_.erase(victim);
  }

  // Descendants of a prefix follow it in the map's order.
  bool has_children(Entries::const_iterator entry) const {
    const auto& [name_space, prefix] = entry->first;
    const auto next = std::next(entry);
    return next != entries_.end() && next->first.first == name_space &&
           next->first.second.size() > prefix.size() &&
           std::equal(prefix.begin(), prefix.end(), next->first.second.begin());
  }

  std::size_t free() const { return blocks_ - live_; }
  std::size_t evictable() const {
    return static_cast<std::size_t>(std::count_if(
        entries_.begin(), entries_.end(), [](const auto& entry) { return !entry.second.held(); }));
  }

  std::size_t blocks_;
  std::size_t live_ = 0;  // blocks that somebody holds
  Entries entries_;
  std::size_t promised_ = 0;
  std::uint64_t epoch_ = 1;
  std::uint64_t clock_ = 0;
  CacheStats counters_;
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_KV_REFERENCE_CACHE_H_
