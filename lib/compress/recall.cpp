// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/check.h"
#include "compress/policies.h"
#include "compress/request.h"
#include "compress/text_map.h"
#include "text/ascii.h"

namespace incipit::compress {
namespace {

using text::trimmed;

// Passages that a question is compared with in full.
constexpr std::size_t kHits = 32;
// Of the question, from its end: more is a text, not a question.
constexpr std::size_t kQuestionBytes = 2000;

// A question is answered only by what has this share of its weight, in 1/16, and stands out from
// what comes some places behind it, which may have this share of its score.
constexpr std::uint64_t kQuestionGate = 8;
constexpr std::uint64_t kQuestionSpread = 14;
// What asks nothing in so many words needs more.
constexpr std::uint64_t kOtherGate = 10;
constexpr std::uint64_t kOtherSpread = 7;
constexpr std::size_t kRunnersUp = 4;
// In so many documents there are more that are alike, and a query must have this weight, in 1/65536
// bit, to be looked up.
constexpr std::uint32_t kManyDocuments = 1024;
constexpr std::size_t kManyRunnersUp = 8;
constexpr std::uint64_t kLeastWeight = 6 << 16;
// What scores less than this share of the best passage is left out, in 1/16.
constexpr std::uint64_t kCutOff = 7;

/// What the last user turn asks: its questions, or all that it says where it has none.
struct Query {
  std::string text = {};
  bool asks = false;
};

Query query_of(const View& view) {
  const auto turn = view.last_turn();
  std::string all, questions;
  for (std::size_t i = turn.first; i < turn.second; ++i) {
    const std::string& text = view[i].shown().text;
    all += text + '\n';
    for (const text::Span& sentence : text::sentences(text)) {
      if (is_request(sentence.of(text))) questions += std::string(sentence.of(text)) + '\n';
    }
  }
  Query query;
  query.asks = !questions.empty();
  query.text = query.asks ? std::move(questions) : std::move(all);
  if (query.text.size() > kQuestionBytes) {
    std::size_t cut = query.text.size() - kQuestionBytes;
    while (cut < query.text.size() && (query.text[cut] & 0xC0) == 0x80) ++cut;  // whole characters
    query.text.erase(0, cut);
  }
  return query;
}

struct Found {
  Passage passage = {};
  std::uint64_t score = 0;
};

/// The passages that answer the question best, best first. A passage lends a part of its score to
/// its neighbours: an answer often shares no word with what is asked, but with what was asked then.
std::vector<Found> search(const Draft& draft, std::size_t end, const Query& query) {
  const History& history = draft.view().history();
  // Segments stand for most of a long chat, and for all of its front.
  const std::size_t first_live = std::max(end, draft.first_live(0));
  const auto is_gone = [&](std::uint32_t document) {
    const std::size_t entry = history.entry_of(document);
    return entry < first_live || draft.is_covered(entry);
  };
  // Words that most messages have tell none of them apart, and looking them up is what costs.
  const std::uint64_t weight = history.index().weight(query.text);
  const bool is_long = history.index().documents() >= kManyDocuments;
  if (is_long && weight < kLeastWeight) return {};
  // In a long chat most things were asked before, in words that are nearer to the question than any
  // answer's: such passages would leave no room for what answers.
  const auto weigh = [&](std::uint32_t document, std::uint64_t score) -> std::uint64_t {
    if (!is_gone(document)) return 0;
    return is_long && history.asks(document) ? score / 2 : score;
  };
  std::vector<retrieve::Bm25::Hit> hits = history.index().search(query.text, kHits, weigh);
  if (hits.empty()) return {};
  const std::uint64_t gate = query.asks ? kQuestionGate : kOtherGate;
  const std::uint64_t spread = query.asks ? kQuestionSpread : kOtherSpread;
  const std::uint64_t best = hits.front().score;
  if (best * 16 < weight * gate) return {};
  const std::size_t runner_up = is_long ? kManyRunnersUp : kRunnersUp;
  if (hits.size() > runner_up && hits[runner_up].score * 16 > best * spread) return {};

  std::map<std::uint32_t, std::uint64_t> scores;  // by document
  for (const auto& hit : hits) {
    scores[hit.document] += hit.score;
    const std::uint32_t next = hit.document + 1;
    if (next < history.index().documents() && is_gone(next)) scores[next] += hit.score / 2;
    if (hit.document > 0 && is_gone(hit.document - 1)) {
      scores[hit.document - 1] += hit.score * 3 / 10;
    }
  }
  std::vector<Found> found;
  for (const auto& [document, score] : scores) found.push_back({history.passage(document), score});
  // Newer before older where scores are equal.
  std::ranges::reverse(found);
  std::ranges::stable_sort(found, std::ranges::greater{}, &Found::score);
  const std::uint64_t least = found.front().score * kCutOff / 16;
  std::erase_if(found, [&](const Found& one) { return one.score < least; });
  return found;
}

void rescore(const Draft& draft, const std::string& question, std::vector<Found>& found) {
  const TextScorer& relevance = draft.options().compressor.relevance;
  if (!relevance || found.empty()) return;
  std::vector<std::string_view> texts;
  for (const Found& one : found) {
    texts.push_back(one.passage.span.of(draft.view()[one.passage.entry].shown().text));
  }
  const std::vector<std::uint64_t> scores = relevance(question, texts);
  if (scores.size() != texts.size()) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "CompressorOptions::relevance must return one number per text");
  }
  for (std::size_t i = 0; i < found.size(); ++i) found[i].score = scores[i];
  std::ranges::stable_sort(found, std::ranges::greater{}, &Found::score);
}

