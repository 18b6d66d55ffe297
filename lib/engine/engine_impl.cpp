// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_impl.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/machine.h"
#include "engine/generate_params.h"
#include "engine/host_chat_format.h"

namespace incipit::inline v0 {
namespace {

using engine::Clock;
using Kind = engine::Request::Kind;

// Static texts whose tokens are remembered.
constexpr std::size_t kRememberedTexts = 16;

// Contexts that the default pool holds.
constexpr std::size_t kDefaultContexts = 4;
// Of a pool behind which there are tiers, memory that is there before the first request: else the
// system would spend as long on finding and zeroing it as the tiers on filling it.
constexpr std::size_t kReadyBytes = std::size_t{128} << 20;

std::size_t context_of(const EngineOptions& options, const model::ModelConfig& config) {
  if (options.max_context > config.context) {
    base::throw_error(ErrorCode::kInvalidArgument, "EngineOptions::max_context is " +
                                                       std::to_string(options.max_context) +
                                                       ", but the model was trained for " +
                                                       std::to_string(config.context) + " tokens");
  }
  return options.max_context == 0 ? config.context : options.max_context;
}

// What a block costs: its KV, and what index, policy and accounts keep of it.
std::size_t pool_bytes_per_block(const device::KvLayout& layout) {
  return layout.block_bytes() + kv::KvCache::kBookkeepingBytes;
}

std::size_t pool_blocks(const EngineOptions& options, std::size_t context,
                        const device::KvLayout& layout, device::Device& device) {
  const std::size_t block = pool_bytes_per_block(layout);
  if (options.kv_pool_bytes != 0) {
    if (options.kv_pool_bytes < block) {
      base::throw_error(ErrorCode::kInvalidArgument,
                        "EngineOptions::kv_pool_bytes holds not even one block of " +
                            std::to_string(block) + " bytes (16 tokens)");
    }
    return options.kv_pool_bytes / block;
  }
  if (const std::size_t spare = device.spare_bytes(); spare > 0) {
    return std::max<std::size_t>(1, spare / block);
  }
  const std::size_t contexts =
      kDefaultContexts * (context + device::kBlockTokens - 1) / device::kBlockTokens;
  return std::max<std::size_t>(1, std::min(contexts, base::available_memory() / 4 / block));
}

std::unique_ptr<kv::KvCache> make_kv_cache(const EngineOptions& options,
                                           const PrefixCacheOptions& wanted, std::size_t context,
                                           const model::ModelConfig& config,
                                           device::Device& device) {
  const device::KvLayout layout(engine::kv_shape_of(options, config, device.info()));
  kv::KvCacheOptions cache;
  cache.blocks = pool_blocks(options, context, layout, device);
  cache.eviction = wanted.eviction;
  cache.time_to_live = wanted.time_to_live;
  cache.owner_quota_blocks =
      (wanted.owner_quota_tokens + device::kBlockTokens - 1) / device::kBlockTokens;
  cache.hot_sessions = wanted.hot_sessions;
  cache.event_buffer = wanted.event_buffer;
  if (!wanted.tiers.empty()) cache.ready_bytes = kReadyBytes;
  return std::make_unique<kv::KvCache>(device, layout, cache);
}

// Everything that changes KV bytes.
std::string model_fields(const model::Transformer& transformer, const text::Tokenizer& tokenizer,
                         const device::Device& device, const device::KvLayout& layout) {
  base::FieldWriter fields;
  fields.add("numerics", device.info().numerics)
      .add("weights", base::Bytes(transformer.weights().digest))
      .add("architecture", model::config_fields(transformer.config()))
      .add("tokenizer", tokenizer.fingerprint())
      .add("kv type", device::name(layout.shape().type))
      .add("kv layers", layout.shape().layers)
      .add("kv heads", layout.shape().kv_heads)
      .add("head dim", layout.shape().head_dim);
  return fields.str();
}

ModelInfo describe(const model::Transformer& transformer, const device::Device& device,
                   const device::KvLayout& layout, std::size_t context,
                   const text::ChatFormat* chat_format) {
  const model::ModelConfig& config = transformer.config();
  ModelInfo info;
  info.name = config.name;
  info.architecture = config.architecture;
  info.numerics = device.info().numerics + "/kv-" + std::string(device::name(layout.shape().type));
  info.context = context;
  info.vocabulary = config.vocabulary;
  info.parameters = transformer.weights().parameters;
  info.kv_bytes_per_token = layout.block_bytes() / device::kBlockTokens;
  info.pool_bytes_per_block = pool_bytes_per_block(layout);
  info.threads = device.info().threads;
  info.chat = chat_format != nullptr;
  if (chat_format != nullptr) info.chat_format = chat_format->name();
  return info;
}

std::unique_ptr<const text::ChatFormat> chat_format_of(const EngineOptions& options,
                                                       const model::ModelFile& file) {
  if (options.chat_renderer) {
    return std::make_unique<const engine::HostChatFormat>(options.chat_renderer);
  }
  return text::recognize_chat_format(file.chat_template());
}

std::unique_ptr<const model::ModelFile> open_checked(const EngineOptions& options) {
  if (options.model.empty()) {
    base::throw_error(
        ErrorCode::kInvalidArgument,
        "EngineOptions::model is empty; name a GGUF file or a Hugging Face directory");
  }
  if (options.prefill_chunk == 0) {
    base::throw_error(ErrorCode::kInvalidArgument, "EngineOptions::prefill_chunk must not be 0");
  }
  return model::open_model(options.model);
}

}  // namespace

Engine::Impl::Impl(const EngineOptions& options, std::shared_ptr<PrefixCache> cache)
    : Impl(options, std::move(cache), open_checked(options)) {}

/// The last of what a file is asked for: it takes long. The device may be another one behind it.
model::Transformer Engine::Impl::load_transformer(const EngineOptions& options,
                                                  const model::ModelFile& file) {
  model::ModelWeights weights = engine::load_weights(options, file, device_);
  return {*device_, file.config(), std::move(weights)};
}

Engine::Impl::Impl(const EngineOptions& options, std::shared_ptr<PrefixCache> cache,
                   std::unique_ptr<const model::ModelFile> file)
    : process_(getpid()),
      log_(options.log),
      device_(engine::make_device(options, file->config())),
      tokenizer_(file->tokenizer()),
      prompt_encoder_(tokenizer_, kRememberedTexts),
      has_chat_template_(!file->chat_template().text.empty()),
      chat_format_(chat_format_of(options, *file)),
      transformer_(load_transformer(options, *file)),
      context_(context_of(options, transformer_.config())),
      cache_(cache ? std::move(cache) : std::make_shared<PrefixCache>()),
      kv_(make_kv_cache(options, cache_->impl_->options(), context_, transformer_.config(),
                        *device_)),
      model_fields_(model_fields(transformer_, tokenizer_, *device_, kv_->pool().layout)),
      registration_(cache_->impl_->add(*kv_, *device_, model_fields_)),
      info_(describe(transformer_, *device_, kv_->pool().layout, context_, chat_format_.get())),
      scheduler_(std::make_unique<engine::Scheduler>(
          transformer_, *kv_, cache_->impl_->tiers(), tokenizer_,
          engine::Scheduler::Options{options.prefill_chunk, context_}, log_)) {
  info_.sampling = file->sampling();
  info_.converted = model::converted_types(file->tensors());
  if (options.f16_as_bf16) info_.numerics += "/f16-as-bf16";
  if (log_ && !info_.converted.empty()) {
    log_.info("no kernel has the types of some tensors; computing " + info_.converted +
              ", in more memory and not faster than a model file in that type");
  }
  if (log_) {
    log_.info("loaded " + info_.architecture + " model '" + info_.name +
              "': " + std::to_string(info_.parameters) + " parameters, context " +
              std::to_string(info_.context) + ", KV pool " +
              std::to_string(kv_->pool().blocks * kv_->pool().layout.block_bytes()) +
              " bytes, numerics " + info_.numerics + ", threads " + std::to_string(info_.threads));
  }
}

void Engine::Impl::check_process() const {
  if (getpid() != process_) {
    base::throw_error(ErrorCode::kForked,
                      "this Engine was made before fork(); make one in the child process");
  }
}

const text::ChatFormat& Engine::Impl::chat_format() const {
  if (!chat_format_) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      (has_chat_template_
                           ? "the model's chat template is none of the formats that incipit knows ("
                           : "the model's files hold no chat template; incipit knows (") +
                          std::string(text::known_chat_formats()) +
                          "); give EngineOptions::chat_renderer, or texts instead of messages");
  }
  return *chat_format_;
}

