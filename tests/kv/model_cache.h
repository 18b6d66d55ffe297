// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_KV_MODEL_CACHE_H_
#define INCIPIT_TESTS_KV_MODEL_CACHE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fake_sequence.h"
#include "kv/kv_cache.h"

namespace incipit::test {

/// What KvCache must do, written so that it can be read and checked by eye: prefixes are whole
/// token sequences in a std::map, blocks are shared pointers whose count says who holds them, an
/// invalidation marks all live tables that it concerns, and whatever is wanted is searched for.
///
/// It does not know in which order a policy evicts. So it is told the events of each step after the
/// real cache has done it, takes those that it expects, and checks that each was allowed.
class ModelCache {
 public:
  struct Block {};
  using BlockPtr = std::shared_ptr<Block>;
  using Key = std::pair<std::string, Tokens>;  // namespace and prefix, whole blocks

  struct Labels {
    std::set<std::string> sessions = {};
    bool common = false;
    std::set<std::string> tags = {};
    bool operator==(const Labels&) const = default;
  };
  struct Entry {
    BlockPtr block = {};
    Labels labels = {};
    std::uint32_t hits = 0;
    std::uint8_t stored = 0;
    CachePriority priority = CachePriority::kNormal;
    kv::Time priority_until = kv::Time::max();
    kv::Time expires = kv::Time::max();
    kv::Time pinned_until = kv::Time::min();
    std::uint64_t created = 0;
    bool held() const { return block.use_count() > 1; }
  };
  struct Table {
    std::string name_space = {};
    CacheLabels given = {};
    std::vector<BlockPtr> blocks = {};
    Tokens committed = {};
    std::size_t reserved = 0;
    kv::Time started = {};
    kv::Time expires = kv::Time::max();
    bool indexed = false;
    bool cut = false;                       // something that concerns it was invalidated
    std::vector<Tokens> cut_prefixes = {};  // the same, once it has these tokens
  };
  using TablePtr = std::shared_ptr<Table>;

  explicit ModelCache(const kv::KvCacheOptions& options) : options_(options) {}

  /// Before each step: the time, and what the real cache has told of it.
  void begin(kv::Time now, const std::vector<CacheEvent>& events);
  /// After each step: that nothing happened that was not expected.
  void end() const;

  // The calls of KvCache.
  std::optional<std::size_t> start(const std::string& name_space, const CacheLabels& labels,
                                   const Tokens& tokens, std::size_t total, TablePtr& table);
  void extend(Table& table, std::size_t tokens);
  void commit(Table& table, const Tokens& tokens);
  TablePtr share(const Table& table, std::size_t blocks);
  TablePtr fork(const Table& table, std::size_t tokens, std::size_t total);  // null: no room
  void release(TablePtr table);
  void pin(const std::string& name_space, const Tokens& tokens, kv::Time until);
  void begin_victims() { tick(); }
  TablePtr hold_victim(const std::string& name_space, const Tokens& path);
  void evict(TablePtr table, std::size_t blocks);
  void mark_stored(const Table& table, std::size_t first, std::size_t count, std::uint8_t bits);
  void clear();
  std::size_t invalidate_owner(const std::string& salt);
  std::size_t invalidate_version(const std::string& salt, const std::string& version);
  std::size_t invalidate_name_space(const std::string& name_space);
  std::size_t invalidate_prefix(const std::string& name_space, const Tokens& tokens);
  std::size_t invalidate_tag(const std::string& tag);
  std::size_t invalidate_session(const std::string& session);

  CacheStats stats() const;
  /// The entries of a table's committed blocks, as far as they are still known.
  std::vector<const Entry*> path(const Table& table) const;
  std::size_t owner_blocks(const std::string& salt) const;

  /// "A1" is version 1 of salt A.
  static std::string salt(const std::string& name_space) { return name_space.substr(0, 1); }
  static std::string version(const std::string& name_space) { return name_space.substr(1); }

 private:
  static constexpr std::size_t kBlock = device::kBlockTokens;
  using Entries = std::map<Key, Entry>;
  using At = Entries::iterator;

  static void must(bool holds, const char* what);
  static Tokens front(const Tokens& tokens, std::size_t count);
  static bool begins_with(const Tokens& tokens, const Tokens& prefix);
  static std::uint64_t identity(const Key& key);

  Entry* find(const std::string& name_space, const Tokens& tokens, std::size_t length);
  bool is_leaf(At at) const;
  bool is_candidate(At at) const { return !at->second.held() && is_leaf(at); }
  int rank(const Entry& entry) const;
  std::size_t free() const { return options_.blocks - live_; }
  std::size_t idle() const;

  CacheEvent next_event();
  At next_removed();
  void erase(At at);
  void evict_for(const std::string* owner, bool check_rank = true);
  bool is_over_quota(const std::string& salt);
  void enforce(const std::string& salt);
  void tick();
  void end_deadlines(kv::Time deadline);
  std::size_t remove_all(const std::set<Key>& keys);
  template <class Wanted>
  std::size_t remove_where(Wanted&& wanted);
  template <class Wanted>
  void cut_where(Wanted&& wanted);

  At longest_run(const std::string& name_space, const Tokens& tokens, std::size_t whole,
                 std::size_t& run);
  void copy(At source, Table& table);
  void take(Table& table);
  void give(BlockPtr block, Table& table);
  void touch(Entry& entry, const Table& table, std::size_t at);
  std::pair<CachePriority, kv::Time> retention(const Table& table, std::size_t at) const;
  void use_session(const std::string& session);
  TablePtr add_table(Table table);

  kv::KvCacheOptions options_;
  kv::Time now_ = {};
  std::deque<CacheEvent> events_ = {};
  std::size_t live_ = 0;  // blocks that somebody holds
  Entries entries_ = {};
  std::unordered_map<std::uint64_t, At> identities_ = {};
  std::vector<std::weak_ptr<Table>> tables_ = {};
  std::map<std::string, std::size_t> prefix_cuts_ = {};  // of namespaces with live tables
  std::vector<std::string> sessions_ = {};               // the most recent one last
  std::size_t promised_ = 0;
  std::uint64_t clock_ = 0;
  CacheStats counters_ = {};
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_KV_MODEL_CACHE_H_
