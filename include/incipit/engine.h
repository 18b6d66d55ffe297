// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_H_
#define INCIPIT_ENGINE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "incipit/cache_reports.h"
#include "incipit/chat.h"
#include "incipit/error.h"
#include "incipit/export.h"
#include "incipit/log.h"
#include "incipit/message.h"
#include "incipit/metrics.h"
#include "incipit/prefix_cache.h"
#include "incipit/sampling.h"

namespace incipit::inline v0 {

/// Number format of the KV cache. kAuto: bf16 where the CPU or GPU multiplies it, else f16. kInt8
/// takes half the memory of these: 8 bits and a scale per token and KV head. A GPU has no kF32.
enum class KvType { kAuto, kF32, kF16, kBF16, kInt8 };

/// What computes. A GPU gives other bits than a CPU (ModelInfo::numerics), each its own always.
enum class DeviceKind {
  /// The GPU, if there is one, the other options suit it and it has room for the weights; else the
  /// CPU.
  kAuto,
  kCpu,
  kCuda,  ///< An NVIDIA GPU of compute capability 7.5 or newer; error where there is none.
};

/// Which kernels may run on a GPU. A CPU is always exact.
enum class GpuMath {
  /// Those that compute a row the same way whatever is computed with it: what Engine says of logits
  /// holds. The default.
  kExact,
  /// Also faster ones that suit only some numbers of rows. The last bits of a row's logits then
  /// depend on how many rows its step had: on chunks, batch and cache. So an answer with the cache
  /// may differ from one without, as in other engines. KV is never shared with exact engines.
  kFast,
};

/// Which kernels run on the CPU. kAuto: the fastest that this machine has.
enum class CpuPath { kAuto, kScalar, kAvx2, kAvx512 };

/// What meets quantised weights. In each mode a position's logits are the same bits with and
/// without the cache, in any batch, on any number of threads. Speed and quality of each:
/// docs/numerics.md.
enum class Activations {
  /// Activations rounded to 8 bits per block of 32, or 15 bits where the block stands out of its
  /// row; for BF16 weights, to BF16 where the CPU multiplies it: several times faster than floats.
  /// The default.
  kMixed,
  /// The same with 15 bits in fewer blocks: fastest, and closer to floats than 8 bits throughout,
  /// which is what other engines do.
  kInt8,
  kFloat,  ///< Weights expanded to f32: for comparing with other implementations.
};

/// What to load and how to run it.
struct EngineOptions {
  std::filesystem::path model = {};               ///< A GGUF file or a Hugging Face directory.
  DeviceKind device = DeviceKind::kAuto;          ///< See there.
  std::size_t gpu = 0;                            ///< Which, as the driver counts.
  GpuMath gpu_math = GpuMath::kExact;             ///< See there; no effect on a CPU.
  KvType kv_type = KvType::kAuto;                 ///< Part of the numerics, as the next two.
  Activations activations = Activations::kMixed;  ///< See there; no effect on F32 and F16 weights.
  /// Rounds F16 matrices to BF16, which CPUs with BF16 dot products multiply several times faster.
  bool f16_as_bf16 = false;
  CpuPath cpu_path = CpuPath::kAuto;  ///< Error where this machine cannot run it.
  unsigned threads = 0;               ///< 0: the CPUs that this process may use.
  std::size_t max_context = 0;        ///< In tokens; 0: what the model was trained for.
  /// Of KV and bookkeeping; 0: the smaller of a quarter of the memory and four contexts, or three
  /// quarters of what is free on a GPU.
  std::size_t kv_pool_bytes = 0;
  std::size_t prefill_chunk = 512;  ///< Prompt tokens per step; changes times, never results.
  /// Renders conversations instead of the model's own chat format; for models whose chat template
  /// incipit does not know. May be called from any thread that calls the engine.
  ChatRenderer chat_renderer = {};
  /// Progress of loading, 0 to 1; from 0 again where a GPU turns out to be too small.
  std::function<void(double fraction)> on_load = {};
  LogSink log = {};  ///< Silent without one.

