// SPDX-License-Identifier: Apache-2.0
#include "compress/draft.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "compress/guard.h"
#include "compress/orders.h"
#include "compress/salience.h"
#include "compress/text_map.h"
#include "text/ascii.h"
#include "text/utf8.h"

namespace incipit::compress {
namespace {

using text::trimmed;

// Orders that were found, not marked, may take this part of a segment.
constexpr std::size_t kOrdersPart = 4;

// Repetitions of shorter texts say something: "yes", "ok".
constexpr std::size_t kShortestRepetition = 12;

// Tokens; less room is not worth asking for.
constexpr std::size_t kShortestSummary = 16;

// Numbers and identifiers that stand in a text, as one sorted list.
std::vector<std::string> facts_of(std::string_view text) {
  std::vector<std::string> facts;
  for_each_critical(text, [&](CriticalKind kind, std::string_view token, std::size_t) {
    if (kind == CriticalKind::kNumber || kind == CriticalKind::kIdentifier ||
        kind == CriticalKind::kPath) {
      facts.emplace_back(token);
    }
  });
  std::ranges::sort(facts);
  facts.erase(std::unique(facts.begin(), facts.end()), facts.end());
  return facts;
}

}  // namespace

Cut cut_front(const Message& shown, std::size_t entry, std::size_t begin,
              const TokenCounter& counter) {
  Cut cut{entry, shown, 0};
  cut.message.text.erase(0, begin);
  cut.tokens = count_message(counter, cut.message);
  return cut;
}

Draft::Draft(const View& view, const Options& options, std::vector<SegmentPtr> segments_now)
    : segments(std::move(segments_now)), view_(view), options_(options) {}

bool Draft::always_stays(std::size_t i) const {
  const auto turn = view_.last_turn();
  return view_.is_fixed(i) || (i >= turn.first && i < turn.second);
}

bool Draft::is_covered(std::size_t i) const { return segment_of(segments, i) != nullptr; }

std::size_t Draft::first_live(std::size_t i) const {
  for (const SegmentPtr& segment : segments) {
    if (segment->first <= i && i < segment->end) i = segment->end;
  }
  return i;
}

void Draft::for_each_item(base::FunctionRef<void(const Item&, bool)> take) const {
  const auto turn = view_.last_turn();
  bool evidence_is_due = evidence.tokens > 0;
  const auto take_entry = [&](std::size_t i) {
    const Entry& entry = view_[i];
    const bool here = i >= turn.first && std::exchange(evidence_is_due, false);
    if (here) take({&evidence.message, evidence.tokens, digest_of(evidence.message)}, true);
    const auto cut = std::ranges::lower_bound(cuts, i, {}, &Cut::entry);
    if (cut != cuts.end() && cut->entry == i) {
      take({&cut->message, cut->tokens, digest_of(cut->message)}, false);
    } else {
      take({&entry.shown(), entry.tokens, entry.digest}, false);
    }
  };
  const auto take_live = [&](std::size_t first, std::size_t end) {
    const std::size_t left_out = std::clamp(window_first, first, end);
    for (std::size_t i = first; i < left_out; ++i) take_entry(i);
    const std::size_t back_in = std::clamp(window_end, left_out, end);
    // Few of what is left out stays: not all of it is looked at.
    std::vector<std::size_t> stay;
    const auto& fixed = view_.history().fixed();
    for (auto at = std::ranges::lower_bound(fixed, left_out); at != fixed.end() && *at < back_in;
         ++at) {
      stay.push_back(*at);
    }
    for (std::size_t i = turn.first; i < turn.second; ++i) {
      if (i >= left_out && i < back_in && !view_.is_fixed(i)) stay.push_back(i);
    }
    std::ranges::sort(stay);
    for (const std::size_t i : stay) take_entry(i);
    for (std::size_t i = back_in; i < end; ++i) take_entry(i);
  };
  std::size_t at = 0;
  for (const SegmentPtr& segment : segments) {
    take_live(at, segment->first);
    for (const std::uint32_t i : segment->fixed) take_entry(i);
    if (segment->tokens > 0) take({&segment->message, segment->tokens, segment->digest}, false);
    at = segment->end;
  }
  take_live(at, view_.size());
}

std::vector<Item> Draft::items() const {
  std::vector<Item> items;
  for_each_item([&](const Item& item, bool) { items.push_back(item); });
  return items;
}

std::size_t Draft::durable_items() const {
  // The last user turn moves behind the reply's evidence, so it lasts; evidence does not.
  std::size_t count = 0, durable = 0;
  bool volatile_from_here = false;
  for_each_item([&](const Item&, bool is_evidence) {
    volatile_from_here = volatile_from_here || is_evidence;
    durable = volatile_from_here ? durable : ++count;
  });
  return durable;
}

std::size_t Draft::tokens() const {
  std::size_t sum = options_.counter.prompt;
  for_each_item([&](const Item& item, bool) { sum += item.tokens; });
  return sum;
}

std::size_t Draft::loose_tokens(std::size_t first, std::size_t end) const {
  std::size_t sum = 0;
  // Leaps over segments: they may stand for very many messages.
  for (std::size_t i = first_live(first); i < end; i = first_live(i + 1)) {
    if (!view_.is_fixed(i)) sum += view_[i].tokens;
  }
  for (const SegmentPtr& segment : segments) {
    if (segment->first >= first && segment->end <= end) sum += segment->tokens;
  }
  return sum;
}

std::size_t Draft::segment_tokens() const {
  std::size_t sum = 0;
  for (const SegmentPtr& segment : segments) sum += segment->tokens;
  return sum;
}

/// The quotes that message `i` offers.
void Draft::add_quotes(std::size_t i, std::vector<Quote>& quotes) const {
  const Message& shown = view_[i].shown();
  if (shown.ephemeral && !shown.constraint) return;
  const auto add = [&](std::string_view text, std::size_t begin, PieceKind kind) -> Quote& {
    Quote& quote = quotes.emplace_back();
    quote.entry = static_cast<std::uint32_t>(i);
    quote.role = shown.role;
    quote.begin = begin;
    quote.text = text;
    quote.kind = kind;
    return quote;
  };
  if (shown.constraint) {
    Quote& quote = add(shown.text, 0, PieceKind::kSentence);
    quote.order = quote.must_keep = true;
  } else if (shown.no_compress) {
    add(shown.text, 0, PieceKind::kSentence);
  } else {
    for (const Piece& piece : pieces(shown.text)) {
      const std::string_view text = piece.span.of(shown.text);
      if (trimmed(text).empty()) continue;
      Quote& quote = add(text, piece.span.begin, piece.kind);
      quote.order = options_.compressor.find_constraints && shown.role == Role::kUser &&
                    piece.kind == PieceKind::kSentence && is_order(text);
    }
  }
  for (const ToolCall& call : shown.tool_calls) {
    // Behind the text, and never next to another part.
    add(call.name + " " + call.arguments, shown.text.size() + 1, PieceKind::kLog);
  }
}

/// What a segment for [first, end) chooses from, old to new.
std::vector<Quote> Draft::gather(std::size_t first, std::size_t end) const {
  constexpr std::size_t kSomeQuotes = 128;
  std::vector<Quote> quotes;
  quotes.reserve(kSomeQuotes);
  for (std::size_t i = first; i < end;) {
    const auto segment =
        std::ranges::find(segments, i, [](const SegmentPtr& s) { return s->first; });
    if (segment != segments.end() && (*segment)->end > i) {
      const Segment& old = **segment;
      const std::size_t known = quotes.size();
      for (const Piece& piece : pieces(old.summary)) {
        Quote& quote = quotes.emplace_back();
        quote.entry = static_cast<std::uint32_t>(i);
        quote.role = Role::kSystem;
        quote.begin = piece.span.begin;
        quote.text = piece.span.of(old.summary);
        quote.kind = piece.kind;
        quote.tokens = options_.counter.text(quote.text);
      }
      score(std::span(quotes).subspan(known));
      quotes.insert(quotes.end(), old.quotes.begin(), old.quotes.end());
      i = old.end;
      continue;
    }
    if (!view_.is_fixed(i)) {
      const std::size_t known = quotes.size();
      add_quotes(i, quotes);
      const std::span<Quote> fresh = std::span(quotes).subspan(known);
      for (Quote& quote : fresh) quote.tokens = options_.counter.text(quote.text);
      score(fresh);
    }
    ++i;
  }
  // Of what is said twice, the first one; what the evidence quotes is in the prompt already.
  TextMap known;
  for (const Quote& quote : evidence.quotes) {
    // Else it is there for one turn.
    if (options_.fills) known.emplace(trimmed(quote.text), quotes.size());
  }
  std::vector<bool> repeats(quotes.size());
  for (std::size_t i = 0; i < quotes.size(); ++i) {
    const std::string_view text = trimmed(quotes[i].text);
    if (text.size() < kShortestRepetition) continue;
    const auto [said, is_new] = known.emplace(text, i);
    if (is_new || quotes[i].must_keep) continue;
    const bool is_here = *said < quotes.size();
    if (quotes[i].order && !(is_here && quotes[*said].order)) {
      if (is_here) repeats[*said] = true;  // only the second one binds
      *said = i;
    } else {
      repeats[i] = true;
    }
  }
  std::vector<Quote> distinct;
  distinct.reserve(quotes.size());
  for (std::size_t i = 0; i < quotes.size(); ++i) {
    if (!repeats[i]) distinct.push_back(std::move(quotes[i]));
  }
  return distinct;
}

void Draft::score(std::span<Quote> quotes) const {
  if (quotes.empty()) return;
  const TextScorer& importance = options_.compressor.importance;
  if (!importance) {
    for (Quote& quote : quotes) quote.salience = salience(quote.text, view_.history().index());
    return;
  }
  std::vector<std::string_view> texts;
  for (const Quote& quote : quotes) texts.push_back(quote.text);
  const std::vector<std::uint64_t> scores = importance({}, texts);
  if (scores.size() != texts.size()) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "CompressorOptions::importance must return one number per text");
  }
  for (std::size_t i = 0; i < quotes.size(); ++i) quotes[i].salience = scores[i];
}

