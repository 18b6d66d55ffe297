// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CONVERSATION_H_
#define INCIPIT_CONVERSATION_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "incipit/engine.h"
#include "incipit/export.h"
#include "incipit/sampling.h"

namespace incipit::inline v0 {

/// A chat that keeps the token ids of its turns.
///
/// Text that a model made and that is tokenized again may give other ids, and then nothing from
/// there on is found in the cache. A Conversation sends the very ids that were generated, so each
/// turn reuses everything before it. Where the model's chat template renders earlier turns
/// otherwise in later prompts (Qwen 3 strips thoughts), the prompt follows it, and the result says
/// what that costs: GenerateResult::rewritten_tokens.
///
/// Not thread-safe: one per chat. The engine must outlive it.
class INCIPIT_API Conversation {
 public:
  /// `system` may be empty: then the model's own default, if its chat format has one.
  /// Throws Error{kInvalidArgument} where the model has no chat format that incipit knows.
  explicit Conversation(Engine& engine, std::string_view system = {});
  ~Conversation();
  /// A moved-from conversation may only be destroyed or assigned to.
  Conversation(Conversation&&) noexcept;
  /// As the move constructor.
  Conversation& operator=(Conversation&&) noexcept;

  /// Adds the user's message, answers it and keeps the answer. Throws as
  /// Engine::generate_with_cache(); the conversation is then as it was before the call.
  GenerateResult send(std::string_view user, const GenerateParams& params = {});
  /// The same for any messages, such as the results of tools.
  GenerateResult send(std::span<const Message> messages, const GenerateParams& params = {});

  /// All turns so far as token ids.
  std::span<const TokenId> token_ids() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace incipit::inline v0

#endif  // INCIPIT_CONVERSATION_H_
