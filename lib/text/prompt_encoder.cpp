// SPDX-License-Identifier: Apache-2.0
#include "text/prompt_encoder.h"

#include <algorithm>

namespace incipit::text {

PromptEncoder::PromptEncoder(const Tokenizer& tokenizer, std::size_t capacity)
    : tokenizer_(tokenizer), capacity_(capacity) {}

std::vector<TokenId> PromptEncoder::encode(std::string_view static_text,
                                           std::string_view dynamic_prompt) {
  const std::shared_ptr<const Known> known = this->known(static_text);
  std::string rest(static_text.substr(known->prefix.bytes));
  rest += dynamic_prompt;
  std::vector<TokenId> ids = known->prefix.ids;
  const std::vector<TokenId> rest_ids = tokenizer_.encode_rest(rest, known->prefix.seam);
  ids.insert(ids.end(), rest_ids.begin(), rest_ids.end());
  return ids;
}

std::shared_ptr<const PromptEncoder::Known> PromptEncoder::known(std::string_view static_text) {
  {
    const std::lock_guard lock(mutex_);
    if (auto found = find(static_text)) return found;
  }
  auto fresh = std::make_shared<const Known>(
      Known{std::string(static_text), tokenizer_.encode_stable(static_text)});
  const std::lock_guard lock(mutex_);
  if (auto found = find(static_text)) return found;  // another caller was faster
  known_.push_front(fresh);
  if (known_.size() > capacity_) known_.pop_back();
  return fresh;
}

std::shared_ptr<const PromptEncoder::Known> PromptEncoder::find(std::string_view static_text) {
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const auto& known) { return known->text == static_text; });
  if (found == known_.end()) return nullptr;
  known_.splice(known_.begin(), known_, found);
  return known_.front();
}

}  // namespace incipit::text