engine::ChatPrompt Engine::Impl::chat_prompt(std::span<const Message> conversation,
                                             const ChatOptions& options) const {
  check_process();
  return engine::make_chat_prompt(chat_format(), tokenizer_, conversation, options);
}

std::string Engine::Impl::name_space(const CacheLabels& labels) const {
  return kv::name_space_of(model_fields_, labels.salt, labels.version);
}

void Engine::Impl::check_prompt(Kind kind, const std::vector<TokenId>& prompt) const {
  if (prompt.empty()) {
    base::throw_error(ErrorCode::kInvalidArgument, "the prompt is empty: it has no tokens");
  }
  for (const TokenId token : prompt) {
    if (token < 0 || static_cast<std::size_t>(token) >= info_.vocabulary) {
      base::throw_error(ErrorCode::kInvalidArgument, "the prompt has the id " +
                                                         std::to_string(token) +
                                                         ", which the vocabulary does not have");
    }
  }
  // One place is left for a token to generate.
  const std::size_t limit = kind == Kind::kGenerate ? context_ - 1 : context_;
  if (prompt.size() > limit) {
    base::throw_error(ErrorCode::kPromptTooLong, "the prompt has " + std::to_string(prompt.size()) +
                                                     " tokens, but the context holds " +
                                                     std::to_string(context_) +
                                                     "; shorten the prompt");
  }
}

