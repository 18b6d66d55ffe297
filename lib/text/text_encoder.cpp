// SPDX-License-Identifier: Apache-2.0
#include "text/text_encoder.h"

#include <algorithm>

#include "text/utf8.h"

namespace incipit::text {

TextEncoder::TextEncoder(const EncodingRules& rules, std::vector<TokenId>& out, const Seam& before)
    : rules_(rules), out_(out), before_(before) {
  if (rules.pattern) scanner_.emplace(*rules.pattern);
}

void TextEncoder::raw(std::string_view text) {
  SpecialTokenSearch search(text, /*open=*/false, before_.raw);
  for (std::size_t done = 0;;) {
    const SpecialTokenSearch::Match match = search.next(rules_.specials);
    plain(text.substr(done, match.begin - done), /*open=*/false);
    if (match.id < 0) return;
    special(match.id);
    done = match.end;
  }
}

void TextEncoder::pieces(std::span<const TextPiece> pieces) {
  // Normalised text runs across the borders of pieces, so nothing is looked for in it.
  find_normalized_ = false;
  std::string text;
  for (const TextPiece& piece : pieces) text += piece.text;
  SpecialTokenSearch search(text);
  std::size_t done = 0, end = 0;
  for (const TextPiece& piece : pieces) {
    search.skip_to(end);
    end += piece.text.size();
    const SpecialTokens& tokens = piece.control ? rules_.control : rules_.contents;
    while (true) {
      const SpecialTokenSearch::Match match = search.next(tokens, end);
      if (match.id < 0) break;
      plain(std::string_view(text).substr(done, match.begin - done), /*open=*/false);
      special(match.id);
      done = match.end;
    }
  }
  plain(std::string_view(text).substr(done), /*open=*/false);
}

std::size_t TextEncoder::raw_stable(std::string_view text) {
  SpecialTokenSearch search(text, /*open=*/true);
  for (std::size_t done = 0;;) {
    const SpecialTokenSearch::Match match = search.next(rules_.specials);
    const std::string_view before = text.substr(done, match.begin - done);
    if (match.id < 0) {
      done += plain(before, /*open=*/true);
      before_.raw = search.seam_at(done);
      return done;
    }
    plain(before, /*open=*/false);
    special(match.id);
    done = match.end;
  }
}

void TextEncoder::special(TokenId id) {
  out_.push_back(id);
  before_ = {.end = End::kSpecialToken};
}

std::size_t TextEncoder::plain(std::string_view text, bool open) {
  for (std::size_t done = 0;;) {
    const std::string_view rest = text.substr(done);
    const std::size_t front = valid_front(rest);
    const Utf8Unit bad = front == rest.size() ? Utf8Unit{} : first_unit(rest.substr(front));
    if (front == rest.size() || (open && bad.kind == Utf8Unit::Kind::kIncomplete)) {
      return done + valid(rest.substr(0, front), open);
    }
    valid(rest.substr(0, front), /*open=*/false);
    invalid(rest.substr(front, bad.bytes));
    done += front + bad.bytes;
  }
}

std::size_t TextEncoder::valid(std::string_view text, bool open) {
  if (open) text = text.substr(0, rules_.normalizer.closed_front(text));
  if (text.empty()) return 0;
  const bool begins = before_.end == End::kNothing || before_.end == End::kSpecialToken;
  NormalizedText form(rules_.normalizer, text, begins);
  const std::string_view normal = form.text();

  struct {
    std::size_t bytes, normal_bytes, ids;
    End end;
  } stable = {0, 0, out_.size(), before_.end};
  const auto settle = [&](std::size_t position, End end) {
    const auto source = open ? form.source_position(position) : std::nullopt;
    if (source) stable = {*source, position, out_.size(), end};
  };
  SpecialTokenSearch search(normal, open, before_.normalized);
  End before = before_.end;
  for (std::size_t done = 0;;) {
    const SpecialTokenSearch::Match match =
        find_normalized_ ? search.next(rules_.normalized)
                         : SpecialTokenSearch::Match{normal.size(), normal.size(), -1};
    between(normal.substr(done, match.begin - done), before, open && match.id < 0,
            [&](std::size_t size) { settle(done + size, End::kText); });
    if (match.id < 0) break;
    out_.push_back(match.id);
    before = End::kNormalizedToken;
    done = match.end;
    settle(done, before);
  }
  if (!open) {
    before_ = {.end = End::kText};
    return text.size();
  }
  out_.resize(stable.ids);
  before_ = {.end = stable.end, .normalized = search.seam_at(stable.normal_bytes)};
  return stable.bytes;
}

/// What stands between two tokens. `settled` hears how much of the text is encoded for good, again
/// and again.
template <class Settled>
void TextEncoder::between(std::string_view text, End before, bool open, const Settled& settled) {
  if (open) text = text.substr(0, rules_.spacing.closed_front(text));
  if (text.empty()) return;
  if (rules_.spacing.empty()) return pre_tokens(text, open, settled);
  const bool begins = rules_.spacing_at_begin_only ? before == End::kNothing : before != End::kText;
  NormalizedText spaced(rules_.spacing, text, begins);
  pre_tokens(spaced.text(), open, [&](std::size_t size) {
    if (!open) return;
    if (const auto source = spaced.source_position(size)) settled(*source);
  });
}

template <class Settled>
void TextEncoder::pre_tokens(std::string_view text, bool open, const Settled& settled) {
  if (scanner_) return pre_tokens_by_pattern(text, open, settled);
  if (!rules_.split_before.empty()) return pre_tokens_by_mark(text, open, settled);
  if (const std::size_t size = subwords(text, open); size > 0) settled(size);
}

template <class Settled>
void TextEncoder::pre_tokens_by_pattern(std::string_view text, bool open, const Settled& settled) {
  for (std::size_t done = 0; done < text.size();) {
    const std::string_view rest = text.substr(done);
    const std::size_t size = open ? scanner_->next_in_open_text(rest) : scanner_->next(rest);
    if (size == 0) return;
    subwords(rest.substr(0, size), /*open=*/false);
    done += size;
    settled(done);
  }
}

template <class Settled>
void TextEncoder::pre_tokens_by_mark(std::string_view text, bool open, const Settled& settled) {
  const std::string_view mark = rules_.split_before;
  for (std::size_t done = 0; done < text.size();) {
    const std::string_view rest = text.substr(done);
    const std::size_t end =
        std::min(rest.find(mark, rest.starts_with(mark) ? mark.size() : 0), rest.size());
    const std::size_t size = subwords(rest.substr(0, end), open && end == rest.size());
    if (size > 0) settled(done + size);
    done += end;
  }
}

/// The tokens of a pre-token.
std::size_t TextEncoder::subwords(std::string_view text, bool open) {
  if (open) {
    const bool falls_apart = rules_.bpe && !rules_.pattern;
    return falls_apart ? rules_.bpe->encode_open(text, scratch_, out_) : 0;
  }
  if (rules_.unigram) {
    rules_.unigram->encode(text, unigram_scratch_, out_);
  } else {
    rules_.bpe->encode(text, scratch_, out_);
  }
  return text.size();
}

void TextEncoder::invalid(std::string_view bytes) {
  for (const char byte : bytes) {
    if (rules_.unigram) {
      rules_.unigram->encode_byte(byte, out_);
    } else {
      rules_.bpe->encode_byte(byte, out_);
    }
  }
  before_ = {.end = End::kText};
}

}  // namespace incipit::text
