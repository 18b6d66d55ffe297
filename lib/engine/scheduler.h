// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_SCHEDULER_H_
#define INCIPIT_ENGINE_SCHEDULER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/log.h"
#include "engine/request.h"
#include "incipit/metrics.h"
#include "kv/cold_tiers.h"
#include "kv/kv_cache.h"
#include "model/transformer.h"
#include "text/tokenizer.h"

namespace incipit::engine {

/// Runs requests from any number of threads in one batch, on a thread of its own: first come, first
/// served; every sequence that decodes brings a row to each step, and prompts fill the rest of the
/// step in chunks. A step that fails ends its requests with the error and nothing else.
class Scheduler {
 public:
  struct Options {
    std::size_t prefill_chunk = 512;  // prompt rows per step, over all requests
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

  void run();
  void wait_for_work();
  bool step();
  void admit_arrivals();
  void admit();
  bool start(Request& request, kv::KvCache::Match& match);
  void retire_cancelled();
  std::vector<Part> plan();
  bool ready(const Request& request) const;
  void forward(std::span<const Part> parts);
  void complete(std::span<const Part> parts);
  void hand_out(std::span<const LogitRow> owners, tensor::ConstMatrix logits);
  void on_logits(Request& request, std::size_t position, std::span<const float> logits);
  void sample(Request& request, std::size_t position, std::span<const float> logits);
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

  void finish(Request& request, FinishReason reason);
  void fail(Request& request, std::exception_ptr error);

  model::Transformer& transformer_;
  kv::KvCache& cache_;
  kv::ColdTiers* const tiers_;
  const text::Tokenizer& tokenizer_;
  const Options options_;
  const base::Log& log_;
  std::vector<TokenId> ends_;  // tokens that end a text

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool signalled_ = false;                         // guarded by mutex_
  bool stopping_ = false;                          // guarded by mutex_
  std::deque<std::shared_ptr<Request>> arrivals_;  // guarded by mutex_
  EngineStats stats_;                              // guarded by mutex_

  // Of the scheduler's thread.
  std::deque<std::shared_ptr<Request>> waiting_;  // for room in the pool, in order of arrival
  std::vector<std::shared_ptr<Request>> active_;  // in order of admission
  std::optional<Clock::time_point> wake_at_;      // nothing can be done before, but then
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
