// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_impl.h"

namespace incipit::inline v0 {

TokenCounter Engine::token_counter() const {
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
  const Message empty;
  const std::vector<Message> conversation = {empty};
  counter.prompt = impl.tokenizer().encode(impl.chat_format().render(conversation)).size() -
                   counter.message(empty);
  return counter;
}

}  // namespace incipit::inline v0
