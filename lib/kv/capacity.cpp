// SPDX-License-Identifier: Apache-2.0
#include "incipit/capacity.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "device/kv_layout.h"

namespace incipit::inline v0 {
namespace {

constexpr std::size_t kBlockTokens = device::kBlockTokens;

void require(bool condition, const char* message) {
  if (!condition) base::throw_error(ErrorCode::kInvalidArgument, message);
}

void require_measure(double value, const char* message) {
  require(std::isfinite(value) && value >= 0.0, message);
}

/// `a` x `b`, both of them counts.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  require(a == 0 || b <= std::numeric_limits<std::uint64_t>::max() / a,
          "the KV of so many tokens has more bytes than 64 bits can count");
  return a * b;
}

/// The least number of whole blocks, in tokens, that come sooner from the tier than from the
/// engine.
std::optional<std::size_t> break_even(const CapacityQuestion& question, const TierCapacity& tier) {
  if (question.prefill_tokens_per_second == 0.0 || tier.bytes_per_second == 0.0) return {};
  const double compute = kBlockTokens / question.prefill_tokens_per_second;  // of a block
  const double load =
      kBlockTokens * static_cast<double>(question.kv_bytes_per_token) / tier.bytes_per_second;
  if (load >= compute) return {};
  const double blocks = std::floor(tier.latency_seconds / (compute - load)) + 1;
  // Beyond that a double does not know whole tokens, and nobody waits for so many.
  constexpr double kMostBlocks = 0x1p48;
  if (!(blocks < kMostBlocks)) return {};
  return static_cast<std::size_t>(blocks) * kBlockTokens;
}

}  // namespace

CapacityPlan plan_capacity(const CapacityQuestion& question) {
  require(question.kv_bytes_per_token > 0, "kv_bytes_per_token must not be 0");
  require_measure(question.prefill_tokens_per_second,
                  "prefill_tokens_per_second must be finite and not negative");
  const std::uint64_t block_bytes = product(kBlockTokens, question.kv_bytes_per_token);

  CapacityPlan plan;
  plan.blocks = question.tokens / kBlockTokens + (question.tokens % kBlockTokens != 0 ? 1 : 0);
  plan.bytes = product(plan.blocks, block_bytes);
  const auto fitting = [&](std::uint64_t bytes) {
    // Whole blocks, as the pool has them. Of nothing, nothing needs room.
    return plan.blocks == 0 ? 0 : bytes / block_bytes / plan.blocks;
  };
  plan.prefixes_in_pool = fitting(question.pool_bytes);
  if (question.prefill_tokens_per_second > 0.0) {
    plan.compute_seconds =
        static_cast<double>(question.tokens) / question.prefill_tokens_per_second;
  }
  for (const TierCapacity& tier : question.tiers) {
    require_measure(tier.bytes_per_second, "bytes_per_second must be finite and not negative");
    require_measure(tier.latency_seconds, "latency_seconds must be finite and not negative");
    TierPlan& answer = plan.tiers.emplace_back();
    answer.name = tier.name;
    answer.prefixes = fitting(tier.bytes);
    if (tier.bytes_per_second > 0.0) {
      answer.load_seconds =
          tier.latency_seconds + static_cast<double>(plan.bytes) / tier.bytes_per_second;
    }
    answer.break_even_tokens = break_even(question, tier);
  }
  return plan;
}

}  // namespace incipit::inline v0
