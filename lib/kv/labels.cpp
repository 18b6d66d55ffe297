// SPDX-License-Identifier: Apache-2.0
#include "kv/labels.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "kv/slots.h"

namespace incipit::kv {
namespace {

bool contains(std::span<const LabelId> sorted, LabelId label) {
  return std::binary_search(sorted.begin(), sorted.end(), label);
}

std::vector<LabelId> union_of(std::span<const LabelId> a, std::span<const LabelId> b) {
  std::vector<LabelId> all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

}  // namespace

LabelId LabelSets::find(const LabelIds& ids, std::string_view name) {
  const auto found = ids.find(name);
  return found == ids.end() ? kNoLabel : found->second;
}

LabelId LabelSets::make_label(bool is_session, const std::string& name) {
  LabelIds& ids = is_session ? session_ids_ : tag_ids_;
  if (const LabelId known = find(ids, name); known != kNoLabel) return known;
  const LabelId id = unused_slot(labels_, unused_labels_);
  labels_[id] = {.name = ids.emplace(name, id).first, .is_session = is_session};
  unused_labels_.pop_back();
  return id;
}

void LabelSets::drop_unused_labels(std::span<const LabelId> labels) noexcept {
  for (const LabelId id : labels) {
    Label& label = labels_[id];
    if (label.sets > 0) continue;
    (label.is_session ? session_ids_ : tag_ids_).erase(label.name);
    label = {};
    unused_labels_.push_back(id);
  }
}

/// Applies the limits, and drops labels that were made for `members` and are in no set.
LabelSetId LabelSets::intern(Members members) {
  if (members.sessions.size() > kMaxSessions) members.common = true;
  if (members.tags.size() > kMaxTags) members.any_tag = true;
  std::vector<LabelId> all = union_of(members.sessions, members.tags);
  if (members.common) members.sessions.clear();
  if (members.any_tag) members.tags.clear();
  if (const auto known = ids_.find(members); known != ids_.end()) {
    drop_unused_labels(all);
    retain(known->second);
    return known->second;
  }
  const LabelSetId id = unused_slot(sets_, unused_sets_);
  const auto at = ids_.emplace(std::move(members), id).first;
  unused_sets_.pop_back();
  sets_[id] = {.members = at, .holders = 1};
  for (const LabelId label : at->first.sessions) ++labels_[label].sets;
  for (const LabelId label : at->first.tags) ++labels_[label].sets;
  drop_unused_labels(all);
  return id;
}

LabelSetId LabelSets::make(const LabelNames& names) {
  Members members{.common = names.common, .any_tag = names.any_tag};
  if (!names.common) {
    for (const std::string& name : names.sessions) {
      members.sessions.push_back(make_label(true, name));
    }
  }
  for (const std::string& name : names.tags) members.tags.push_back(make_label(false, name));
  for (std::vector<LabelId>* const list : {&members.sessions, &members.tags}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return intern(std::move(members));
}

LabelSetId LabelSets::join(LabelSetId a, LabelSetId b) {
  const Members& first = members(a);
  const Members& second = members(b);
  return intern({.sessions = union_of(first.sessions, second.sessions),
                 .tags = union_of(first.tags, second.tags),
                 .common = first.common || second.common,
                 .any_tag = first.any_tag || second.any_tag});
}

LabelSetId LabelSets::without_session(LabelSetId set, LabelId session) {
  Members rest = members(set);
  std::erase(rest.sessions, session);
  return intern(std::move(rest));
}

void LabelSets::release(LabelSetId set) noexcept {
  Set& released = sets_[set];
  if (--released.holders > 0) return;
  const auto drop = [this](std::span<const LabelId> labels) {
    for (const LabelId label : labels) --labels_[label].sets;
    drop_unused_labels(labels);
  };
  drop(released.members->first.sessions);
  drop(released.members->first.tags);
  ids_.erase(released.members);
  released = {};
  unused_sets_.push_back(set);
}

bool LabelSets::has_session(LabelSetId set, LabelId session) const {
  return contains(members(set).sessions, session);
}

bool LabelSets::has_tag(LabelSetId set, LabelId tag) const {
  return members(set).any_tag || contains(members(set).tags, tag);
}

bool LabelSets::is_orphan(LabelSetId set) const {
  return !members(set).common && members(set).sessions.empty();
}

LabelId LabelSets::only_session(LabelSetId set) const {
  const Members& all = members(set);
  return all.sessions.size() == 1 ? all.sessions.front() : kNoLabel;
}

LabelNames LabelSets::names(LabelSetId set) const {
  const Members& all = members(set);
  LabelNames names{.common = all.common, .any_tag = all.any_tag};
  for (const LabelId id : all.sessions) names.sessions.push_back(labels_[id].name->first);
  for (const LabelId id : all.tags) names.tags.push_back(labels_[id].name->first);
  std::sort(names.sessions.begin(), names.sessions.end());
  std::sort(names.tags.begin(), names.tags.end());
  return names;
}

void LabelSets::cut_tag(LabelId tag, std::uint64_t epoch) {
  any_tag_cut_ = epoch;
  if (tag != kNoLabel) labels_.at(tag).cut = epoch;
}

bool LabelSets::cut_since(LabelSetId set, std::uint64_t epoch) const {
  const Members& all = members(set);
  if (all.any_tag && any_tag_cut_ > epoch) return true;
  const auto is_cut = [&](LabelId label) { return labels_[label].cut > epoch; };
  return std::any_of(all.sessions.begin(), all.sessions.end(), is_cut) ||
         std::any_of(all.tags.begin(), all.tags.end(), is_cut);
}

void LabelSets::check_integrity() const {
  std::vector<std::size_t> uses(labels_.size(), 0);
  for (const auto& [all, id] : ids_) {
    INCIPIT_CHECK(sets_.at(id).holders > 0 && &sets_[id].members->first == &all);
    INCIPIT_CHECK(!all.common || all.sessions.empty());
    INCIPIT_CHECK(!all.any_tag || all.tags.empty());
    for (const LabelId label : all.sessions) ++uses.at(label);
    for (const LabelId label : all.tags) ++uses.at(label);
  }
  INCIPIT_CHECK(ids_.size() + unused_sets_.size() == sets_.size());
  INCIPIT_CHECK(labels() + unused_labels_.size() == labels_.size());
  for (std::size_t i = 0; i < uses.size(); ++i) INCIPIT_CHECK(uses[i] == labels_[i].sets);
  for (const LabelIds* const ids : {&session_ids_, &tag_ids_}) {
    for (const auto& [name, id] : *ids) {
      INCIPIT_CHECK(labels_.at(id).sets > 0 && labels_[id].name->first == name);
      INCIPIT_CHECK(labels_[id].is_session == (ids == &session_ids_));
    }
  }
}

}  // namespace incipit::kv
