// SPDX-License-Identifier: Apache-2.0
// What the scheduler has to do with cold tiers.
#include <algorithm>
#include <utility>

#include "base/caught.h"
#include "device/kv_layout.h"
#include "engine/scheduler.h"

namespace incipit::engine {
namespace {

using device::kBlockTokens;

// Prompt rows of a step of a request whose KV also arrives: small, so that little is computed that
// arrives meanwhile, and large enough to be nearly as fast as any.
constexpr std::size_t kRowsBesideLoad = 256;
// What a step is worth against all before it.
constexpr double kNewest = 0.25;
// Steps with fewer prompt rows say little about long prompts.
constexpr std::size_t kTellingRows = 64;
// Multiplications and additions per second and thread, until a prompt has been timed: rather few,
// so that loading is given a chance.
constexpr double kGuessedRate = 2.5e10;

}  // namespace

/// Blocks that the pool does not have are sought in the tiers; room for them is taken at once.
void Scheduler::begin_load(Request& request) {
  const std::size_t blocks = (request.prompt_tokens - 1) / kBlockTokens;  // a token is left
  const std::size_t known = request.table.committed();
  if (tiers_ == nullptr || request.ticket == nullptr || known >= blocks) return;
  cache_.extend(request.table, blocks * kBlockTokens);
  kv::PrefixLoad::Options options;
  options.name_space = request.name_space;
  options.tokens.assign(
      request.tokens.begin(),
      request.tokens.begin() + static_cast<std::ptrdiff_t>(blocks * kBlockTokens));
  options.known = known;
  options.known_tokens = request.computed;
  const auto table = request.table.blocks();
  options.target = {&transformer_.device(),
                    cache_.pool(),
                    {table.begin(), table.begin() + static_cast<std::ptrdiff_t>(blocks)}};
  options.on_change = [this] { wake(); };
  options.begin = Clock::now();
  request.load = tiers_->load(*request.ticket, std::move(options));
  if (prefill_rate_ == 0) {
    prefill_rate_ = kGuessedRate * transformer_.device().info().threads /
                    (2.0 * static_cast<double>(transformer_.weights().parameters));
  }
}

void Scheduler::follow_loads() {
  for (const auto& request : active_) {
    if (request->load == nullptr || request->closed) continue;
    std::exception_ptr error = base::caught([&] { follow_load(*request); });
    if (error) fail(*request, std::move(error));
  }
  std::erase_if(active_, [](const auto& request) { return request->closed; });
}

void Scheduler::follow_load(Request& request) {
  const std::size_t before = request.computed;
  request.computed = request.load->advance(before);
  if (request.computed != before) {
    const std::size_t loaded = request.computed - before;
    cache_.commit(request.table, std::span(request.tokens).first(request.computed));
    tiers_->loaded(cache_, request.table, request.load->take(request.computed));
    if (request.params.on_prefill) {
      request.mailbox.post(ProgressEvent{request.computed, request.prompt_tokens});
    }
    request.result.reused_tokens += loaded;
    request.result.loaded_tokens += loaded;
    const std::lock_guard lock(mutex_);
    stats_.reused_tokens += loaded;
    stats_.loaded_tokens += loaded;
  }
  if (request.load->finished(request.computed)) settle_load(request);
}

/// Nothing more is wanted of the tiers. When it returns, nobody writes to the request's blocks.
void Scheduler::settle_load(Request& request) {
  const std::shared_ptr<kv::PrefixLoad> load = std::exchange(request.load, nullptr);
  load->cancel();
  tiers_->loaded(cache_, request.table, load->take(request.computed));
  const std::lock_guard lock(mutex_);
  stats_.load_microseconds += static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - load->begin()).count());
}

/// How many of the next rows compute may take while KV arrives; 0: not now.
std::size_t Scheduler::rows_beside_load(Request& request, std::size_t rows) {
  const Clock::time_point now = Clock::now();
  const Clock::time_point until =
      request.load->wait_until(request.computed, request.prompt_tokens, prefill_rate_, now);
  if (until > now) {
    wake_at_ = wake_at_ ? std::min(*wake_at_, until) : until;
    return 0;
  }
  return request.load->claim(request.computed, std::min(rows, kRowsBesideLoad));
}

/// Hands what a request leaves behind to the tiers; where that fails, they go without.
void Scheduler::store(Request& request) {
  if (tiers_ == nullptr || request.ticket == nullptr) return;
  const std::exception_ptr error = base::caught([&] {
    if (request.load != nullptr) settle_load(request);
    if (request.table.committed() == 0) return;
    tiers_->store(cache_, transformer_.device(),
                  cache_.share(request.table, request.table.committed()), request.ticket);
  });
  if (error) log_.warning("a request's KV could not be handed to the cold tiers");
}

void Scheduler::learn_rate(std::span<const Part> parts, Clock::duration spent) {
  std::size_t rows = 0, prompt_rows = 0;
  for (const Part& part : parts) {
    rows += part.rows;
    if (part.rows > 1) prompt_rows += part.rows;  // a text's row costs more, in any number
  }
  if (prompt_rows < kTellingRows) return;
  const double rate = static_cast<double>(rows) / std::chrono::duration<double>(spent).count();
  prefill_rate_ = prefill_rate_ == 0 ? rate : prefill_rate_ + kNewest * (rate - prefill_rate_);
}

}  // namespace incipit::engine
