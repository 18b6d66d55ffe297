// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/engine_impl.h"

namespace incipit::inline v0 {
namespace {

// What stands around the messages of a conversation.
std::size_t frame_tokens(const text::ChatFormat& format, const text::Tokenizer& tokenizer,
                         std::span<const Message> conversation, const ChatOptions& options) {
  const std::size_t whole = tokenizer.encode(format.render(conversation, options)).size();
  std::size_t messages = 0;
  for (const Message& message : conversation) {
    messages += tokenizer.encode(format.render_turn(message)).size();
  }
  return whole - std::min(whole, messages);
}

std::size_t frame_tokens(const text::ChatFormat& format, const text::Tokenizer& tokenizer,
                         const ChatOptions& options) {
  const std::vector<Message> conversation = {{.role = Role::kSystem}, {.role = Role::kUser}};
  try {  // with the default system message, where there is one
    return frame_tokens(format, tokenizer, std::span(conversation).last(1), options);
  } catch (const Error&) {  // the format insists on a system message
    return frame_tokens(format, tokenizer, conversation, options);
  }
}

}  // namespace

TokenCounter Engine::token_counter(const ChatOptions& options) const {
  impl_->check_process();
  const Impl& impl = *impl_;
  TokenCounter counter;
  counter.text = [&impl](std::string_view text) {
    const std::vector<text::TextPiece> pieces = {{std::string(text), false}};
    return impl.tokenizer().encode(pieces).size();
  };
  if (!impl.info().chat) return counter;
  counter.message = [&impl](const Message& message) {
    return impl.tokenizer().encode(impl.chat_format().render_turn(message)).size();
  };
  counter.prompt = frame_tokens(impl.chat_format(), impl.tokenizer(), options);
  return counter;
}

}  // namespace incipit::inline v0
