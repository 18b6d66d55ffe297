// SPDX-License-Identifier: Apache-2.0
#include "compress/report.h"

#include <algorithm>

namespace incipit::compress {
namespace {

// The text of an earlier summary is nobody's.
bool is_summary(const Quote& quote) { return quote.role == Role::kSystem; }

bool has_summary(const Segment& segment) {
  return !segment.summary.empty() || std::ranges::any_of(segment.quotes, is_summary);
}

const Applied::Part* find(const std::vector<Applied::Part>& parts, std::size_t entry) {
  const auto at = std::ranges::find(parts, entry, &Applied::Part::entry);
  return at == parts.end() ? nullptr : &*at;
}

}  // namespace

Outcome outcome_of(const Draft& draft) {
  Outcome outcome{draft.segments, draft.window_first, draft.window_end, {}, draft.evidence.quotes};
  for (const Cut& cut : draft.cuts) {
    const std::size_t whole = draft.view()[cut.entry].shown().text.size();
    outcome.cut.push_back({cut.entry, whole - cut.message.text.size(), cut.tokens});
  }
  return outcome;
}

Reporter::Reporter(const View& view, const Outcome& outcome) : view_(view), outcome_(outcome) {
  for (const SegmentPtr& segment : outcome.segments) {
    for (const Quote& quote : segment->quotes) {
      if (is_summary(quote)) continue;
      if (in_segments_.empty() || in_segments_.back().entry != quote.entry) {
        in_segments_.push_back({quote.entry, 0});
      }
      in_segments_.back().tokens += quote.tokens;
    }
  }
  // A log may have quotes in any order.
  if (!std::ranges::is_sorted(in_segments_, {}, &Quoted::entry)) {
    std::ranges::stable_sort(in_segments_, {}, &Quoted::entry);
  }
}

void Reporter::report_covered(MessageReport& report, std::size_t i, const Segment& segment) const {
  auto quoted = std::ranges::lower_bound(in_segments_, i, {}, &Quoted::entry);
  if (quoted != in_segments_.end() && quoted->entry == i) {
    report.fate = MessageFate::kSummarized;
    report.tokens_after = 0;
    for (; quoted != in_segments_.end() && quoted->entry == i; ++quoted) {
      report.tokens_after += quoted->tokens;
    }
    report.why = "old; what tells most stands in a segment";
  } else if (has_summary(segment) && !view_[i].message.ephemeral) {
    report.fate = MessageFate::kSummarized;
    report.tokens_after = 0;
    report.why = "old; a summary stands for it";
  } else {
    report.fate = MessageFate::kDropped;
    report.tokens_after = 0;
    report.why = view_[i].message.ephemeral ? "ephemeral, and room was needed"
                                            : "old, and other messages tell more";
  }
  for (const Quote& quote : outcome_.evidence) {
    if (quote.entry != i) continue;
    report.fate = MessageFate::kQuoted;
    report.tokens_after += quote.tokens;
    report.why = "old, but answers the last user turn";
  }
}

MessageReport Reporter::report(std::size_t i) const {
  const Entry& entry = view_[i];
  MessageReport report;
  report.index = i;
  report.id = entry.message.id.empty() ? std::to_string(i + 1) : entry.message.id;
  report.fate = entry.fate;
  report.tokens_before = entry.tokens_before;
  report.tokens_after = entry.tokens;
  report.why = entry.why;
  report.handles = entry.handles;
  const auto turn = view_.last_turn();
  const bool last = i >= turn.first && i < turn.second;
  if (view_.is_fixed(i)) {
    if (entry.message.role == Role::kSystem) {
      report.why = "a system message";
    } else {
      report.why = entry.message.constraint ? "an order" : "pinned";
    }
    return report;
  }
  if (const Segment* segment = segment_of(outcome_.segments, i)) {
    report_covered(report, i, *segment);
  } else if (const Applied::Part* cut = find(outcome_.cut, i)) {
    report.fate = MessageFate::kShortened;
    report.tokens_after = cut->tokens;
    report.why = "only its end fits in the window";
  } else if (i >= outcome_.window_first && i < outcome_.window_end && !last) {
    report.fate = MessageFate::kDropped;
    report.tokens_after = 0;
    report.why = "older than what fits";
  } else if (report.why.empty()) {
    report.why = last ? "the last user turn" : "recent";
  }
  return report;
}

std::vector<std::size_t> changed_messages(const Outcome& before, const Outcome& after,
                                          std::size_t known, std::size_t size) {
  std::vector<std::size_t> changed;
  const auto add_range = [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < std::min(end, size); ++i) changed.push_back(i);
  };
  add_range(known, size);
  for (const SegmentPtr& segment : after.segments) {
    if (std::ranges::find(before.segments, segment) != before.segments.end()) continue;
    // New ones: what they cover newly, and what was quoted until now.
    std::size_t at = segment->first;
    for (const SegmentPtr& old : before.segments) {
      if (old->first < segment->first || old->end > segment->end) continue;
      add_range(at, old->first);
      at = old->end;
      for (const Quote& quote : old->quotes) changed.push_back(quote.entry);
    }
    add_range(at, segment->end);
  }
  const auto window = std::minmax(before.window_end, after.window_end);
  add_range(window.first, window.second);
  for (const Outcome* outcome : {&before, &after}) {
    for (const Applied::Part& part : outcome->cut) changed.push_back(part.entry);
    for (const Quote& quote : outcome->evidence) changed.push_back(quote.entry);
  }
  std::ranges::sort(changed);
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  return changed;
}

}  // namespace incipit::compress
