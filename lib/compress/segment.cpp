// SPDX-License-Identifier: Apache-2.0
#include "compress/segment.h"

#include <algorithm>
#include <utility>

#include "compress/extract.h"
#include "text/ascii.h"

namespace incipit::compress {
namespace {

using text::is_space;

constexpr std::string_view kOrdersHeading = "Still in force:";

// A label, and the line break behind the message.
constexpr std::size_t kLabelTokens = 3;
constexpr std::size_t kLabelBytes = 12;

std::string_view speaker(Role role) {
  switch (role) {
    case Role::kUser:
      return "User:";
    case Role::kAssistant:
      return "Assistant:";
    case Role::kTool:
      return "Tool:";
    case Role::kSystem:
      break;
  }
  return "System:";
}

std::vector<const Quote*> pointers_to(const std::vector<Quote>& quotes) {
  std::vector<const Quote*> pointers;
  pointers.reserve(quotes.size());
  for (const Quote& quote : quotes) pointers.push_back(&quote);
  return pointers;
}

bool is_block(PieceKind kind) { return kind != PieceKind::kSentence; }

void break_line(std::string& text) {
  while (!text.empty() && is_space(text.back())) text.pop_back();
  if (!text.empty()) text += '\n';
}

// Two parts of one message that did not follow each other.
void join(std::string& text, const Quote& last, const Quote& next) {
  if (last.begin + last.text.size() == next.begin) return;
  if (is_block(last.kind) || is_block(next.kind)) break_line(text);
}

std::string render(std::string_view heading, std::string_view summary,
                   std::span<const Quote* const> quotes) {
  std::size_t bytes = heading.size() + summary.size();
  for (const Quote* quote : quotes) bytes += quote->text.size() + kLabelBytes;
  std::string text;
  text.reserve(bytes);
  text += heading;
  if (!summary.empty()) {
    text += '\n';
    text += summary;
  }
  const Quote* last = nullptr;
  for (const Quote* const one : quotes) {
    const Quote& quote = *one;
    if (quote.order) continue;
    if (last == nullptr || last->entry != quote.entry) {
      break_line(text);
      text += speaker(quote.role);
      text += is_block(quote.kind) ? '\n' : ' ';
    } else {
      join(text, *last, quote);
    }
    text += quote.text;
    last = &quote;
  }
  bool first = true;
  for (const Quote* const one : quotes) {
    const Quote& quote = *one;
    if (!quote.order) continue;
    // White space at the end of an order stays: it is word for word.
    if (first) break_line(text);
    if (text.back() != '\n') text += '\n';
    if (std::exchange(first, false)) {
      text += kOrdersHeading;
      text += '\n';
    }
    text += "- ";
    text += quote.text;
  }
  if (first) {
    while (!text.empty() && is_space(text.back())) text.pop_back();
  }
  return text;
}

}  // namespace

std::string render_quotes(std::string_view heading, std::string_view summary,
                          const std::vector<Quote>& quotes) {
  return render(heading, summary, pointers_to(quotes));
}

Fitted fit_quotes(std::string_view heading, std::string_view summary, std::vector<Quote> quotes,
                  std::size_t max_tokens, const TokenCounter& counter) {
  Message frame{.role = Role::kSystem};
  frame.text = heading;
  const std::size_t overhead = count_message(counter, frame);
  std::vector<Candidate> candidates;
  candidates.reserve(quotes.size());
  std::uint32_t entry = UINT32_MAX;
  for (const Quote& quote : quotes) {
    const std::size_t label = quote.entry == std::exchange(entry, quote.entry) ? 0 : kLabelTokens;
    // What counts as nothing needs the heading all the same.
    const std::size_t tokens = std::max<std::size_t>(quote.tokens, 1) + label;
    candidates.push_back({tokens, quote.salience, quote.must_keep});
  }

  // The sum of the parts is only about what the whole takes: the room for it is corrected until the
  // whole fits, between what was too little and what was too much.
  constexpr int kRounds = 10;
  const std::vector<std::size_t> order = order_of(candidates);
  std::vector<const Quote*> chosen;
  std::vector<std::size_t> best_choice;
  Fitted best;
  bool fits = false;
  std::size_t room = max_tokens > overhead ? max_tokens - overhead : 0;
  std::size_t too_little = 0, too_much = SIZE_MAX;
  for (int round = 0; round < kRounds; ++round) {
    if (round == kRounds - 1 && !fits) room = 0;  // only what must be kept
    std::vector<std::size_t> choice = extract(candidates, order, room);
    const bool is_all = choice.size() == quotes.size();
    chosen.clear();
    for (const std::size_t i : choice) chosen.push_back(&quotes[i]);
    Message message{.role = Role::kSystem};
    if (!chosen.empty() || !summary.empty()) {
      message.text = render(heading, summary, chosen);
    }
    const std::size_t tokens = message.text.empty() ? 0 : count_message(counter, message);
    const bool fit = tokens <= max_tokens;
    const bool better = fit ? !fits || tokens > best.tokens : !fits && tokens < best.tokens;
    if (round == 0 || better) {
      best = {{}, std::move(message), tokens};
      best_choice = std::move(choice);
    }
    fits = fits || fit;
    if (fit) {
      if (is_all || max_tokens - tokens <= max_tokens / 128) break;
      too_little = room;
      room += max_tokens - tokens;
    } else {
      if (room == 0) break;
      too_much = room;
      room -= std::min(room, tokens - max_tokens);
    }
    if (fits && too_much <= too_little + 1) break;
    if (room <= too_little || room >= too_much) room = too_little + (too_much - too_little) / 2;
  }
  best.quotes.reserve(best_choice.size());
  for (const std::size_t i : best_choice) best.quotes.push_back(std::move(quotes[i]));
  return best;
}

void finish_segment(Segment& segment, const TokenCounter& counter) {
  segment.message = {.role = Role::kSystem};
  segment.tokens = 0;
  if (!segment.quotes.empty() || !segment.summary.empty()) {
    segment.message.text = render_quotes(kSegmentHeading, segment.summary, segment.quotes);
    segment.tokens = count_message(counter, segment.message);
  }
  segment.digest = digest_of(segment.message);
}

const Segment* segment_of(std::span<const SegmentPtr> segments, std::size_t i) {
  const auto after = std::ranges::upper_bound(
      segments, i, {}, [](const SegmentPtr& segment) { return segment->first; });
  if (after == segments.begin()) return nullptr;
  const Segment& segment = **std::prev(after);
  return i < segment.end ? &segment : nullptr;
}

void insert_segment(std::vector<SegmentPtr>& segments, SegmentPtr segment) {
  std::erase_if(segments, [&](const SegmentPtr& old) {
    return old->first >= segment->first && old->end <= segment->end;
  });
  const auto at = std::ranges::lower_bound(segments, segment->first, {},
                                           [](const SegmentPtr& s) { return s->first; });
  segments.insert(at, std::move(segment));
}

}  // namespace incipit::compress
