// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compress/policies.h"

namespace incipit::compress {
namespace {

// Room that is left where a segment shall be at most `limit - what the rest takes`.
std::size_t rest_of(std::size_t limit, std::size_t taken) {
  return limit > taken ? limit - taken : 0;
}

/// Fits a draft by compacting it. Messages in front of the last user turn are frozen by turns,
/// those behind it (calls of tools and their results) by units; the last unit stays as it is while
/// it can.
class Compaction {
 public:
  explicit Compaction(Draft& draft)
      : draft_(draft),
        view_(draft.view()),
        options_(draft.options().compressor),
        turn_(view_.last_turn()),
        evidence_room_(share(options_.evidence_share, draft.budget())) {
    if (turn_.first == view_.size()) turn_.first = turn_.second = open_unit(view_);
  }

  void run() {
    const bool fills = draft_.options().fills;
    const std::size_t high = draft_.budget() - evidence_room_;
    if (draft_.tokens() > (fills ? draft_.budget() : high)) {
      const bool fitted = fits();
      const std::vector<SegmentPtr> before = draft_.segments;
      if (fills) {
        fill();
      } else {
        freeze(high);
        merge();
      }
      if (!fits()) squeeze();
      // Orders in a segment take more than by themselves.
      if (fitted && !fits()) {
        draft_.segments = before;
        draft_.made.clear();
      }
    }
    // A prompt that was filled has its evidence, or no room for any.
    if (fits() && !(fills && !draft_.segments.empty())) add_evidence();
  }

 private:
  /// What a turn has got stays in front of it, as long as nothing in front of that changes.
  void add_evidence() {
    const std::size_t room = std::min(evidence_room_, draft_.budget() - draft_.tokens());
    const Evidence* held = draft_.options().held;
    for (const SegmentPtr& made : draft_.made) {
      if (made->first < turn_.first) held = nullptr;
    }
    const bool stays = held != nullptr && held->tokens <= room;
    draft_.evidence = stays ? *held : recall(draft_, 0, room);
  }

  /// Where the messages behind the last user turn may be cut: its last unit stays whole.
  std::size_t last_unit() const {
    if (view_.size() <= turn_.second) return view_.size();
    const std::size_t unit = view_[view_.size() - 1].unit;
    return draft_.is_covered(unit) ? view_.size() : unit;
  }

  /// The tokens that a compaction leaves: the low watermark, or more where turns are so short that
  /// enough of them have room all the same.
  std::size_t target(std::size_t high) const {
    const std::size_t low = share(options_.low_watermark, draft_.budget());
    const std::size_t growth = view_.history().growth();
    const bool is_too_much = growth > 0 && options_.headroom_turns > high / growth;
    const std::size_t headroom = is_too_much ? high : options_.headroom_turns * growth;
    return std::min(std::max(low, rest_of(high, headroom)), rest_of(high, options_.min_reclaim));
  }

  /// Freezes the oldest live messages, as few as reach the target.
  void freeze(std::size_t high) {
    std::size_t excess = rest_of(draft_.tokens(), target(high));
    excess = freeze_part(draft_.first_live(0), turn_.first, excess, true);
    if (excess > 0 && turn_.second < view_.size()) {
      freeze_part(draft_.first_live(turn_.second), last_unit(), excess, false);
    }
  }

  /// Returns how much of the excess is left.
  std::size_t freeze_part(std::size_t first, std::size_t last, std::size_t excess, bool by_turns) {
    if (first >= last || excess == 0) return excess;
    std::size_t end = first, loose = 0;
    const auto saved = [&] { return loose - share(options_.segment_ratio, loose); };
    while (end < last && saved() < excess) {
      // Segments behind the last turn of then are taken up whole.
      const std::size_t covered = draft_.first_live(end);
      std::size_t next = covered > end ? covered : view_.unit_end(end);
      while (by_turns && next < last && (draft_.is_covered(next) || !view_.is_turn(next))) {
        next = draft_.is_covered(next) ? draft_.first_live(next) : view_.unit_end(next);
      }
      next = std::min(next, last);
      loose += draft_.loose_tokens(end, next);
      end = next;
    }
    if (loose == 0) return excess;
    const std::size_t before = draft_.tokens();
    draft_.replace(first, end, share(options_.segment_ratio, loose));
    return rest_of(excess, rest_of(before, draft_.tokens()));
  }

