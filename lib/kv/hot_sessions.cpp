// SPDX-License-Identifier: Apache-2.0
#include "kv/hot_sessions.h"

namespace incipit::kv {

HotSessions::Session& HotSessions::session(LabelId id) {
  if (id >= sessions_.size()) sessions_.resize(std::size_t{id} + 1);
  return sessions_[id];
}

bool HotSessions::is_cold(LabelId id) const {
  if (!is_on() || id == kNoLabel) return false;
  return id >= sessions_.size() || sessions_[id].last_use == 0;
}

HotSessions::Change HotSessions::use(LabelSetId set) {
  const LabelId id = labels_.only_session(set);
  if (!is_on() || id == kNoLabel) return {};
  Session& used = session(id);
  if (used.last_use != 0) {
    auto node = hot_.extract(used.last_use);
    used.last_use = node.key() = ++uses_;
    hot_.insert(std::move(node));
    return {};
  }
  hot_.emplace(uses_ + 1, set);
  labels_.retain(set);
  used.last_use = ++uses_;
  Change change{.warmed = id};
  if (hot_.size() > limit_) {
    const LabelSetId oldest = hot_.begin()->second;
    change.cooled = labels_.only_session(oldest);
    sessions_[change.cooled].last_use = 0;
    hot_.erase(hot_.begin());
    labels_.release(oldest);
  }
  return change;
}

void HotSessions::move(NodeId node, LabelId from, LabelId to) {
  if (!is_on() || from == to) return;
  if (to != kNoLabel) session(to);  // what may fail comes first
  if (from != kNoLabel) links_.remove(sessions_[from].nodes, node);
  if (to != kNoLabel) links_.push_newest(sessions_[to].nodes, node);
}

NodeId HotSessions::oldest(LabelId id) const {
  return id >= sessions_.size() ? kNoNode : sessions_[id].nodes.oldest;
}

}  // namespace incipit::kv
