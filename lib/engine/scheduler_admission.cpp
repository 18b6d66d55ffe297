// SPDX-License-Identifier: Apache-2.0
// Who gets room in the pool, and who gives it back.
#include <algorithm>
#include <utility>

#include "base/caught.h"
#include "device/kv_layout.h"
#include "engine/scheduler.h"

namespace incipit::engine {
namespace {

using device::kBlockTokens;

// Tokens of room that a request gets beyond what it needs now.
constexpr std::size_t kHeadroom = 64;
// After which a request that could go on, had its caller not something to do first, may lose its
// room to others.
constexpr std::chrono::milliseconds kPatience{100};
// After which a request that found no room asks again, where nothing else happens: blocks come back
// also from others than requests, who tell nobody.
constexpr std::chrono::milliseconds kRetry{5};

std::size_t common_front(std::span<const TokenId> a, std::span<const TokenId> b) {
  const std::size_t size = std::min(a.size(), b.size());
  const auto end = a.begin() + static_cast<std::ptrdiff_t>(size);
  return static_cast<std::size_t>(std::mismatch(a.begin(), end, b.begin()).first - a.begin());
}

}  // namespace

void Scheduler::admit_arrivals() {
  std::vector<std::shared_ptr<Request>> arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(arrivals_);
  }
  for (auto& request : arrived) waiting_.add(std::move(request));
}

/// What running requests have of the prompt of one that waits.
Scheduler::Kin Scheduler::kin_of(const Request& request) const {
  Kin kin;
  if (request.name_space.empty()) return kin;
  const std::span<const TokenId> sought = request.sought_tokens();
  std::size_t promised = 0;
  for (const auto& other : active_) {
    if (other->name_space != request.name_space || other->closed) continue;
    std::size_t common = common_front(sought, other->sought_tokens());
    common = std::min(common, sought.size() - 1);
    if (const std::size_t has = std::min(common, other->computed); has > kin.computed) {
      kin.sibling = other.get();
      kin.computed = has;
    }
    const bool goes_on = other->cancelled.load() < 0 && ready(*other);
    if (goes_on) promised = std::max(promised, std::min(common, other->prompt_tokens));
  }
  // Blocks are what is found; a part of one is not worth the wait.
  if (promised < kin.computed + kBlockTokens) return kin;
  const std::size_t known = cache_.known_tokens(request.name_space, sought);
  kin.worth_waiting = promised >= std::max(known, kin.computed) + kBlockTokens;
  return kin;
}

/// Blocks that wait to be stored make room where nothing else can.
bool Scheduler::start(Request& request, const Kin& kin, kv::KvCache::Match& match) {
  kv::KvCache::StartOptions options;
  options.counts = request.preemptions == 0;
  options.spare_blocks = active_.size();  // each may soon want one more
  options.sibling = kin.sibling != nullptr ? &kin.sibling->table : nullptr;
  options.sibling_tokens = kin.computed;
  const auto try_to = [&] {
    return cache_.start(request.name_space, request.labels, request.sought_tokens(),
                        std::min(request.total_tokens, request.tokens.size() + kHeadroom), match,
                        options);
  };
  if (try_to()) return true;
  if (!active_.empty() || tiers_ == nullptr) return false;
  tiers_->leave(cache_);
  return try_to();
}

void Scheduler::admit() {
  waiting_.begin_pass();
  const auto known = [this](const Request& request) {
    std::size_t tokens = 0;
    static_cast<void>(base::caught(
        [&] { tokens = cache_.known_tokens(request.name_space, request.sought_tokens()); }));
    return tokens;
  };
  while (Request* const request = waiting_.next(known)) {
    if (!ready(*request)) {  // it had to leave while its caller had something to do
      waiting_.set_aside();
      continue;
    }
    Kin kin;
    kv::KvCache::Match match;
    bool started = false;
    std::exception_ptr error = base::caught([&] {
      kin = kin_of(*request);
      if (!kin.worth_waiting) started = start(*request, kin, match);
    });
    if (error) {
      fail(*waiting_.take(), std::move(error));
    } else if (kin.worth_waiting) {
      waiting_.set_aside();
    } else if (started) {
      admit(waiting_.take(), std::move(match));
    } else if (Request* const idle = idle_request()) {
      preempt(*idle);
      waiting_.begin_pass();
    } else {
      // It fits into the pool, so whoever holds the blocks gives them back.
      return wake_by(Clock::now() + kRetry);
    }
  }
}

