// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <utility>

#include "engine/engine_impl.h"

namespace incipit::inline v0 {

// A nested class has the visibility of its public class unless it says otherwise.
class __attribute__((visibility("hidden"))) Generation::Impl {
 public:
  Impl(const Engine::Impl& engine, std::unique_ptr<engine::Delivery> delivery,
       std::size_t rewritten_tokens = 0)
      : engine_(engine), delivery_(std::move(delivery)), rewritten_tokens_(rewritten_tokens) {}
  // The threads of the parent do not exist in a child of fork(): nobody would end the request.
  ~Impl() {
    if (getpid() != engine_.process()) static_cast<void>(delivery_.release());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  engine::Delivery& delivery() const {
    engine_.check_process();
    return *delivery_;
  }
  GenerateResult wait() const {
    GenerateResult result = delivery().finish();
    result.rewritten_tokens = rewritten_tokens_;
    return result;
  }
  void cancel() const noexcept {
    if (getpid() == engine_.process()) delivery_->cancel(FinishReason::kStopped);
  }

 private:
  const Engine::Impl& engine_;
  std::unique_ptr<engine::Delivery> delivery_;
  std::size_t rewritten_tokens_;  // of the result
};

Generation::Generation(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Generation::~Generation() = default;
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;

std::optional<std::string> Generation::next() { return impl_->delivery().next(); }
bool Generation::poll() { return impl_->delivery().poll(); }
GenerateResult Generation::wait() { return impl_->wait(); }
void Generation::cancel() noexcept { impl_->cancel(); }

Generation Engine::submit(std::span<const TokenId> prompt, GenerateParams params) {
  const auto called = engine::Clock::now();
  impl_->check_process();
  return Generation(std::make_unique<Generation::Impl>(
      *impl_, impl_->submit({prompt.begin(), prompt.end()}, std::move(params), called)));
}

Generation Engine::submit(std::string_view static_text, std::string_view dynamic_prompt,
                          GenerateParams params) {
  return submit(tokenize(static_text, dynamic_prompt), std::move(params));
}

Generation Engine::submit(std::span<const Message> conversation, GenerateParams params) {
  const auto called = engine::Clock::now();
  engine::ChatPrompt prompt = impl_->chat_prompt(conversation, params.chat);
  return Generation(std::make_unique<Generation::Impl>(
      *impl_, impl_->submit(std::move(prompt.ids), std::move(params), called),
      prompt.rewritten_tokens));
}

}  // namespace incipit::inline v0
