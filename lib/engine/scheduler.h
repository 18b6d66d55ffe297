// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_SCHEDULER_H_
#define INCIPIT_ENGINE_SCHEDULER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/log.h"
#include "engine/request.h"
#include "engine/waiting_list.h"
#include "incipit/metrics.h"
#include "kv/cold_tiers.h"
#include "kv/kv_cache.h"
#include "model/transformer.h"
#include "text/tokenizer.h"

namespace incipit::engine {

/// Runs requests from any number of threads in one batch, on a thread of its own.
///
/// Each step is planned, gets its room in the pool, is run and then committed; nothing that others
/// see changes before the commit. Every sequence that decodes brings a row, and prompts fill the
/// step up in chunks. A step that fails ends its requests with the error and nothing else.
///
/// A request is admitted with room for what it has and a little more. Where a running one finds no
/// room to go on, the youngest gives its blocks back, waits, and is computed again from what the
/// cache still has of it: its random numbers hang on positions, so its text is the same. The oldest
/// never has to, so all get to their end.
///
/// Who needs a prefix that another request is computing waits for it.
class Scheduler {
 public:
  struct Options {
    std::size_t prefill_chunk = 512;  // rows per step; a quarter of them is for prompts
    std::size_t context = 0;          // tokens
  };

  /// All references must outlive it. `tiers` may be null.
  Scheduler(model::Transformer& transformer, kv::KvCache& cache, kv::ColdTiers* tiers,
            const text::Tokenizer& tokenizer, const Options& options, const base::Log& log);
  /// Ends what still runs as stopped.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void submit(std::shared_ptr<Request> request);
  /// Something that a request waited for has come: room in its mailbox, what may follow, its end.
  void wake();

  EngineStats stats() const;

 private:
  // The rows of one request in a step.
  struct Part {
    Request* request;
    std::size_t rows;
    bool samples;  // the last row's logits decide the next token
  };
  // One row whose logits are wanted.
  struct LogitRow {
    Request* request;
    std::size_t position;
  };

  // What running requests have of a prompt that waits.
  struct Kin {
    const Request* sibling = nullptr;  // who has computed most of it
    std::size_t computed = 0;          // tokens, of the sibling's
    bool worth_waiting = false;        // one of them will have at least a block more
  };

  void run();
  void wait_for_work();
  bool step();
  void retire_cancelled();
  std::vector<Part> plan();
  bool ready(const Request& request) const;
  void forward(std::span<const Part> parts);
  void complete(const Part& part);
  void finish(Request& request, FinishReason reason);
  void fail(Request& request, std::exception_ptr error);
  void wake_by(Clock::time_point time);
  // Room in the pool (scheduler_admission.cpp).
  void admit_arrivals();
  void admit();
  void admit(std::shared_ptr<Request> request, kv::KvCache::Match&& match);
  Kin kin_of(const Request& request) const;
  bool start(Request& request, const Kin& kin, kv::KvCache::Match& match);
  std::vector<Part> reserve(std::vector<Part> parts);
  bool reserve(Request& request, std::size_t rows);
  static bool is_noise_due(const Request& request);
  bool is_active(const Request& request) const;
  Request* idle_request() const;
  void preempt(Request& request);
  // Tokens (scheduler_tokens.cpp).
  void hand_out(std::span<const LogitRow> owners, tensor::ConstMatrix logits);
  void on_logits(Request& request, std::size_t position, std::span<const float> logits);
  void sample(Request& request, std::size_t position, std::span<const float> logits);
  void note_logprobs(Request& request, TokenId token, std::span<const float> logits);
  void note_first_token(Request& request);
  void add_token(Request& request, TokenId token);
  void post_text(Request& request, std::string piece);
  // Cold tiers (scheduler_tiers.cpp).
  void begin_load(Request& request);
  void follow_loads();
  void follow_load(Request& request);
  void settle_load(Request& request);
  std::size_t rows_beside_load(Request& request, std::size_t rows);
  void store(Request& request);
  void learn_rate(std::span<const Part> parts, Clock::duration spent);

  model::Transformer& transformer_;
  kv::KvCache& cache_;
  kv::ColdTiers* const tiers_;
  const text::Tokenizer& tokenizer_;
  const Options options_;
  const base::Log& log_;
  std::vector<TokenId> ends_;  // tokens that end a text

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool signalled_ = false;                          // guarded by mutex_
  bool stopping_ = false;                           // guarded by mutex_
  std::uint64_t submitted_ = 0;                     // guarded by mutex_
  std::vector<std::shared_ptr<Request>> arrivals_;  // guarded by mutex_
  EngineStats stats_;                               // guarded by mutex_

  // Of the scheduler's thread.
  WaitingList waiting_;                           // for room in the pool, or a leader
  std::vector<std::shared_ptr<Request>> active_;  // in order of admission
  std::optional<Clock::time_point> wake_at_;      // nothing can be done before, but then
  Clock::time_point begin_{};                     // of the step, with all that belongs to it
  double prefill_rate_ = 0;                       // prompt tokens per second
  std::vector<TokenId> ids_;                      // of the step that runs, by row
  std::vector<device::SequenceRows> sequences_;
  std::vector<std::uint32_t> logit_rows_;
  std::vector<LogitRow> logit_owners_;
  std::vector<std::size_t> logit_runs_;  // where another request's rows begin, and the end

  std::thread thread_;  // last: starts when all else is there
};

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_SCHEDULER_H_