void Scheduler::admit(std::shared_ptr<Request> request, kv::KvCache::Match&& match) {
  request->table = std::move(match.table);
  request->computed = match.tokens;
  request->noise_is_due = request->params.kv_noise > 0.0f;
  request->paused_since.reset();
  active_.push_back(request);
  if (request->preemptions > 0) return;
  request->result.reused_tokens = match.tokens;
  {
    const std::lock_guard lock(mutex_);
    stats_.reused_tokens += match.tokens;
  }
  if (request->params.on_prefill) {
    request->mailbox.post(ProgressEvent{request->computed, request->prompt_tokens});
  }
  if (base::caught([&] { begin_load(*request); })) {
    log_.warning("the cold tiers could not be asked");
  }
}

/// Keeps of a step's parts those that have room in the pool, and makes room for the oldest.
std::vector<Scheduler::Part> Scheduler::reserve(std::vector<Part> parts) {
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.request->arrival < b.request->arrival; });
  std::vector<Part> kept;
  for (const Part& part : parts) {
    if (is_active(*part.request) && reserve(*part.request, part.rows)) kept.push_back(part);
  }
  std::erase_if(kept, [this](const Part& part) { return !is_active(*part.request); });
  return kept;
}

bool Scheduler::reserve(Request& request, std::size_t rows) {
  const std::size_t end = request.computed + rows;
  const std::size_t roomy = std::min(request.total_tokens, end + kHeadroom);
  for (;;) {
    const bool has_room = request.table.room() >= end || cache_.reserve(request.table, roomy) ||
                          cache_.reserve(request.table, end);
    if (has_room && (!is_noise_due(request) || cache_.make_private(request.table))) return true;
    Request* victim = idle_request();
    if (victim == nullptr) {
      victim = std::max_element(active_.begin(), active_.end(), [](const auto& a, const auto& b) {
                 return a->arrival < b->arrival;
               })->get();
    }
    if (victim == &request && active_.size() == 1) {
      // Only the tiers hold blocks besides.
      if (tiers_ != nullptr) tiers_->leave(cache_);
      wake_by(Clock::now() + kRetry);
      return false;
    }
    preempt(*victim);
    if (victim == &request) return false;
  }
}

/// Whether what the noise is for is computed, and nothing behind it.
bool Scheduler::is_noise_due(const Request& request) {
  return request.noise_is_due && request.computed + 1 == request.prompt_tokens;
}

bool Scheduler::is_active(const Request& request) const {
  return std::any_of(active_.begin(), active_.end(),
                     [&](const auto& active) { return active.get() == &request; });
}

/// The youngest of those that have waited for their callers for long.
Request* Scheduler::idle_request() const {
  const Clock::time_point since = Clock::now() - kPatience;
  for (std::size_t i = active_.size(); i-- > 0;) {
    const auto& paused = active_[i]->paused_since;
    if (paused && *paused <= since && !ready(*active_[i])) return active_[i].get();
  }
  return nullptr;
}

/// Takes a request's blocks, and puts it back into the waiting list.
void Scheduler::preempt(Request& request) {
  if (request.load != nullptr) static_cast<void>(base::caught([&] { settle_load(request); }));
  request.table = {};
  request.computed = 0;
  ++request.preemptions;
  const auto place = std::find_if(active_.begin(), active_.end(),
                                  [&](const auto& active) { return active.get() == &request; });
  waiting_.add(std::move(*place));
  active_.erase(place);
  const std::lock_guard lock(mutex_);
  ++stats_.preemptions;
}

}  // namespace incipit::engine