  /// Float activations and F32 KV: the mode that is compared with Hugging Face transformers.
  static EngineOptions reference(std::filesystem::path model) {
    EngineOptions options;
    options.model = std::move(model);
    options.kv_type = KvType::kF32;
    options.activations = Activations::kFloat;
    return options;
  }
};

/// What an Engine runs.
struct ModelInfo {
  std::string name = {};               ///< As the file calls it; may be empty.
  std::string architecture = {};       ///< "llama", "qwen2", "qwen3".
  std::string numerics = {};           ///< Names the arithmetic; equal names give equal bits.
  std::size_t context = 0;             ///< Tokens of prompt and text together.
  std::size_t vocabulary = 0;          ///< Token ids are below this.
  std::size_t parameters = 0;          ///< Weights, a tied embedding counted once.
  std::size_t kv_bytes_per_token = 0;  ///< Of K and V of one token.
  /// What 16 tokens take of EngineOptions::kv_pool_bytes, bookkeeping included.
  std::size_t pool_bytes_per_block = 0;
  unsigned threads = 0;  ///< That compute, the engine's own included.
  bool chat = false;     ///< Messages can be rendered.
  /// How: "ChatML", "Llama 3"; "host": by EngineOptions::chat_renderer. Empty: they cannot.
  std::string chat_format = {};
  /// Types of tensors that no kernel has, and what stands in for them: "Q2_K as Q8_0". Empty: none.
  std::string converted = {};
  SamplingDefaults sampling = {};  ///< What the model's files recommend.
};

/// A request that runs. To destroy one that has not ended cancels it.
///
/// Not thread-safe, but for cancel(). The engine must outlive it.
class INCIPIT_API Generation {
 public:
  /// Cancels what has not ended, and returns when the engine is done with it.
  ~Generation();
  /// A moved-from generation may only be destroyed or assigned to.
  Generation(Generation&&) noexcept;
  /// As the move constructor; cancels what was there before.
  Generation& operator=(Generation&&) noexcept;

  /// Waits for the next piece of the text, whole UTF-8 characters; nullopt: there is none left.
  /// Throws as wait(). Runs the callbacks of its GenerateParams meanwhile.
  std::optional<std::string> next();
  /// Runs the callbacks that are due, without waiting. True once the request has ended: wait() and
  /// next() do not block from then on.
  bool poll();
  /// Waits for the end; what next() has not taken is passed over. Call it once.
  /// Throws what Engine::generate_with_cache() throws for a request that was taken.
  GenerateResult wait();
  /// Ends the request at the next step; what was generated by then is its result. From any thread.
  void cancel() noexcept;