  /// Where frozen segments take too much room, the older half of those that follow each other
  /// becomes one, of half their length: the older something is, the shorter it gets.
  void merge() {
    const std::size_t cap = share(options_.frozen_cap, draft_.budget());
    for (std::size_t tokens = draft_.segment_tokens(); tokens > cap;) {
      const auto [first, last] = longest_run();
      std::size_t half = 0, sum = 0;  // the segments [first, half)
      const std::size_t run = tokens_of(first, last);
      for (half = first; half < last && (half < first + 2 || sum * 2 < run); ++half) {
        sum += draft_.segments[half]->tokens;
      }
      if (half < first + 2) return;
      draft_.replace(draft_.segments[first]->first, draft_.segments[half - 1]->end, sum / 2);
      const std::size_t now = draft_.segment_tokens();
      if (now >= tokens) return;
      tokens = now;
    }
  }

  std::size_t tokens_of(std::size_t first, std::size_t last) const {
    std::size_t sum = 0;
    for (std::size_t i = first; i < last; ++i) sum += draft_.segments[i]->tokens;
    return sum;
  }

  /// The segments [first, second) that follow each other, and have the most tokens of all such.
  std::pair<std::size_t, std::size_t> longest_run() const {
    const auto& segments = draft_.segments;
    std::pair<std::size_t, std::size_t> best;
    for (std::size_t first = 0, last = 0; first < segments.size(); first = last) {
      for (last = first + 1; last < segments.size(); ++last) {
        if (segments[last]->first != segments[last - 1]->end) break;
      }
      if (tokens_of(first, last) > tokens_of(best.first, best.second)) best = {first, last};
    }
    return best;
  }

  /// The newest turns stay as they are in half of the room, one segment fills the other half.
  void fill() {
    const std::size_t taken = draft_.tokens() - draft_.loose_tokens(0, turn_.first);
    std::size_t live = rest_of(draft_.budget(), taken) / 2;
    std::size_t recent = turn_.first;
    for (std::size_t at = turn_.first; at > 0;) {
      std::size_t turn = at - 1;
      while (turn > 0 && !view_.is_turn(turn)) --turn;
      const std::size_t tokens = draft_.loose_tokens(turn, at);
      if (tokens > live) break;
      live -= tokens;
      recent = at = turn;
    }
    if (recent == 0) return;  // what is behind the last user turn is what is too long
    const std::size_t others = draft_.tokens() - draft_.loose_tokens(0, recent);
    if (others >= draft_.budget()) return;
    const std::size_t room = draft_.budget() - others;
    draft_.evidence = recall(draft_, recent, std::min(evidence_room_, room / 2));
    draft_.replace(0, recent, room - draft_.evidence.tokens);
  }

  /// What is left to do where that was not enough, until it is.
  void squeeze() {
    draft_.evidence = {};
    if (turn_.first > 0) {
      refill(0, turn_.first, 1, 1);
      if (fits()) return;
    }
    if (turn_.second == view_.size()) return;
    const std::size_t last = last_unit();
    if (last > turn_.second) {
      refill(turn_.second, newest_behind_turn(), 3, 4);
      if (fits()) return give_back();
      refill(turn_.second, last, 1, 1);
      if (fits()) return give_back();
    }
    if (open_unit(view_) < view_.size()) return;
    refill(turn_.second, view_.size(), 1, 1);
    give_back();
  }

  bool fits() const { return draft_.tokens() <= draft_.budget(); }

  /// One segment for [first, end) in a part of the room that the rest leaves.
  void refill(std::size_t first, std::size_t end, std::size_t part, std::size_t parts) {
    if (first == end) return;
    const std::size_t others = draft_.tokens() - draft_.loose_tokens(first, end);
    draft_.replace(first, end, rest_of(draft_.budget(), others) * part / parts);
  }

  /// What is left over goes to the messages in front of the last turn.
  void give_back() {
    if (turn_.first > 0 && fits()) refill(0, turn_.first, 1, 1);
  }

  /// Units behind the last user turn that half of the room has place for, the last one at least.
  std::size_t newest_behind_turn() const {
    const std::size_t taken = draft_.tokens() - draft_.loose_tokens(turn_.second, view_.size());
    const std::size_t room = rest_of(draft_.budget(), taken) / 2;
    std::size_t at = last_unit();
    while (at > turn_.second) {
      const std::size_t unit = view_[at - 1].unit;
      if (draft_.is_covered(unit) || draft_.loose_tokens(unit, view_.size()) > room) break;
      at = unit;
    }
    return at;
  }

  Draft& draft_;
  const View& view_;
  const CompressorOptions& options_;
  std::pair<std::size_t, std::size_t> turn_;
  const std::size_t evidence_room_;
};

}  // namespace

void fit_frozen(Draft& draft) { Compaction(draft).run(); }

}  // namespace incipit::compress
