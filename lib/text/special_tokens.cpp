// SPDX-License-Identifier: Apache-2.0
#include "text/special_tokens.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

unsigned char byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

bool begins_with_word(std::string_view text) {
  if (text.empty()) return false;
  const Utf8Unit unit = first_unit(text);
  return unit.kind == Utf8Unit::Kind::kCharacter && is_word_character(unit.code);
}

/// Length of a begun character at the end of `text`.
std::size_t begun_character(std::string_view text) {
  for (std::size_t size = 1; size <= 3 && size <= text.size(); ++size) {
    const Utf8Unit unit = first_unit(text.substr(text.size() - size));
    if (unit.kind == Utf8Unit::Kind::kIncomplete) return size;
  }
  return 0;
}

}  // namespace

SpecialTokens::SpecialTokens(std::vector<SpecialToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const SpecialToken& token) { return token.text.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const SpecialToken& a, const SpecialToken& b) { return a.text < b.text; });
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const auto& [text, id, rule] = tokens_[i];
    if (text.size() > kMaxBytes) {
      base::throw_error(ErrorCode::kModelUnreadable,
                        "special token " + std::to_string(id) + " has " +
                            std::to_string(text.size()) + " bytes; at most " +
                            std::to_string(kMaxBytes) + " are supported");
    }
    if (i > 0 && text == tokens_[i - 1].text) {
      base::throw_error(ErrorCode::kModelUnreadable,
                        "special tokens " + std::to_string(tokens_[i - 1].id) + " and " +
                            std::to_string(id) + " have the same text \"" + text + "\"");
    }
    begins_[byte_at(text, 0)] = true;
    strip_left_ = strip_left_ || rule.strip_left;
  }
}

SpecialTokens::Walk SpecialTokens::walk(std::string_view text) const {
  Walk walk;
  auto first = tokens_.begin();
  auto last = tokens_.end();
  // [first, last) are the tokens that begin with the first `depth` bytes of the text.
  for (std::size_t depth = 0; first != last; ++depth) {
    if (first->text.size() == depth) {
      walk.token = &*first;
      if (++first == last) break;
    }
    if (depth == text.size()) {
      walk.undecided = true;
      break;
    }
    const unsigned char byte = byte_at(text, depth);
    first = std::partition_point(
        first, last, [&](const auto& token) { return byte_at(token.text, depth) < byte; });
    last = std::partition_point(
        first, last, [&](const auto& token) { return byte_at(token.text, depth) == byte; });
  }
  return walk;
}

SpecialTokenSearch::Match SpecialTokenSearch::next(const SpecialTokens& tokens, std::size_t limit) {
  while (at_ < limit) {
    if (!tokens.begins_[byte_at(text_, at_)]) {
      ++at_;
      continue;
    }
    const SpecialTokens::Walk found = tokens.walk(text_.substr(at_, limit - at_));
    if (open_ && found.undecided) return stop(tokens, at_);
    if (found.token == nullptr) {
      ++at_;
      continue;
    }
    const auto& [text, id, rule] = *found.token;
    std::size_t begin = at_, end = at_ + text.size();
    if (rule.whole_word) {
      if (open_ && is_undecided_behind(end)) return stop(tokens, begin);
      at_ = end;
      if (is_word_beside(begin, end)) {
        if (open_ && text.size() > 1) passed_.emplace_back(begin, end);
        continue;
      }
    }
    if (rule.strip_right) {
      const std::size_t behind = std::max(end, taken_);  // white space up to here, if farther
      const std::size_t stripped = behind + white_space_at_front(text_.substr(behind));
      if (open_ && (is_undecided_behind(stripped) || is_undecided_in(tokens, behind, stripped))) {
        return stop(tokens, begin);
      }
      at_ = end;
      end = stripped;
    } else {
      at_ = end;
    }
    begin = std::max(begin, taken_);
    if (rule.strip_left) begin -= white_space_at_back(text_.substr(taken_, begin - taken_));
    taken_ = std::max(end, taken_);
    return {begin, taken_, id};
  }
  return stop(tokens, limit);
}

void SpecialTokenSearch::skip_to(std::size_t position) { at_ = std::max(at_, position); }

SpecialTokenSearch::Seam SpecialTokenSearch::seam_at(std::size_t position) const {
  if (position == 0) return before_;
  const auto over = std::partition_point(
      passed_.begin(), passed_.end(), [&](const auto& token) { return token.second <= position; });
  const bool inside = over != passed_.end() && over->first < position;
  return {is_word_before(position), inside ? over->second - position : 0};
}

bool SpecialTokenSearch::is_word_before(std::size_t position) const {
  if (position == 0) return before_.after_word;
  const std::string_view before = text_.substr(0, position);
  return begins_with_word(before.substr(position - last_character(before)));
}

bool SpecialTokenSearch::is_word_beside(std::size_t begin, std::size_t end) const {
  return is_word_before(begin) || begins_with_word(text_.substr(end));
}

bool SpecialTokenSearch::is_undecided_behind(std::size_t end) const {
  return end == text_.size() || first_unit(text_.substr(end)).kind == Utf8Unit::Kind::kIncomplete;
}

/// Whether a token that begins in this white space may depend on what follows the text. Its match
/// would begin where the white space has been taken, and could not be left to the rest.
bool SpecialTokenSearch::is_undecided_in(const SpecialTokens& tokens, std::size_t begin,
                                         std::size_t end) const {
  for (std::size_t at = begin; at < end; ++at) {
    if (!tokens.begins_[byte_at(text_, at)]) continue;
    const SpecialTokens::Walk found = tokens.walk(text_.substr(at));
    if (found.undecided) return true;
    if (found.token == nullptr) continue;
    if (found.token->rule.whole_word || found.token->rule.strip_right) return true;
  }
  return false;
}

SpecialTokenSearch::Match SpecialTokenSearch::stop(const SpecialTokens& tokens,
                                                   std::size_t position) const {
  position = std::max(position, taken_);
  // The next token may take the white space before it, which a begun character may be, too.
  if (open_ && tokens.strip_left_) {
    position -= begun_character(text_.substr(taken_, position - taken_));
    position -= white_space_at_back(text_.substr(taken_, position - taken_));
  }
  return {position, position, -1};
}

}  // namespace incipit::text
