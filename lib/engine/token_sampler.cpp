// SPDX-License-Identifier: Apache-2.0
#include "engine/token_sampler.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/philox.h"
#include "engine/exact_math.h"

namespace incipit::engine {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// 2^40: with 2^24 tokens the sum of masses still fits 64 bits.
constexpr double kUnitMass = 1099511627776.0;

constexpr auto kLikelier = [](const auto& a, const auto& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
};

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  const auto best = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0.0;
  for (const float logit : logits) sum += exact_exp(static_cast<double>(logit) - best);
  return best + exact_log(sum);
}

std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, double log_sum,
                                       std::size_t n) {
  std::vector<TokenId> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
  n = std::min(n, order.size());
  const auto logit = [&](TokenId id) { return logits[static_cast<std::size_t>(id)]; };
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(),
      [&](TokenId a, TokenId b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  std::vector<TokenLogprob> top(n);
  for (std::size_t i = 0; i < n; ++i) {
    top[i] = {order[i], static_cast<float>(static_cast<double>(logit(order[i])) - log_sum)};
  }
  return top;
}

TokenSampler::TokenSampler(const GenerateParams& params, std::span<const TokenId> prompt,
                           std::size_t vocabulary)
    : params_(params), scores_(vocabulary) {
  if (params.repetition_penalty != 1.0f) {
    seen_.resize(vocabulary);
    for (const TokenId token : prompt) accept(token);
  }
}

void TokenSampler::accept(TokenId token) {
  if (!seen_.empty()) seen_[static_cast<std::size_t>(token)] = true;
}

TokenId TokenSampler::choose(std::span<const float> logits, std::uint32_t position,
                             const Limits& limits) {
  adjust(logits, limits);
  const TokenId best = likeliest();
  if (params_.temperature == 0.0f) return best;
  collect(scores_[static_cast<std::size_t>(best)]);
  keep_top_k();
  keep_top_p();
  keep_min_p();
  return draw(position);
}

void TokenSampler::adjust(std::span<const float> logits, const Limits& limits) {
  INCIPIT_CHECK(logits.size() == scores_.size());
  std::ranges::copy(logits, scores_.begin());
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (!seen_[i]) continue;
    scores_[i] = scores_[i] > 0.0f ? scores_[i] / params_.repetition_penalty
                                   : scores_[i] * params_.repetition_penalty;
  }
  for (const auto& [token, bias] : params_.logit_bias) {
    scores_[static_cast<std::size_t>(token)] += bias;
  }
  for (const TokenId token : limits.banned) scores_[static_cast<std::size_t>(token)] = kNever;
  if (limits.allowed.empty()) return;
  std::vector<float> kept(limits.allowed.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto token = static_cast<std::size_t>(limits.allowed[i]);
    if (token >= scores_.size()) {
      base::throw_error(ErrorCode::kInvalidArgument, "allowed_tokens returned the id " +
                                                         std::to_string(limits.allowed[i]) +
                                                         ", which the vocabulary does not have");
    }
    kept[i] = scores_[token];
  }
  std::ranges::fill(scores_, kNever);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    scores_[static_cast<std::size_t>(limits.allowed[i])] = kept[i];
  }
}

TokenId TokenSampler::likeliest() const {
  float best = kNever;
  TokenId id = -1;
  for (std::size_t i = 0; i < scores_.size(); ++i) {
    if (scores_[i] > best) {
      best = scores_[i];
      id = static_cast<TokenId>(i);
    }
  }
  if (id < 0) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "no token may follow: logit_bias, allowed_tokens and min_tokens together "
                      "rule out the whole vocabulary");
  }
  return id;
}

void TokenSampler::collect(float best) {
  candidates_.clear();
  const double temperature = static_cast<double>(params_.temperature);
  for (std::size_t i = 0; i < scores_.size(); ++i) {
    const double x = (static_cast<double>(scores_[i]) - static_cast<double>(best)) / temperature;
    if (!(x > -28.5)) continue;  // its mass would round to nothing
    const auto mass = static_cast<std::uint64_t>(exact_exp(x) * kUnitMass + 0.5);
    if (mass > 0) candidates_.push_back({scores_[i], static_cast<TokenId>(i), mass});
  }
}

void TokenSampler::keep_top_k() {
  const auto k = static_cast<std::size_t>(params_.top_k);
  if (k == 0 || k >= candidates_.size()) return;
  std::ranges::nth_element(candidates_, candidates_.begin() + static_cast<std::ptrdiff_t>(k),
                           kLikelier);
  candidates_.resize(k);
}

void TokenSampler::keep_top_p() {
  if (params_.top_p >= 1.0f) return;
  std::ranges::sort(candidates_, kLikelier);
  std::uint64_t total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.mass;
  const double wanted = static_cast<double>(params_.top_p) * static_cast<double>(total);
  std::uint64_t sum = 0;
  std::size_t kept = 0;
  while (kept < candidates_.size() && (kept == 0 || static_cast<double>(sum) < wanted)) {
    sum += candidates_[kept++].mass;
  }
  candidates_.resize(kept);
}

void TokenSampler::keep_min_p() {
  if (params_.min_p <= 0.0f) return;
  const double least = static_cast<double>(params_.min_p) * kUnitMass;
  std::erase_if(candidates_,
                [&](const Candidate& c) { return static_cast<double>(c.mass) < least; });
}

TokenId TokenSampler::draw(std::uint32_t position) {
  std::ranges::sort(candidates_, {}, &Candidate::id);
  std::uint64_t total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.mass;
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const auto random = base::philox4x32({position, 0, low(params_.sample), high(params_.sample)},
                                       {low(params_.seed), high(params_.seed)});
  const std::uint64_t bits = (std::uint64_t{random[1]} << 32) | random[0];
  // floor(bits * total / 2^64): uniform over [0, total) to within 2^-7 of a unit of mass.
  __extension__ using Wide = unsigned __int128;
  auto point = static_cast<std::uint64_t>((Wide{bits} * total) >> 64);
  for (const Candidate& candidate : candidates_) {
    if (point < candidate.mass) return candidate.id;
    point -= candidate.mass;
  }
  return candidates_.back().id;
}

}  // namespace incipit::engine
