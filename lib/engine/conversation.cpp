// SPDX-License-Identifier: Apache-2.0
#include "incipit/conversation.h"

#include <utility>
#include <vector>

#include "engine/chat_prompt.h"
#include "engine/engine_impl.h"

namespace incipit::inline v0 {

class Conversation::Impl {
 public:
  Impl(Engine& engine, std::string_view system)
      : engine_(engine),
        system_(system),
        history_(engine.impl_->chat_format(), engine.impl_->tokenizer()) {}

  GenerateResult send(std::span<const Message> messages, const GenerateParams& params) {
    std::vector<Message> added;
    if (history_.ids().empty() && !system_.empty()) added.push_back({Role::kSystem, system_});
    added.insert(added.end(), messages.begin(), messages.end());
    engine::ChatHistory::Turn turn = history_.next(added, params.chat);
    const std::size_t rewritten = turn.prompt.rewritten_tokens;
    GenerateResult result = engine_.generate_with_cache(turn.prompt.ids, params);
    result.rewritten_tokens = rewritten;
    history_.add(std::move(turn), result.text, result.token_ids);
    return result;
  }

  std::span<const TokenId> token_ids() const noexcept { return history_.ids(); }

 private:
  Engine& engine_;
  const std::string system_;
  engine::ChatHistory history_;
};

Conversation::Conversation(Engine& engine, std::string_view system)
    : impl_(std::make_unique<Impl>(engine, system)) {}
Conversation::~Conversation() = default;
Conversation::Conversation(Conversation&&) noexcept = default;
Conversation& Conversation::operator=(Conversation&&) noexcept = default;

GenerateResult Conversation::send(std::string_view user, const GenerateParams& params) {
  const Message message{Role::kUser, std::string(user)};
  return impl_->send(std::span(&message, 1), params);
}

GenerateResult Conversation::send(std::span<const Message> messages, const GenerateParams& params) {
  return impl_->send(messages, params);
}

std::span<const TokenId> Conversation::token_ids() const noexcept { return impl_->token_ids(); }

}  // namespace incipit::inline v0
