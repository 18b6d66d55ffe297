// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kv/scopes.h"
#include "model_cache.h"

namespace incipit::test {

template <class Wanted>
void ModelCache::cut_where(Wanted&& wanted) {
  for (const auto& known : tables_) {
    const TablePtr table = known.lock();
    if (table != nullptr && !table->name_space.empty() && wanted(*table)) table->cut = true;
  }
}

/// Takes the removals of all these keys, descendants first.
std::size_t ModelCache::remove_all(const std::set<Key>& keys) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const At at = next_removed();
    must(keys.count(at->first) == 1 && is_leaf(at), "something else was to be forgotten");
    erase(at);
  }
  return keys.size();
}

/// Removes what is wanted and all that lies behind it.
template <class Wanted>
std::size_t ModelCache::remove_where(Wanted&& wanted) {
  std::set<Key> keys;
  for (const auto& [key, entry] : entries_) {
    if (!wanted(key, entry)) continue;
    for (const auto& [other, ignored] : entries_) {
      if (other.first == key.first && begins_with(other.second, key.second)) keys.insert(other);
    }
  }
  return remove_all(keys);
}

void ModelCache::clear() {
  must(next_event().kind == CacheEvent::Kind::kCleared, "clear() tells of it");
  entries_.clear();
  identities_.clear();
  cut_where([](const Table&) { return true; });
}

std::size_t ModelCache::invalidate_owner(const std::string& salt_of_all) {
  cut_where([&](const Table& table) { return salt(table.name_space) == salt_of_all; });
  return remove_where([&](const Key& key, const Entry&) { return salt(key.first) == salt_of_all; });
}

std::size_t ModelCache::invalidate_version(const std::string& salt_of_all,
                                           const std::string& version_of_all) {
  return invalidate_name_space(salt_of_all + version_of_all);
}

std::size_t ModelCache::invalidate_name_space(const std::string& name_space) {
  cut_where([&](const Table& table) { return table.name_space == name_space; });
  return remove_where([&](const Key& key, const Entry&) { return key.first == name_space; });
}

std::size_t ModelCache::invalidate_prefix(const std::string& name_space, const Tokens& tokens) {
  if (tokens.empty()) return invalidate_name_space(name_space);
  for (const auto& known : tables_) {
    const TablePtr table = known.lock();
    if (table->name_space != name_space) continue;
    const std::size_t cuts = prefix_cuts_.try_emplace(name_space, 0).first->second;
    if (cuts < kv::Scope::kMaxPrefixCuts) table->cut_prefixes.push_back(tokens);
    if (cuts >= kv::Scope::kMaxPrefixCuts) table->cut = true;
  }
  if (prefix_cuts_.count(name_space) > 0) ++prefix_cuts_[name_space];
  return remove_where([&](const Key& key, const Entry&) {
    return key.first == name_space && begins_with(key.second, tokens);
  });
}

std::size_t ModelCache::invalidate_tag(const std::string& tag) {
  cut_where([&](const Table& table) {
    const std::vector<std::string>& tags = table.given.tags;
    return std::find(tags.begin(), tags.end(), tag) != tags.end();
  });
  return remove_where(
      [&](const Key&, const Entry& entry) { return entry.labels.tags.count(tag) > 0; });
}

std::size_t ModelCache::invalidate_session(const std::string& session) {
  cut_where([&](const Table& table) { return table.given.session == session; });
  for (auto& [key, entry] : entries_) {
    if (entry.labels.sessions.erase(session) > 0) entry.stored = 0;
  }
  return remove_where([&](const Key&, const Entry& entry) {
    return !entry.labels.common && entry.labels.sessions.empty();
  });
}

}  // namespace incipit::test
