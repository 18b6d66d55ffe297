// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_LABELS_H_
#define INCIPIT_KV_LABELS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::kv {

/// The labels of a block, by name: those of every request that has used it.
///
/// A block belongs to the sessions that have used it, and goes with the last of them. What a
/// request without a session has used, or more than LabelSets::kMaxSessions sessions, is `common`:
/// no end of a session takes it away, and no sessions are named. A tag takes away whatever has it.
/// Behind LabelSets::kMaxTags tags they are not told apart any more: any tag takes the block away.
struct LabelNames {
  std::vector<std::string> sessions = {};
  bool common = true;
  std::vector<std::string> tags = {};
  bool any_tag = false;

  friend bool operator==(const LabelNames&, const LabelNames&) = default;
};

using LabelId = std::uint32_t;
using LabelSetId = std::uint32_t;
inline constexpr LabelId kNoLabel = std::numeric_limits<LabelId>::max();
inline constexpr LabelSetId kNoLabelSet = std::numeric_limits<LabelSetId>::max();

/// Sets of labels, each stored once, so that a block holds one number. A set lives as long as it is
/// held, a label as long as a set has it.
///
/// Not thread-safe.
class LabelSets {
 public:
  static constexpr std::size_t kMaxSessions = 16;
  static constexpr std::size_t kMaxTags = 64;

  /// Each of these holds its result once.
  LabelSetId make(const LabelNames& names);
  LabelSetId join(LabelSetId a, LabelSetId b);
  LabelSetId without_session(LabelSetId set, LabelId session);

  void retain(LabelSetId set) { ++sets_.at(set).holders; }
  void release(LabelSetId set) noexcept;

  /// kNoLabel where no set has it.
  LabelId find_session(std::string_view name) const { return find(session_ids_, name); }
  LabelId find_tag(std::string_view name) const { return find(tag_ids_, name); }

  bool has_session(LabelSetId set, LabelId session) const;
  /// True also where the set's tags are not told apart.
  bool has_tag(LabelSetId set, LabelId tag) const;
  /// Neither common nor of any session: nobody is left whose block it could be.
  bool is_orphan(LabelSetId set) const;
  /// The session of a set that has just one and is not common; else kNoLabel.
  LabelId only_session(LabelSetId set) const;
  LabelNames names(LabelSetId set) const;

  /// Notes that a label was invalidated at `epoch`, for cut_since(). Tags that no set has included.
  void cut_session(LabelId session, std::uint64_t epoch) { labels_.at(session).cut = epoch; }
  void cut_tag(LabelId tag, std::uint64_t epoch);
  /// True where one of the set's labels was invalidated after `epoch`.
  bool cut_since(LabelSetId set, std::uint64_t epoch) const;

  std::size_t sets() const noexcept { return ids_.size(); }
  std::size_t labels() const noexcept { return session_ids_.size() + tag_ids_.size(); }
  std::uint64_t holders(LabelSetId set) const { return sets_.at(set).holders; }
  /// Throws Error{kInternal} where sets and labels disagree. O(sets).
  void check_integrity() const;

 private:
  struct Members {
    std::vector<LabelId> sessions = {};  // in ascending order; none where common
    std::vector<LabelId> tags = {};      // in ascending order; none where any_tag
    bool common = false;
    bool any_tag = false;
    friend auto operator<=>(const Members&, const Members&) = default;
  };
  using Ids = std::map<Members, LabelSetId>;
  struct Set {
    Ids::iterator members = {};
    std::uint64_t holders = 0;  // 0: not used
  };
  using LabelIds = std::map<std::string, LabelId, std::less<>>;
  struct Label {
    LabelIds::iterator name = {};
    bool is_session = false;
    std::size_t sets = 0;  // that have it; 0: not used
    std::uint64_t cut = 0;
  };

  const Members& members(LabelSetId set) const { return sets_.at(set).members->first; }
  static LabelId find(const LabelIds& ids, std::string_view name);
  LabelId make_label(bool is_session, const std::string& name);
  void drop_unused_labels(std::span<const LabelId> labels) noexcept;
  LabelSetId intern(Members members);

  std::vector<Set> sets_ = {};
  std::vector<LabelSetId> unused_sets_ = {};
  Ids ids_ = {};
  std::vector<Label> labels_ = {};
  std::vector<LabelId> unused_labels_ = {};
  LabelIds session_ids_ = {}, tag_ids_ = {};
  std::uint64_t any_tag_cut_ = 0;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_LABELS_H_