/// A summary by the host, where it gives one that can be trusted: then only orders stay quotes.
bool Draft::summarize(Segment& segment, std::vector<Quote>& quotes, std::size_t max_tokens) const {
  const TokenCounter& counter = options_.counter;
  std::vector<Quote> orders;
  for (const Quote& quote : quotes) {
    if (quote.order) orders.push_back(quote);
  }
  std::vector<Message> messages;
  for (const SegmentPtr& old : segments) {
    if (old->first >= segment.first && old->end <= segment.end && old->tokens > 0) {
      messages.push_back(old->message);
    }
  }
  for (std::size_t i = first_live(segment.first); i < segment.end; i = first_live(i + 1)) {
    if (!view_.is_fixed(i) && !view_[i].message.ephemeral) {
      messages.push_back(view_[i].shown());
    }
  }
  // What stands around the summary takes its part.
  const std::string around = render_quotes(kSegmentHeading, "\n", orders);
  const std::size_t taken = count_message(counter, {.role = Role::kSystem, .text = around});
  if (taken + kShortestSummary > max_tokens) return false;
  const std::string summary =
      options_.compressor.summarizer({options_.sent, messages, max_tokens - taken});
  if (trimmed(summary).empty() || text::valid_front(summary) != summary.size()) return false;
  std::string source;
  for (const Message& message : messages) source += shown_text(message) + '\n';
  const std::vector<std::string> known = facts_of(source);
  const std::vector<std::string> told = facts_of(summary);
  if (!std::ranges::includes(known, told)) return false;  // it makes up numbers or names
  segment.summary = trimmed(summary);
  segment.quotes = std::move(orders);
  finish_segment(segment, counter);
  if (segment.tokens <= max_tokens && segment.tokens < loose_tokens(segment.first, segment.end)) {
    return true;
  }
  segment.summary.clear();
  return false;
}