void Engine::Impl::check_room(std::size_t total_tokens) const {
  const std::size_t wanted = (total_tokens + device::kBlockTokens - 1) / device::kBlockTokens;
  const device::KvPoolView& pool = kv_->pool();
  if (wanted > pool.blocks) {
    base::throw_error(
        ErrorCode::kOutOfMemory,
        "prompt and max_tokens need " + std::to_string(wanted) + " KV blocks, the pool has " +
            std::to_string(pool.blocks) + "; raise EngineOptions::kv_pool_bytes to at least " +
            std::to_string(wanted * info_.pool_bytes_per_block) + " or lower max_tokens");
  }
}

/// One in PrefixCacheOptions::validate_every.
bool Engine::Impl::is_validated() {
  const std::size_t every = registry().options().validate_every;
  return every > 0 && hits_.fetch_add(1) % every == every - 1;
}

GenerateResult Engine::Impl::run(Kind kind, std::vector<TokenId> prompt, Reuse reuse,
                                 const GenerateParams& params, Clock::time_point called) {
  engine::check_params(params, info_.vocabulary);
  check_prompt(kind, prompt);
  if (reuse == Reuse::kYes && is_validated()) validate_before(prompt, params, called);
  return run_once(kind, std::move(prompt), reuse, params, called);
}

GenerateResult Engine::Impl::run_chat(std::span<const Message> conversation, Reuse reuse,
                                      const GenerateParams& params, Clock::time_point called) {
  engine::ChatPrompt prompt = chat_prompt(conversation, params.chat);
  GenerateResult result = run(Kind::kGenerate, std::move(prompt.ids), reuse, params, called);
  result.rewritten_tokens = prompt.rewritten_tokens;
  return result;
}

GenerateResult Engine::Impl::run_once(Kind kind, std::vector<TokenId> prompt, Reuse reuse,
                                      const GenerateParams& params, Clock::time_point called) {
  const auto request = make_request(kind, std::move(prompt), reuse, params, called);
  request->streams = static_cast<bool>(params.on_text);
  return engine::Delivery(*scheduler_, request).finish();
}

std::unique_ptr<engine::Delivery> Engine::Impl::submit(std::vector<TokenId> prompt,
                                                       GenerateParams params,
                                                       Clock::time_point called) {
  engine::check_params(params, info_.vocabulary);
  check_prompt(Kind::kGenerate, prompt);
  if (is_validated()) validate_before(prompt, params, called);
  const bool has_reader = static_cast<bool>(params.on_text);
  const auto request =
      make_request(Kind::kGenerate, std::move(prompt), Reuse::kYes, std::move(params), called);
  request->streams = true;
  request->mailbox.join_texts(!has_reader);
  return std::make_unique<engine::Delivery>(*scheduler_, request);
}

std::shared_ptr<engine::Request> Engine::Impl::make_request(Kind kind, std::vector<TokenId> prompt,
                                                            Reuse reuse, GenerateParams params,
                                                            Clock::time_point called) {
  engine::check_params(params, info_.vocabulary);
  check_prompt(kind, prompt);
  const std::size_t new_tokens = kind == Kind::kScore ? 0 : params.max_tokens;
  const std::size_t total_tokens = prompt.size() + std::min(new_tokens, context_ - prompt.size());
  if (params.kv_noise > 0.0f && kv_->pool().layout.shape().type == device::KvFormat::kInt8) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "GenerateParams::kv_noise needs a KvType other than kInt8");
  }
  // Noisy KV is made from a shared copy that is still held then.
  check_room(params.kv_noise > 0.0f ? total_tokens + prompt.size() : total_tokens);
  const bool reuses = reuse == Reuse::kYes;
  std::string space = reuses ? name_space(params.cache) : std::string();
  CacheLabels labels = registry().cache_labels(params.cache);
  auto request = std::make_shared<engine::Request>(kind, std::move(prompt), std::move(params),
                                                   std::move(space), std::move(labels),
                                                   info_.vocabulary, called);
  if (reuses) request->ticket = registry().begin_request(request->name_space, request->labels);
  request->total_tokens = total_tokens;
  return request;
}

}  // namespace incipit::inline v0