 private:
  friend class Engine;
  class Impl;
  __attribute__((visibility("hidden"))) explicit Generation(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Runs one decoder-only language model over a paged KV block pool.
///
///     incipit::Engine engine({.model = "SmolLM2-135M-Instruct.Q4_1.gguf"});
///     auto answer = engine.generate_with_cache(manual, question);
///
/// The logits of a position depend on the token ids up to it and on ModelInfo::numerics, and on
/// nothing else: not on what came from the cache, how prefill was cut, who else was in the batch,
/// or the number of threads. (With GpuMath::kFast on a GPU this holds but for the last bits.)
///
/// Thread safety: all member functions may be called concurrently; concurrent requests share one
/// running batch. The destructor must not run before they have returned. After fork(), calls in the
/// child throw Error{kForked}. Writes nothing to stdout or stderr.
class INCIPIT_API Engine {
 public:
  /// Loads the model. Without a cache the engine keeps a private one.
  /// Throws Error: kModelUnreadable, kOutOfMemory, kInvalidArgument.
  explicit Engine(EngineOptions options, std::shared_ptr<PrefixCache> cache = nullptr);
  /// Ends what still runs, and gives the cold tiers a second to take what they still lack.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Generates from `static_text` followed by `dynamic_prompt`, tokenized as one, so that the
  /// answer is that of the joined prompt. KV of every known prefix is reused, the rest is kept.
  /// Throws Error: kPromptTooLong, kOutOfMemory, kInvalidArgument; what a callback throws.
  GenerateResult generate_with_cache(std::string_view static_text, std::string_view dynamic_prompt,
                                     const GenerateParams& params = {});
  /// The same from messages, rendered as the model was trained, with the assistant's turn opened.
  GenerateResult generate_with_cache(std::span<const Message> conversation,
                                     const GenerateParams& params = {});
  /// The same from token ids.
  GenerateResult generate_with_cache(std::span<const TokenId> prompt,
                                     const GenerateParams& params = {});

  /// Neither reads nor fills the cache: what generate_with_cache() is compared with.
  GenerateResult generate(std::string_view prompt, const GenerateParams& params = {});
  /// The same from messages.
  GenerateResult generate(std::span<const Message> conversation, const GenerateParams& params = {});
  /// The same from token ids.
  GenerateResult generate(std::span<const TokenId> prompt, const GenerateParams& params = {});

  /// As generate_with_cache(), but returns at once. Requests with the same prompt compute it once,
  /// and share its KV while they run. The generation keeps `params`.
  /// Throws Error: kPromptTooLong, kOutOfMemory, kInvalidArgument.
  Generation submit(std::span<const TokenId> prompt, GenerateParams params = {});
  /// The same from text.
  Generation submit(std::string_view static_text, std::string_view dynamic_prompt,
                    GenerateParams params = {});
  /// The same from messages.
  Generation submit(std::span<const Message> conversation, GenerateParams params = {});

  /// Token ids of a raw text, as Hugging Face's default call gives them: special tokens are
  /// recognised, and a BOS is put in front where the model is configured so.
  std::vector<TokenId> tokenize(std::string_view text) const;
  /// Text of token ids, special tokens left out. Throws Error{kInvalidArgument} for an unknown id.
  std::string detokenize(std::span<const TokenId> ids) const;
  /// The text that a conversation becomes, with the assistant's turn opened.
  /// Throws Error{kInvalidArgument} where the model has no chat format that incipit knows, or the
  /// format has no place for what the messages or options hold (tools); what a renderer throws.
  std::string render(std::span<const Message> conversation, const ChatOptions& options = {}) const;
  /// Token ids of a conversation: those of render(), save that a message's content yields no
  /// special tokens.
  std::vector<TokenId> tokenize(std::span<const Message> conversation,
                                const ChatOptions& options = {}) const;

  /// Token ids of `static_text` followed by `dynamic_prompt`, as generate_with_cache() has them.
  std::vector<TokenId> tokenize(std::string_view static_text, std::string_view dynamic_prompt);
  /// Counts tokens as this engine's model does; messages, where it has a chat format (never too
  /// few: a little more where the format folds the system message into another turn). The engine
  /// must outlive it. Thread-safe.
  TokenCounter token_counter(const ChatOptions& options = {}) const;
  /// GenerateParams as the model's files recommend them (generation_config.json, or a GGUF file's
  /// general.sampling): for answers as its makers meant them. Greedy where they say nothing.
  GenerateParams recommended_params() const;
  /// Log-probability of each id given those before it; the first has none and gets 0.
  /// Runs at prefill speed and neither reads nor fills the cache.
  std::vector<float> score(std::span<const TokenId> ids);

  /// Computes the KV of a text that prompts will begin with, and leaves it in the cache: the first
  /// of them finds it. Throws as generate_with_cache().
  GenerateResult prefetch(std::string_view static_text, const CacheLabels& labels = {});
  /// Compares the logits behind a text that the cache gives with those of a direct forward pass. A
  /// difference empties the cache for this model and these labels. Cost: computing the text.
  CacheValidation validate(std::string_view static_text, const CacheLabels& labels = {});
  /// Evicts what the pool has of a text after everything else, for so long. A request that needs
  /// the room gets it all the same. Returns how many tokens that is.
  std::size_t pin(std::string_view static_text, std::chrono::seconds duration,
                  const CacheLabels& labels = {});
  /// How much of a text the cache has, and why not more. Asks the tiers, on the calling thread.
  MissExplanation explain_miss(std::string_view static_text, const CacheLabels& labels = {});
  /// What has changed in the engine's pool from event number `from` on, at most `limit` events: for
  /// routers, which send a prompt where its prefix is. Needs PrefixCacheOptions::event_buffer.
  CacheEvents cache_events(std::uint64_t from, std::size_t limit = 4096) const;
  /// All that the pool knows now, as events. Cost: O(pool).
  CacheEvents cache_snapshot() const;
  /// Forgets all prompts that begin with a text; in cold tiers, and where the text is too short to
  /// say how it is tokenized, all with this model, salt and version. See PrefixCache for what is
  /// done when it returns.
  Invalidation invalidate_prefix(std::string_view static_text, const CacheLabels& labels = {});
  /// Forgets what this model has with a salt and version.
  Invalidation invalidate_namespace(const CacheLabels& labels = {});

  /// The cache that was given to the constructor, or the private one.
  PrefixCache& cache() noexcept;
  /// What the engine has done so far.
  EngineStats stats() const;
  /// What the engine runs; never changes.
  const ModelInfo& model() const noexcept;

 private:
  friend class Conversation;
  friend class Generation;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Makes summaries for a Compressor with the engine's own model. The request is the prompt that was
/// sent last and a short order behind it, so that nearly all of it comes from the cache. `params`
/// says how to generate; its max_tokens is not used. The engine must outlive the result, which may
/// be called from any thread and throws as Engine::generate_with_cache().
INCIPIT_API Summarizer engine_summarizer(Engine& engine, GenerateParams params = {});

}  // namespace incipit::inline v0

#endif  // INCIPIT_ENGINE_H_