void Draft::replace(std::size_t first, std::size_t end, std::size_t max_tokens) {
  Segment segment;
  segment.first = first;
  segment.end = end;
  for (std::size_t i = first; i < end; ++i) {
    const auto old = std::ranges::find(segments, i, [](const SegmentPtr& s) { return s->first; });
    if (old != segments.end()) {
      const auto& fixed = (*old)->fixed;
      segment.fixed.insert(segment.fixed.end(), fixed.begin(), fixed.end());
      i = (*old)->end - 1;
    } else if (view_.is_fixed(i)) {
      segment.fixed.push_back(static_cast<std::uint32_t>(i));
    }
  }
  std::vector<Quote> quotes = gather(first, end);
  std::size_t room = max_tokens / kOrdersPart;
  // The newest orders first: later ones may take earlier ones back.
  for (auto quote = quotes.rbegin(); quote != quotes.rend(); ++quote) {
    if (!quote->order || view_[quote->entry].message.constraint) continue;
    quote->order = quote->must_keep = quote->tokens <= room;
    if (quote->order) room -= quote->tokens;
  }
  if (!options_.compressor.summarizer || quotes.empty() ||
      !summarize(segment, quotes, max_tokens)) {
    Fitted fitted =
        fit_quotes(kSegmentHeading, {}, std::move(quotes), max_tokens, options_.counter);
    segment.quotes = std::move(fitted.quotes);
    segment.message = std::move(fitted.message);
    segment.tokens = fitted.tokens;
    segment.digest = digest_of(segment.message);
  }
  made.push_back(std::make_shared<const Segment>(std::move(segment)));
  insert_segment(segments, made.back());
}

}  // namespace incipit::compress
