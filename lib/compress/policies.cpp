// SPDX-License-Identifier: Apache-2.0
#include "compress/policies.h"

#include <algorithm>

#include "base/check.h"

namespace incipit::compress {
namespace {

// This part of summary_watermark is left free by a summary, for turns to come.
constexpr std::size_t kRoomPart = 8;

/// The newest pieces of message `i` that fit in `room`, all that the format adds included; none of
/// them where even one is too long.
Cut cut_message(const Draft& draft, std::size_t i, std::size_t room) {
  const Message& shown = draft.view()[i].shown();
  const std::vector<Piece> parts = pieces(shown.text);
  const auto behind = [&](std::size_t part) {
    const std::size_t begin = part < parts.size() ? parts[part].span.begin : shown.text.size();
    return cut_front(shown, i, begin, draft.options().counter);
  };
  // Only the whole is counted, as the sum of its parts is not what it takes; few times, as it may
  // be long.
  Cut best = behind(parts.size());
  for (std::size_t low = 0, high = parts.size(); low < high;) {
    const std::size_t middle = low + (high - low) / 2;
    Cut cut = behind(middle);
    if (cut.tokens > room) {
      low = middle + 1;
    } else {
      best = std::move(cut);
      high = middle;
    }
  }
  return best;
}

/// Makes the unit [first, end) fit in `room`: its longest messages lose their fronts. False where
/// that leaves nothing worth it.
bool cut_unit(Draft& draft, std::size_t first, std::size_t end, std::size_t room) {
  const View& view = draft.view();
  std::vector<std::size_t> longest;
  std::size_t tokens = 0;
  for (std::size_t i = first; i < end; ++i) {
    if (draft.always_stays(i)) continue;
    tokens += view[i].tokens;
    const Message& shown = view[i].shown();
    if (!shown.no_compress && !shown.ephemeral && !shown.text.empty()) longest.push_back(i);
  }
  std::ranges::stable_sort(longest, std::ranges::greater{},
                           [&](std::size_t i) { return view[i].tokens; });
  bool is_left = false;  // any text
  for (const std::size_t i : longest) {
    if (tokens <= room) break;
    const std::size_t excess = tokens - room;
    const std::size_t whole = view[i].tokens;
    draft.cuts.push_back(cut_message(draft, i, whole - std::min(whole, excess)));
    tokens -= whole - std::min(whole, draft.cuts.back().tokens);
    is_left = is_left || !draft.cuts.back().message.text.empty();
  }
  std::ranges::sort(draft.cuts, {}, &Cut::entry);
  if (tokens <= room && is_left) return true;
  draft.cuts.clear();
  return false;
}

std::string infeasible(const Draft& draft) {
  const View& view = draft.view();
  std::size_t fixed = 0, orders = 0, last = 0;
  const auto turn = view.last_turn();
  for (const std::uint32_t i : view.history().fixed()) fixed += view[i].tokens;
  for (std::size_t i = turn.first; i < turn.second; ++i) {
    if (!view.is_fixed(i)) last += view[i].tokens;
  }
  for (const SegmentPtr& segment : draft.segments) orders += segment->tokens;
  return "what must stay in the prompt takes " + std::to_string(draft.tokens()) +
         " tokens of a budget of " + std::to_string(draft.budget()) +
         ": system and pinned messages " + std::to_string(fixed) + ", the last user turn " +
         std::to_string(last) + ", orders of earlier turns " + std::to_string(orders) +
         "; raise the budget, or pin and send less";
}

}  // namespace

std::size_t open_unit(const View& view) {
  if (view.size() == 0) return 0;
  const std::size_t unit = view[view.size() - 1].unit;
  return view[unit].message.tool_calls.size() < view.size() - unit ? view.size() : unit;
}

void fit_window(Draft& draft, std::size_t first) {
  const View& view = draft.view();
  const std::size_t n = view.size();
  // What always stays, and then from the newest back what still fits.
  draft.window_first = first;
  draft.window_end = n;
  std::size_t tokens = draft.tokens();
  std::size_t at = n;
  while (at > first) {
    const std::size_t begin = view[at - 1].unit;
    std::size_t unit = 0;
    for (std::size_t i = begin; i < at; ++i) unit += draft.always_stays(i) ? 0 : view[i].tokens;
    if (tokens + unit > draft.budget()) {
      if (tokens < draft.budget() && cut_unit(draft, begin, at, draft.budget() - tokens))
        at = begin;
      break;
    }
    tokens += unit;
    at = begin;
  }
  draft.window_end = std::max(at, first);
}

void fit_summary(Draft& draft) {
  const View& view = draft.view();
  const CompressorOptions& options = draft.options().compressor;
  const std::size_t watermark = share(options.summary_watermark, draft.budget());
  const std::size_t tokens = draft.tokens();
  if (tokens <= watermark) return;
  std::size_t recent = view.size(), turns = 0;
  while (recent > 0 && turns < options.recent_turns_kept) {
    if (view.is_turn(--recent)) ++turns;
  }
  if (turns < options.recent_turns_kept) recent = 0;
  recent = std::min({recent, view.last_turn().first, open_unit(view)});
  // A segment stays whole: a log may be of other options.
  if (const Segment* segment = segment_of(draft.segments, recent);
      segment != nullptr && segment->first < recent) {
    recent = segment->end;
  }
  if (recent > 0) {
    // Some turns have room then, so that not each of them asks for a summary.
    const std::size_t limit = draft.options().fills && tokens > draft.budget()
                                  ? draft.budget()
                                  : watermark - watermark / kRoomPart;
    const std::size_t others = tokens - draft.loose_tokens(0, recent);
    draft.replace(0, recent, limit > others ? limit - others : 0);
  }
  fit_window(draft, draft.first_live(0));
}

void make_it_fit(Draft& draft) {
  switch (draft.options().compressor.policy) {
    case CompressionPolicy::kNone:
      break;
    case CompressionPolicy::kWindow:
      fit_window(draft, 0);
      break;
    case CompressionPolicy::kDedupSummaryTruncate:
      fit_summary(draft);
      break;
    case CompressionPolicy::kFrozenSegments:
      fit_frozen(draft);
      break;
  }
  if (draft.tokens() > draft.budget()) {
    base::throw_error(ErrorCode::kBudgetInfeasible, infeasible(draft));
  }
}

}  // namespace incipit::compress
