// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_SCOPES_H_
#define INCIPIT_KV_SCOPES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "incipit/sampling.h"
#include "kv/node_list.h"

namespace incipit::kv {

using ScopeId = std::uint32_t;
inline constexpr ScopeId kNoScope = std::numeric_limits<ScopeId>::max();

/// Who has blocks: all with one salt.
struct Owner {
  std::size_t scopes = 0;
  std::size_t blocks = 0;                   // in the index
  std::array<NodeList, 4> candidates = {};  // [rank], where there is a quota
};

/// What is known of a namespace while a live table or a block of the index belongs to it.
struct Scope {
  std::string name_space = {};
  std::string version = {};
  std::map<std::string, Owner, std::less<>>::iterator owner = {};  // by salt
  std::size_t tables = 0;
  std::size_t blocks = 0;

  // Invalidations, for tables that had started before. Each has its epoch.
  struct PrefixCut {
    std::uint64_t epoch = 0;
    std::vector<TokenId> tokens = {};
  };
  static constexpr std::size_t kMaxPrefixCuts = 16;
  std::uint64_t cut = 0;                    // of all
  std::vector<PrefixCut> prefix_cuts = {};  // empty where no table is alive

  /// Notes that what begins with `tokens` was invalidated. Behind kMaxPrefixCuts it counts for all.
  void cut_prefix(std::span<const TokenId> tokens, std::uint64_t epoch);
  /// True where an invalidation after `epoch` concerns a prefix.
  bool cut_since(std::uint64_t epoch, std::span<const TokenId> prefix) const;
};

/// The namespaces and owners that somebody uses.
///
/// Not thread-safe.
class Scopes {
 public:
  using Owners = std::map<std::string, Owner, std::less<>>;

  /// The namespace with one more table. Who names it names the same salt and version each time:
  /// they are part of what a namespace stands for.
  ScopeId add_table(std::string_view name_space, std::string_view salt, std::string_view version);
  void add_table(ScopeId scope) { ++scopes_.at(scope).tables; }
  void remove_table(ScopeId scope) noexcept;
  void add_block(ScopeId scope);
  void remove_block(ScopeId scope) noexcept;

  /// kNoScope where nobody uses it.
  ScopeId find(std::string_view name_space) const;
  const Scope& at(ScopeId scope) const { return scopes_.at(scope); }
  Scope& at(ScopeId scope) { return scopes_.at(scope); }
  const std::string& salt(ScopeId scope) const { return at(scope).owner->first; }
  Owner& owner(ScopeId scope) { return at(scope).owner->second; }

  /// All those of one salt. O(scopes).
  std::vector<ScopeId> of_owner(std::string_view salt) const;
  const std::map<std::string, ScopeId, std::less<>>& all() const noexcept { return ids_; }

  const Owners& owners() const noexcept { return owners_; }
  std::size_t size() const noexcept { return ids_.size(); }
  /// Throws Error{kInternal} where they disagree. O(scopes).
  void check_integrity() const;

 private:
  void drop_unused(ScopeId id) noexcept;

  std::vector<Scope> scopes_ = {};
  std::vector<ScopeId> unused_ = {};
  std::map<std::string, ScopeId, std::less<>> ids_ = {};
  Owners owners_ = {};
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_SCOPES_H_
