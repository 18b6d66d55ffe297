// SPDX-License-Identifier: Apache-2.0
#include "replay.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <stdexcept>

#include "heap_meter.h"
#include "kv/gdsf_policy.h"
#include "kv/kv_cache.h"
#include "support/fake_device.h"

namespace bench {
namespace {

using incipit::device::Buffer;
using incipit::device::kBlockTokens;
using incipit::kv::KvCache;

/// A pool that nobody reads or writes takes addresses only.
class EmptyDevice final : public incipit::test::FakeDevice {
 public:
  std::uint64_t copies = 0;

  Buffer allocate(std::size_t bytes) override {
    void* const data = std::calloc(bytes, 1);
    if (data == nullptr) throw std::bad_alloc();
    return {data, bytes, [](void* memory, std::size_t) noexcept { std::free(memory); }};
  }
  void copy_block(const incipit::device::KvPoolView& /*pool*/, incipit::device::BlockId /*from*/,
                  incipit::device::BlockId /*to*/) override {
    ++copies;
  }
};

/// Looks a prompt up, computes what is missing and what follows it, and ends. Returns the tokens
/// that were found.
std::size_t run(KvCache& cache, std::span<const TokenId> tokens, std::size_t prompt_tokens) {
  KvCache::Match match;
  if (!cache.start("replay", tokens.first(prompt_tokens), tokens.size(), match)) {
    throw std::runtime_error("an idle cache has no room");
  }
  cache.extend(match.table, tokens.size());
  cache.commit(match.table, tokens);
  return match.tokens;
}

/// CPU time of this thread in seconds: other programs do not count, and nothing here waits.
double cpu_seconds() {
  timespec now{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) {
    throw std::runtime_error("no clock counts the time of a thread");
  }
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The work of a prefix, in that of its first token: attention doubles it as GdsfPolicy has it.
double work_of(std::size_t tokens) {
  constexpr double kDoubled = kBlockTokens * double{incipit::kv::GdsfPolicy::kDepthOfEqualWork};
  const auto n = static_cast<double>(tokens);
  return n * (1 + n / (2 * kDoubled));
}

}  // namespace

ReplayResult replay(const std::vector<Request>& requests, const NamedPolicy& policy,
                    std::size_t blocks) {
  ReplayResult result = {.policy = policy.name, .blocks = blocks, .requests = requests.size()};
  EmptyDevice device;
  const incipit::device::KvLayout layout(
      {.layers = 1, .kv_heads = 1, .head_dim = 1, .type = incipit::device::KvFormat::kF32});
  std::vector<TokenId> tokens;
  for (const Request& request : requests) {  // grows here, not under the meter
    tokens.reserve(std::max(request.prompt_tokens, request.prompt.size() + request.output.size()));
  }

  const HeapMeter meter;
  KvCache cache(device, layout, {.blocks = blocks, .eviction = policy.policy});
  for (const Request& request : requests) {
    const std::size_t prompt_tokens = expand(request, tokens);
    result.tokens += prompt_tokens;
    result.work += work_of(prompt_tokens);
    if ((tokens.size() + kBlockTokens - 1) / kBlockTokens > blocks) {
      ++result.too_large;
      continue;
    }
    const double begin = cpu_seconds();
    const std::size_t found = run(cache, tokens, prompt_tokens);
    result.seconds += cpu_seconds() - begin;
    result.reused += found;
    result.work_saved += work_of(found);
    result.looked_up += std::min(found / kBlockTokens + 1, prompt_tokens / kBlockTokens);
  }
  const incipit::CacheStats stats = cache.stats();
  result.evicted = stats.evictions;
  result.inserted = stats.blocks_cached + stats.evictions;
  result.copied = device.copies;
  result.peak_bytes = meter.peak_bytes();
  return result;
}

}  // namespace bench
