// SPDX-License-Identifier: Apache-2.0
#include "incipit/conversation.h"

#include <utility>
#include <vector>

#include "engine/engine_impl.h"

namespace incipit::inline v0 {

class Conversation::Impl {
 public:
  Impl(Engine& engine, std::string_view system) : engine_(engine), system_(system) {
    static_cast<void>(engine_.impl_->chat_format());
  }

  GenerateResult send(std::string_view user, const GenerateParams& params) {
    const text::ChatFormat& format = engine_.impl_->chat_format();
    std::vector<Message> messages;
    if (ids_.empty() && !system_.empty()) messages.push_back({Role::kSystem, system_});
    messages.push_back({Role::kUser, std::string(user)});
    const auto pieces = ids_.empty() ? format.render(messages) : format.render_next(messages);
    const std::vector<TokenId> added = engine_.impl_->tokenizer().encode(pieces);
    std::vector<TokenId> prompt = ids_;
    prompt.insert(prompt.end(), added.begin(), added.end());
    GenerateResult result = engine_.generate_with_cache(prompt, params);
    prompt.insert(prompt.end(), result.token_ids.begin(), result.token_ids.end());
    ids_ = std::move(prompt);
    return result;
  }

  std::span<const TokenId> token_ids() const noexcept { return ids_; }

 private:
  Engine& engine_;
  const std::string system_;
  std::vector<TokenId> ids_;
};

Conversation::Conversation(Engine& engine, std::string_view system)
    : impl_(std::make_unique<Impl>(engine, system)) {}
Conversation::~Conversation() = default;
Conversation::Conversation(Conversation&&) noexcept = default;
Conversation& Conversation::operator=(Conversation&&) noexcept = default;

GenerateResult Conversation::send(std::string_view user, const GenerateParams& params) {
  return impl_->send(user, params);
}

std::span<const TokenId> Conversation::token_ids() const noexcept { return impl_->token_ids(); }

}  // namespace incipit::inline v0
