// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_ENGINE_IMPL_H_
#define INCIPIT_ENGINE_ENGINE_IMPL_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "engine/chat_prompt.h"
#include "engine/delivery.h"
#include "engine/make_device.h"
#include "engine/scheduler.h"
#include "incipit/engine.h"
#include "kv/kv_cache.h"
#include "kv/prefix_cache_impl.h"
#include "model/model_file.h"
#include "model/transformer.h"
#include "text/chat_format.h"
#include "text/prompt_encoder.h"
#include "text/tokenizer.h"

namespace incipit::inline v0 {

// A nested class has the visibility of its public class unless it says otherwise.
class __attribute__((visibility("hidden"))) Engine::Impl {
 public:
  Impl(const EngineOptions& options, std::shared_ptr<PrefixCache> cache);

  /// Whether a request may use what others computed, and leave what it computes.
  enum class Reuse { kYes, kNo };

  /// Runs one request to its end on behalf of the calling thread.
  GenerateResult run(engine::Request::Kind kind, std::vector<TokenId> prompt, Reuse reuse,
                     const GenerateParams& params, engine::Clock::time_point called);

  /// The same for messages.
  GenerateResult run_chat(std::span<const Message> conversation, Reuse reuse,
                          const GenerateParams& params, engine::Clock::time_point called);

  /// Starts one. The request keeps `params`.
  std::unique_ptr<engine::Delivery> submit(std::vector<TokenId> prompt, GenerateParams params,
                                           engine::Clock::time_point called);

  /// See the functions of these names in Engine.
  CacheValidation validate(const std::vector<TokenId>& prompt, GenerateParams params);
  std::size_t pin(const std::vector<TokenId>& prompt, std::chrono::seconds duration,
                  const CacheLabels& labels);
  MissExplanation explain_miss(const std::vector<TokenId>& prompt, const CacheLabels& labels);
  /// No tokens: the namespace.
  Invalidation invalidate_prefix(std::span<const TokenId> tokens, const CacheLabels& labels);

  /// Throws Error{kForked} in a child of fork().
  void check_process() const;
  pid_t process() const noexcept { return process_; }
  /// Throws Error{kInvalidArgument} where the model has none that is known.
  const text::ChatFormat& chat_format() const;
  engine::ChatPrompt chat_prompt(std::span<const Message> conversation,
                                 const ChatOptions& options) const;

  const ModelInfo& info() const noexcept { return info_; }
  const text::Tokenizer& tokenizer() const noexcept { return tokenizer_; }
  text::PromptEncoder& prompt_encoder() noexcept { return prompt_encoder_; }
  PrefixCache& cache() noexcept { return *cache_; }
  const kv::KvCache& pool() const noexcept { return *kv_; }
  EngineStats stats() const { return scheduler_->stats(); }

 private:
  Impl(const EngineOptions& options, std::shared_ptr<PrefixCache> cache,
       std::unique_ptr<const model::ModelFile> file);
  model::Transformer load_transformer(const EngineOptions& options, const model::ModelFile& file);
  GenerateResult run_once(engine::Request::Kind kind, std::vector<TokenId> prompt, Reuse reuse,
                          const GenerateParams& params, engine::Clock::time_point called);
  std::shared_ptr<engine::Request> make_request(engine::Request::Kind kind,
                                                std::vector<TokenId> prompt, Reuse reuse,
                                                GenerateParams params,
                                                engine::Clock::time_point called);
  bool is_validated();
  void validate_before(const std::vector<TokenId>& prompt, const GenerateParams& params,
                       engine::Clock::time_point called);
  kv::CacheRegistry& registry() const noexcept { return *cache_->impl_; }
  void check_prompt(engine::Request::Kind kind, const std::vector<TokenId>& prompt) const;
  void check_room(std::size_t total_tokens) const;
  std::string name_space(const CacheLabels& labels) const;

  const pid_t process_;
  const base::Log log_;
  std::unique_ptr<device::Device> device_;
  const text::Tokenizer tokenizer_;
  text::PromptEncoder prompt_encoder_;
  const bool has_chat_template_;
  const std::unique_ptr<const text::ChatFormat> chat_format_;  // null: none that is known
  model::Transformer transformer_;
  const std::size_t context_;  // tokens
  const std::shared_ptr<PrefixCache> cache_;
  const std::unique_ptr<kv::KvCache> kv_;
  const std::string model_fields_;  // of the namespace: all that changes KV bytes
  const PrefixCache::Impl::Registration registration_;  // of kv_ with cache_
  ModelInfo info_;
  std::atomic<std::uint64_t> hits_{0};            // requests that may be validated
  std::unique_ptr<engine::Scheduler> scheduler_;  // last: its thread uses all of the above
};

}  // namespace incipit::inline v0

#endif  // INCIPIT_ENGINE_ENGINE_IMPL_H_
