// SPDX-License-Identifier: Apache-2.0
#include "engine/chat_prompt.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/caught.h"
#include "text/ascii.h"

namespace incipit::engine {
namespace {

std::size_t common_front(std::string_view a, std::string_view b) noexcept {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(end.first - a.begin());
}

/// How many of the tokens before are no front of those now.
std::size_t count_rewritten(std::span<const TokenId> before, std::span<const TokenId> now) {
  const auto end = std::mismatch(before.begin(), before.end(), now.begin(), now.end());
  return static_cast<std::size_t>(before.end() - end.first);
}

/// What pieces hold behind their first `bytes` bytes.
std::vector<text::TextPiece> behind(std::vector<text::TextPiece> pieces, std::size_t bytes) {
  auto piece = pieces.begin();
  while (piece != pieces.end() && piece->text.size() <= bytes) bytes -= (piece++)->text.size();
  pieces.erase(pieces.begin(), piece);
  if (!pieces.empty()) pieces.front().text.erase(0, bytes);
  return pieces;
}

/// The last answer, where something follows it; else the size.
std::size_t last_answer(std::span<const Message> conversation) noexcept {
  for (std::size_t i = conversation.size(); i-- > 1;) {
    if (conversation[i].role != Role::kAssistant) continue;
    return i + 1 == conversation.size() ? conversation.size() : i;
  }
  return conversation.size();
}

}  // namespace

ChatPrompt make_chat_prompt(const text::ChatFormat& format, const text::Tokenizer& tokenizer,
                            std::span<const Message> conversation, const ChatOptions& options) {
  const std::vector<text::TextPiece> pieces = format.render(conversation, options);
  ChatPrompt prompt;
  prompt.ids = tokenizer.encode(pieces);
  const std::size_t answer = last_answer(conversation);
  if (answer == conversation.size()) return prompt;
  std::vector<text::TextPiece> before;
  // Nobody has asked for this one: a format that refuses it has nothing to rewrite.
  if (base::caught([&] { before = format.render(conversation.first(answer), options); })) {
    return prompt;
  }
  const std::string text = text::join(pieces), text_before = text::join(before);
  // A template's spaces around an answer are no rewriting: the model makes them itself.
  if (text.starts_with(text_before) &&
      text::trimmed(std::string_view(text).substr(text_before.size()))
          .starts_with(text::trimmed(conversation[answer].text))) {
    return prompt;
  }
  before.push_back({conversation[answer].text, false});
  prompt.rewritten_tokens = count_rewritten(tokenizer.encode(before), prompt.ids);
  return prompt;
}

ChatHistory::Turn ChatHistory::next(std::span<const Message> added,
                                    const ChatOptions& options) const {
  Turn turn;
  turn.messages = messages_;
  turn.messages.insert(turn.messages.end(), added.begin(), added.end());
  std::vector<text::TextPiece> pieces = format_.render(turn.messages, options);
  turn.text = text::join(pieces);
  const std::size_t common = common_front(text_, turn.text);
  while (turn.kept < marks_.size() && marks_[turn.kept].bytes <= common) ++turn.kept;
  const Mark from = turn.kept == 0 ? Mark() : marks_[turn.kept - 1];
  turn.prompt.ids.assign(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(from.ids));
  turn.end = from.end;
  const std::vector<TokenId> rest =
      tokenizer_.encode(behind(std::move(pieces), from.bytes), turn.end);
  turn.prompt.ids.insert(turn.prompt.ids.end(), rest.begin(), rest.end());
  turn.prompt.rewritten_tokens = count_rewritten(ids_, turn.prompt.ids);
  return turn;
}

void ChatHistory::add(Turn turn, std::string answer, std::span<const TokenId> answer_ids) {
  marks_.resize(turn.kept);
  marks_.push_back({turn.text.size(), turn.prompt.ids.size(), turn.end});
  text_ = std::move(turn.text) + answer;
  ids_ = std::move(turn.prompt.ids);
  ids_.insert(ids_.end(), answer_ids.begin(), answer_ids.end());
  marks_.push_back({text_.size(), ids_.size(), answer.empty() ? turn.end : End::kText});
  messages_ = std::move(turn.messages);
  messages_.push_back({Role::kAssistant, std::move(answer)});
}

}  // namespace incipit::engine
