// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_HOT_SESSIONS_H_
#define INCIPIT_KV_HOT_SESSIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "kv/labels.h"
#include "kv/node_list.h"

namespace incipit::kv {

/// Which sessions are the most recent, and the nodes that just one session has.
///
/// Not thread-safe.
class HotSessions {
 public:
  /// `limit` sessions are hot; 0: no session is ever cold and nothing is kept. For node ids below
  /// `capacity`.
  HotSessions(std::size_t limit, std::size_t capacity, LabelSets& labels)
      : limit_(limit), labels_(labels), links_(limit == 0 ? 0 : capacity) {}

  bool is_on() const noexcept { return limit_ > 0; }
  /// False for kNoLabel.
  bool is_cold(LabelId session) const;

  /// Sessions that are not what they were; kNoLabel where there is none.
  struct Change {
    LabelId warmed = kNoLabel;
    LabelId cooled = kNoLabel;
  };
  /// A request of the only session of `set` begins. Holds the set while the session is hot.
  Change use(LabelSetId set);

  /// Moves a node from the session that it was alone with to another; kNoLabel: none.
  void move(NodeId node, LabelId from, LabelId to);
  /// All sessions have labels below this.
  std::size_t end_label() const noexcept { return sessions_.size(); }
  /// The oldest of a session's own nodes; newer() goes on.
  NodeId oldest(LabelId session) const;
  NodeId newer(NodeId node) const { return links_.newer(node); }
  bool has(NodeId node) const { return is_on() && links_.contains(node); }
  std::size_t hot() const noexcept { return hot_.size(); }

 private:
  struct Session {
    NodeList nodes = {};
    std::uint64_t last_use = 0;  // 0: cold
  };

  Session& session(LabelId id);

  std::size_t limit_;
  LabelSets& labels_;
  NodeLinks links_;
  std::vector<Session> sessions_ = {};            // [label]
  std::map<std::uint64_t, LabelSetId> hot_ = {};  // by last use; the sets are held
  std::uint64_t uses_ = 0;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_HOT_SESSIONS_H_
