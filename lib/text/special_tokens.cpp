// SPDX-License-Identifier: Apache-2.0
#include "text/special_tokens.h"

#include <algorithm>

#include "base/check.h"

namespace incipit::text {
namespace {

// Bounds the work per byte of text, which is at most the length of the longest token.
constexpr std::size_t kMaxBytes = 1024;

unsigned char byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

}  // namespace

SpecialTokens::SpecialTokens(std::vector<std::pair<std::string, TokenId>> tokens)
    : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const auto& token) { return token.first.empty(); });
  std::sort(tokens_.begin(), tokens_.end());
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const auto& [text, id] = tokens_[i];
    if (text.size() > kMaxBytes) {
      base::throw_error(ErrorCode::kModelUnreadable,
                        "special token " + std::to_string(id) + " has " +
                            std::to_string(text.size()) + " bytes; at most " +
                            std::to_string(kMaxBytes) + " are supported");
    }
    if (i > 0 && text == tokens_[i - 1].first) {
      base::throw_error(ErrorCode::kModelUnreadable,
                        "special tokens " + std::to_string(tokens_[i - 1].second) + " and " +
                            std::to_string(id) + " have the same text \"" + text + "\"");
    }
    begins_[byte_at(text, 0)] = true;
  }
}

SpecialTokens::Walk SpecialTokens::walk(std::string_view text) const {
  Walk walk;
  auto first = tokens_.begin();
  auto last = tokens_.end();
  // [first, last) are the tokens that begin with the first `depth` bytes of the text.
  for (std::size_t depth = 0; first != last; ++depth) {
    if (first->first.size() == depth) {
      walk.length = depth;
      walk.id = first->second;
      if (++first == last) break;
    }
    if (depth == text.size()) {
      walk.undecided = true;
      break;
    }
    const unsigned char byte = byte_at(text, depth);
    first = std::partition_point(
        first, last, [&](const auto& token) { return byte_at(token.first, depth) < byte; });
    last = std::partition_point(
        first, last, [&](const auto& token) { return byte_at(token.first, depth) == byte; });
  }
  return walk;
}

SpecialTokens::Match SpecialTokens::find(std::string_view text, std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (!begins_[byte_at(text, at)]) continue;
    const Walk found = walk(text.substr(at));
    if (found.id >= 0) return {at, at + found.length, found.id};
  }
  return {text.size(), text.size(), -1};
}

SpecialTokens::Match SpecialTokens::find_in_open_text(std::string_view text,
                                                      std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (!begins_[byte_at(text, at)]) continue;
    const Walk found = walk(text.substr(at));
    if (found.undecided) return {at, at, -1};
    if (found.id >= 0) return {at, at + found.length, found.id};
  }
  return {text.size(), text.size(), -1};
}

}  // namespace incipit::text
