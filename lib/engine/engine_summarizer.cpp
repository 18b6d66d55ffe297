// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "incipit/engine.h"
#include "text/segmentation.h"

namespace incipit::inline v0 {
namespace {

// Of the last message to be summarised, so that the model knows where to stop. The order is short:
// of a prompt of 4,000 tokens and the order, 99 % shall come from the cache.
constexpr std::size_t kQuotedBytes = 16;

// Words that a token is, about: a limit in words is one that models understand.
constexpr std::size_t kWordsNumerator = 2, kWordsDenominator = 3;

std::string front_of(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && end < kQuotedBytes && text[end] != '\n') {
    end = text::grapheme_end(text, end);
  }
  return std::string(text.substr(0, end));
}

// Whether the last prompt shows the segment: only then is it in the cache, and in the question.
bool shows(std::span<const Message> prompt, const Message& wanted) {
  return std::ranges::any_of(prompt, [&](const Message& message) {
    return message.role == wanted.role && message.text == wanted.text;
  });
}

// A text that was cut off, without the sentence that it broke off in.
std::string whole_sentences(const std::string& text) {
  const std::vector<text::Span> sentences = text::sentences(text);
  return sentences.size() < 2 ? text : text.substr(0, sentences.back().begin);
}

}  // namespace

Summarizer engine_summarizer(Engine& engine, GenerateParams params) {
  return [&engine, params = std::move(params)](const SummaryRequest& request) {
    if (request.segment.empty()) return std::string();
    std::vector<Message> conversation(request.prompt.begin(), request.prompt.end());
    const Message& last = request.segment.back();
    if (!shows(request.prompt, request.segment.front())) {
      conversation.assign(request.segment.begin(), request.segment.end());
    }
    Message order{.role = Role::kUser};
    order.text = "Summarize all up to \"" + front_of(shown_text(last)) + "\" in " +
                 std::to_string(request.max_tokens * kWordsNumerator / kWordsDenominator) +
                 " words. Keep names and numbers.";
    conversation.push_back(std::move(order));
    GenerateParams own = params;
    own.max_tokens = request.max_tokens;
    GenerateResult result = engine.generate_with_cache(conversation, own);
    return result.finish == FinishReason::kMaxTokens ? whole_sentences(result.text)
                                                     : std::move(result.text);
  };
}

}  // namespace incipit::inline v0
