// SPDX-License-Identifier: Apache-2.0
#include "kv/scopes.h"

#include <algorithm>

#include "base/check.h"
#include "kv/slots.h"

namespace incipit::kv {

void Scope::cut_prefix(std::span<const TokenId> tokens, std::uint64_t epoch) {
  if (tables == 0) return;
  if (prefix_cuts.size() == kMaxPrefixCuts) {
    cut = epoch;
  } else {
    prefix_cuts.push_back({epoch, {tokens.begin(), tokens.end()}});
  }
}

bool Scope::cut_since(std::uint64_t epoch, std::span<const TokenId> prefix) const {
  const auto concerns = [&](const PrefixCut& made) {
    return made.epoch > epoch && made.tokens.size() <= prefix.size() &&
           std::equal(made.tokens.begin(), made.tokens.end(), prefix.begin());
  };
  return cut > epoch || std::any_of(prefix_cuts.begin(), prefix_cuts.end(), concerns);
}

ScopeId Scopes::find(std::string_view name_space) const {
  const auto found = ids_.find(name_space);
  return found == ids_.end() ? kNoScope : found->second;
}

ScopeId Scopes::add_table(std::string_view name_space, std::string_view salt,
                          std::string_view version) {
  if (const ScopeId known = find(name_space); known != kNoScope) {
    INCIPIT_CHECK(this->salt(known) == salt && at(known).version == version);
    add_table(known);
    return known;
  }
  const ScopeId id = unused_slot(scopes_, unused_);
  Scope made{.name_space = std::string(name_space), .version = std::string(version), .tables = 1};
  made.owner = owners_.try_emplace(std::string(salt)).first;
  ++made.owner->second.scopes;
  ids_.emplace(name_space, id);
  scopes_[id] = std::move(made);
  unused_.pop_back();
  return id;
}

std::vector<ScopeId> Scopes::of_owner(std::string_view salt) const {
  std::vector<ScopeId> found;
  for (const auto& [name, id] : ids_) {
    if (this->salt(id) == salt) found.push_back(id);
  }
  return found;
}

void Scopes::remove_table(ScopeId id) noexcept {
  Scope& scope = scopes_[id];
  if (--scope.tables > 0) return;
  scope.prefix_cuts.clear();
  drop_unused(id);
}

void Scopes::add_block(ScopeId id) {
  Scope& scope = scopes_.at(id);
  ++scope.blocks;
  ++scope.owner->second.blocks;
}

void Scopes::remove_block(ScopeId id) noexcept {
  Scope& scope = scopes_[id];
  --scope.blocks;
  --scope.owner->second.blocks;
  drop_unused(id);
}

void Scopes::drop_unused(ScopeId id) noexcept {
  Scope& scope = scopes_[id];
  if (scope.tables > 0 || scope.blocks > 0) return;
  if (--scope.owner->second.scopes == 0) owners_.erase(scope.owner);
  ids_.erase(ids_.find(scope.name_space));
  scope = {};
  unused_.push_back(id);
}

void Scopes::check_integrity() const {
  std::map<std::string_view, Owner> sums;
  for (const auto& [name, id] : ids_) {
    const Scope& scope = at(id);
    INCIPIT_CHECK(scope.name_space == name && (scope.tables > 0 || scope.blocks > 0));
    INCIPIT_CHECK(scope.tables > 0 || scope.prefix_cuts.empty());
    Owner& sum = sums[scope.owner->first];
    ++sum.scopes;
    sum.blocks += scope.blocks;
  }
  INCIPIT_CHECK(sums.size() == owners_.size() && ids_.size() + unused_.size() == scopes_.size());
  for (const auto& [salt, owner] : owners_) {
    INCIPIT_CHECK(sums[salt].scopes == owner.scopes && sums[salt].blocks == owner.blocks);
  }
}

}  // namespace incipit::kv