/// The pieces of a passage, each with a fair share of its score.
std::vector<Quote> quotes_of(const Draft& draft, const Found& found) {
  const Message& shown = draft.view()[found.passage.entry].shown();
  const std::string_view text = found.passage.span.of(shown.text);
  std::vector<Quote> quotes;
  const auto add = [&](std::string_view part, std::size_t begin, PieceKind kind) {
    if (trimmed(part).empty()) return;
    Quote& quote = quotes.emplace_back();
    quote.entry = found.passage.entry;
    quote.role = shown.role;
    quote.begin = begin;
    quote.text = part;
    quote.kind = kind;
    quote.tokens = draft.options().counter.text(part);
    quote.salience = found.score;
  };
  if (shown.no_compress) {
    add(shown.text, 0, PieceKind::kSentence);
    return quotes;
  }
  for (const Piece& piece : pieces(text)) {
    add(piece.span.of(text), found.passage.span.begin + piece.span.begin, piece.kind);
  }
  return quotes;
}

}  // namespace

Evidence recall(const Draft& draft, std::size_t end, std::size_t max_tokens) {
  const View& view = draft.view();
  if (max_tokens == 0 || view.last_turn().second == view.last_turn().first) return {};
  const Query query = query_of(view);
  std::vector<Found> found = search(draft, end, query);
  if (found.empty()) return {};
  rescore(draft, query.text, found);

  // What a segment quotes is in the prompt already, and once is enough.
  TextMap known;
  for (const SegmentPtr& segment : draft.segments) {
    for (const Quote& quote : segment->quotes) known.emplace(trimmed(quote.text), 0);
  }
  std::vector<Quote> quotes;
  for (const Found& one : found) {
    if (view.is_fixed(one.passage.entry)) continue;
    const std::string_view shown = view[one.passage.entry].shown().text;
    for (Quote& quote : quotes_of(draft, one)) {
      const std::string_view said = shown.substr(quote.begin, quote.text.size());
      if (known.emplace(trimmed(said), 0).second) quotes.push_back(std::move(quote));
    }
  }
  if (quotes.empty()) return {};
  std::ranges::stable_sort(quotes, [](const Quote& a, const Quote& b) {
    return a.entry != b.entry ? a.entry < b.entry : a.begin < b.begin;
  });
  // The whole of a message may be found more than once, where it is kept as it is.
  const auto repeated = std::unique(
      quotes.begin(), quotes.end(),
      [](const Quote& a, const Quote& b) { return a.entry == b.entry && a.begin == b.begin; });
  quotes.erase(repeated, quotes.end());
  Fitted fitted =
      fit_quotes(kEvidenceHeading, {}, std::move(quotes), max_tokens, draft.options().counter);
  if (fitted.tokens == 0 || fitted.tokens > max_tokens) return {};
  return {std::move(fitted.message), fitted.tokens, std::move(fitted.quotes)};
}

}  // namespace incipit::compress
