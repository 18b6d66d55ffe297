// SPDX-License-Identifier: Apache-2.0
#include "text/chat_format.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "text/role_name.h"

namespace incipit::text {
namespace {

constexpr std::string_view kTurnBegin = "<|im_start|>";
constexpr std::string_view kTurnEnd = "<|im_end|>\n";
constexpr std::string_view kAssistantTurn = "<|im_start|>assistant\n";

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t done = 0; done < text.size();) {
    const std::size_t at = std::min(text.find(from, done), text.size());
    out += text.substr(done, at - done);
    if (at < text.size()) out += to;
    done = at + from.size();
  }
  return out;
}

/// The template with its freedoms of writing taken out: quotes, subscripts, spaces between tokens,
/// and line ends written as such or as an escape (in a file's JSON they may be either). Text inside
/// string literals loses its spaces, too.
std::string normalized(std::string_view chat_template) {
  std::string text = replace_all(chat_template, "\n", "\\n");
  std::erase_if(text, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
  text = replace_all(text, "\"", "'");
  text = replace_all(text, "['role']", ".role");
  return replace_all(text, "['content']", ".content");
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// A message is its turn's begin, role, line end, content, turn's end, line end.
bool renders_chatml_turns(std::string_view text) {
  constexpr std::string_view kBegin = R"('<|im_start|>'+message.role+'\n'+)";
  constexpr std::array<std::string_view, 2> kContents = {"message.content", "content"};
  constexpr std::array<std::string_view, 2> kEnds = {R"(+'<|im_end|>'+'\n')", R"(+'<|im_end|>\n')"};
  for (std::size_t at = text.find(kBegin); at != std::string_view::npos;
       at = text.find(kBegin, at + 1)) {
    const std::string_view turn = text.substr(at + kBegin.size());
    for (const std::string_view content : kContents) {
      if (!turn.starts_with(content)) continue;
      const std::string_view rest = turn.substr(content.size());
      if (std::any_of(kEnds.begin(), kEnds.end(),
                      [&](std::string_view end) { return rest.starts_with(end); })) {
        return true;
      }
    }
  }
  return false;
}

/// The text of the system turn that the template spells out as one literal; empty: none. nullopt
/// where a literal begins a system turn but does not end it.
std::optional<std::string> default_system_of(std::string_view chat_template) {
  const std::string text = replace_all(chat_template, R"(\n)", "\n");
  constexpr std::string_view kBegin = "<|im_start|>system\n";
  constexpr std::string_view kEnd = "<|im_end|>";
  for (std::size_t at = text.find(kBegin); at != std::string::npos;
       at = text.find(kBegin, at + 1)) {
    const std::string_view rest = std::string_view(text).substr(at + kBegin.size());
    const std::string_view literal = rest.substr(0, rest.find_first_of("'\"\\"));
    if (literal.empty()) continue;  // the message's own text follows
    const std::size_t end = literal.find(kEnd);
    if (end == std::string_view::npos) return std::nullopt;
    return std::string(literal.substr(0, end));
  }
  return std::string();
}

TextPiece control(std::string text) { return {std::move(text), true}; }

void append_turn(std::vector<TextPiece>& pieces, Role role, const std::string& text) {
  std::string begin(kTurnBegin);
  begin += role_name(role);
  begin += '\n';
  pieces.push_back(control(std::move(begin)));
  pieces.push_back({text, false});
  pieces.push_back(control(std::string(kTurnEnd)));
}

}  // namespace

std::optional<ChatFormat> ChatFormat::recognize(std::string_view chat_template) {
  // Long enough for any template that is not hostile.
  constexpr std::size_t kMaxBytes = 1 << 16;
  if (chat_template.size() > kMaxBytes) return std::nullopt;
  const std::string text = normalized(chat_template);
  if (!renders_chatml_turns(text) || !contains(text, R"('<|im_start|>assistant\n')")) {
    return std::nullopt;
  }
  // What makes a rendering differ from plain ChatML: other separators, a BOS, the date, contents
  // that are changed, an opened thought.
  constexpr std::array<std::string_view, 6> kForeign = {
      "<|im_sep|>", "bos_token", "strftime_now", "|trim", ".strip()", R"({{-'<think>\n'}})"};
  if (std::any_of(kForeign.begin(), kForeign.end(),
                  [&](std::string_view foreign) { return contains(text, foreign); })) {
    return std::nullopt;
  }
  std::optional<std::string> default_system = default_system_of(chat_template);
  if (!default_system) return std::nullopt;
  ChatFormat format;
  format.default_system_ = std::move(*default_system);
  return format;
}

std::vector<TextPiece> ChatFormat::render(std::span<const Message> conversation) const {
  if (conversation.empty()) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "a conversation needs at least one message to be rendered");
  }
  std::vector<TextPiece> pieces;
  if (!default_system_.empty() && conversation.front().role != Role::kSystem) {
    append_turn(pieces, Role::kSystem, default_system_);
  }
  for (const Message& message : conversation)
    append_turn(pieces, message.role, shown_text(message));
  pieces.push_back(control(std::string(kAssistantTurn)));
  return pieces;
}

std::vector<TextPiece> ChatFormat::render_turn(const Message& message) const {
  std::vector<TextPiece> pieces;
  append_turn(pieces, message.role, shown_text(message));
  return pieces;
}

std::vector<TextPiece> ChatFormat::render_next(std::span<const Message> messages) const {
  std::vector<TextPiece> pieces = {control(std::string(kTurnEnd))};
  for (const Message& message : messages) append_turn(pieces, message.role, shown_text(message));
  pieces.push_back(control(std::string(kAssistantTurn)));
  return pieces;
}

std::string join(std::span<const TextPiece> pieces) {
  std::string text;
  for (const TextPiece& piece : pieces) text += piece.text;
  return text;
}

}  // namespace incipit::text
