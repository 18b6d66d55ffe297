// SPDX-License-Identifier: Apache-2.0
#include "engine/token_sampler.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/check.h"
#include "base/philox.h"
#include "engine/exact_math.h"

namespace incipit::engine {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

constexpr auto kLikelier = [](const auto& a, const auto& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
};

// Tokens whose masses are added up together.
constexpr std::size_t kBlock = 256;

// The logarithm of a weight without a mass.
constexpr float kVanishes = -28.5f;

// Bins of scores per unit of their distance from the best one, over the temperature.
constexpr float kBinsPerUnit = 64.0f;
constexpr std::size_t kBins = 1825;  // down to kVanishes

/// The probability of a weight in fixed point; none for e^kVanishes. With 2^24 tokens the sum still
/// fits 64 bits.
std::uint64_t mass_of(float weight) noexcept {
  // By way of a signed integer, for which there is an instruction.
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(weight * 0x1p40f));
}

/// The largest score; minus infinity for none. NaN counts as none.
float largest(std::span<const float> scores) noexcept {
  constexpr std::size_t kLanes = 16;  // so that the compiler takes vectors
  float lanes[kLanes];
  std::ranges::fill(lanes, kNever);
  std::size_t i = 0;
  for (; i + kLanes <= scores.size(); i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) {
      lanes[j] = scores[i + j] > lanes[j] ? scores[i + j] : lanes[j];
    }
  }
  for (; i < scores.size(); ++i) lanes[0] = scores[i] > lanes[0] ? scores[i] : lanes[0];
  return *std::ranges::max_element(lanes);
}

/// The first of the largest scores.
TokenId likeliest(std::span<const float> scores) {
  const float best = largest(scores);
  if (best == kNever) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "no token may follow: logit_bias, allowed_tokens and min_tokens together "
                      "rule out the whole vocabulary");
  }
  return static_cast<TokenId>(std::ranges::find(scores, best) - scores.begin());
}

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
    : params_(params), weights_((vocabulary + kBlock - 1) / kBlock * kBlock, 0.0f) {
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
  const std::span<const float> scores = adjust(logits, limits);
  const TokenId best = likeliest(scores);
  certain_ = true;
  if (params_.temperature == 0.0f) return best;
  best_ = scores[static_cast<std::size_t>(best)];
  weigh(scores);
  if (mass_ == 0) return best;  // it is infinite, or the temperature all but zero
  certain_ = false;
  if (!truncates()) return draw(position);
  collect_likeliest(scores);
  truncate();
  return draw_candidate(position);
}

TokenSampler::Drawn TokenSampler::drawn(TokenId token, std::size_t n) const {
  if (certain_)
    return {0.0f, n > 0 ? std::vector<TokenLogprob>{{token, 0.0f}} : std::vector<TokenLogprob>{}};
  std::vector<Candidate> all = candidates_;
  if (!truncates()) {
    all.clear();
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (mass_of(weights_[i]) > 0) {
        all.push_back({weights_[i], weights_[i], static_cast<TokenId>(i)});
      }
    }
  }
  std::uint64_t total = 0;
  for (const Candidate& candidate : all) total += mass_of(candidate.weight);
  const auto logprob = [&](const Candidate& candidate) {
    const auto mass = static_cast<double>(mass_of(candidate.weight));
    return static_cast<float>(exact_log(mass / static_cast<double>(total)));
  };
  n = std::min(n, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n), all.end(),
                    kLikelier);
  Drawn drawn;
  for (std::size_t i = 0; i < n; ++i) drawn.top.push_back({all[i].id, logprob(all[i])});
  drawn.logprob = logprob(*std::ranges::find(all, token, &Candidate::id));
  return drawn;
}

/// The logits as the parameters and limits have them.
std::span<const float> TokenSampler::adjust(std::span<const float> logits, const Limits& limits) {
  const bool changes = !seen_.empty() || !params_.logit_bias.empty() || !limits.banned.empty() ||
                       !limits.allowed.empty();
  if (!changes) return logits;
  adjusted_.assign(logits.begin(), logits.end());
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (!seen_[i]) continue;
    adjusted_[i] = adjusted_[i] > 0.0f ? adjusted_[i] / params_.repetition_penalty
                                       : adjusted_[i] * params_.repetition_penalty;
  }
  for (const auto& [token, bias] : params_.logit_bias) {
    adjusted_[static_cast<std::size_t>(token)] += bias;
  }
  for (const TokenId token : limits.banned) adjusted_[static_cast<std::size_t>(token)] = kNever;
  if (limits.allowed.empty()) return adjusted_;
  std::vector<float> kept(limits.allowed.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto token = static_cast<std::size_t>(limits.allowed[i]);
    if (token >= adjusted_.size()) {
      base::throw_error(ErrorCode::kInvalidArgument, "allowed_tokens returned the id " +
                                                         std::to_string(limits.allowed[i]) +
                                                         ", which the vocabulary does not have");
    }
    kept[i] = adjusted_[token];
  }
  std::ranges::fill(adjusted_, kNever);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    adjusted_[static_cast<std::size_t>(limits.allowed[i])] = kept[i];
  }
  return adjusted_;
}

void TokenSampler::weigh(std::span<const float> scores) {
  INCIPIT_CHECK(scores.size() <= weights_.size());
  const float inverse = 1.0f / params_.temperature;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const float logarithm = (scores[i] - best_) * inverse;
    weights_[i] = logarithm > kVanishes ? logarithm : kVanishes;  // NaN too
  }
  // A loop of its own: in one with the comparison the compiler finds no vectors.
  for (std::size_t i = 0; i < scores.size(); ++i) weights_[i] = relative_weight(weights_[i]);
  block_masses_.clear();
  mass_ = 0;
  for (std::size_t first = 0; first < weights_.size(); first += kBlock) {
    std::uint64_t sum = 0;
    for (std::size_t i = first; i < first + kBlock; ++i) sum += mass_of(weights_[i]);
    block_masses_.push_back(sum);
    mass_ += sum;
  }
}

bool TokenSampler::truncates() const {
  return params_.top_k > 0 || params_.top_p < 1.0f || params_.min_p > 0.0f;
}

void TokenSampler::collect(std::span<const float> scores, float least) {
  candidates_.clear();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (weights_[i] >= least && mass_of(weights_[i]) > 0) {
      candidates_.push_back({scores[i], weights_[i], static_cast<TokenId>(i)});
    }
  }
}

/// The likeliest tokens, as many as top_k, top_p and min_p can keep. These keep few of many, so the
/// tail of the vocabulary is looked at only where it is needed.
void TokenSampler::collect_likeliest(std::span<const float> scores) {
  // top_p is a share of what top_k leaves, which min_p does not thin out.
  const float floor = params_.top_k > 0 && params_.top_p < 1.0f ? 0.0f : params_.min_p;
  for (const float least : {0x1p-12f, 0x1p-24f}) {
    collect(scores, std::max(least, floor));
    if (least <= floor || holds_enough()) return;
  }
  collect(scores, 0.0f);
}

bool TokenSampler::holds_enough() const {
  if (params_.top_k > 0) return candidates_.size() >= static_cast<std::size_t>(params_.top_k);
  if (params_.top_p >= 1.0f) return false;
  std::uint64_t sum = 0;
  for (const Candidate& candidate : candidates_) sum += mass_of(candidate.weight);
  return static_cast<double>(sum) >=
         static_cast<double>(params_.top_p) * static_cast<double>(mass_);
}

/// Keeps the fewest of the likeliest that are enough(how many, their mass), one at least. Behind a
/// prompt that leaves much open there are tens of thousands, so only those of one bin are sorted.
template <class Enough>
void TokenSampler::keep_fewest(Enough enough) {
  // Tokens of higher score are never in a higher bin.
  const auto bin_of = [best = best_, inverse = 1.0f / params_.temperature](float score) {
    const float depth = (best - score) * inverse * kBinsPerUnit;
    return depth < static_cast<float>(kBins - 1) ? static_cast<std::size_t>(depth) : kBins - 1;
  };
  bins_.assign(kBins, {});
  for (const Candidate& candidate : candidates_) {
    Bin& bin = bins_[bin_of(candidate.score)];
    ++bin.count;
    bin.mass += mass_of(candidate.weight);
  }
  Bin sum;
  std::size_t edge = 0;
  for (; edge < kBins; ++edge) {
    const Bin with{sum.count + bins_[edge].count, sum.mass + bins_[edge].mass};
    if (with.count > 0 && enough(with.count, with.mass)) break;
    sum = with;
  }
  if (edge == kBins) return;
  edge_.clear();
  std::ranges::copy_if(candidates_, std::back_inserter(edge_),
                       [&](const Candidate& c) { return bin_of(c.score) == edge; });
  std::ranges::sort(edge_, kLikelier);
  std::size_t last = 0;
  for (; last + 1 < edge_.size(); ++last) {
    sum.mass += mass_of(edge_[last].weight);
    if (enough(++sum.count, sum.mass)) break;
  }
  std::erase_if(candidates_, [&](const Candidate& c) { return kLikelier(edge_[last], c); });
}

void TokenSampler::truncate() {
  const auto k = static_cast<std::size_t>(params_.top_k);
  std::uint64_t total = mass_;
  if (k > 0) {
    keep_fewest([&](std::size_t count, std::uint64_t) { return count >= k; });
    total = 0;
    for (const Candidate& candidate : candidates_) total += mass_of(candidate.weight);
  }
  if (params_.top_p < 1.0f) {
    const double wanted = static_cast<double>(params_.top_p) * static_cast<double>(total);
    keep_fewest(
        [&](std::size_t, std::uint64_t mass) { return static_cast<double>(mass) >= wanted; });
  }
  std::erase_if(candidates_, [&](const Candidate& c) { return c.weight < params_.min_p; });
}

/// Uniform over [0, total) to within 2^-7 of a unit of mass.
std::uint64_t TokenSampler::point_below(std::uint64_t total, std::uint32_t position) const {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const auto random = base::philox4x32({position, 0, low(params_.sample), high(params_.sample)},
                                       {low(params_.seed), high(params_.seed)});
  const std::uint64_t bits = (std::uint64_t{random[1]} << 32) | random[0];
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{bits} * total) >> 64);
}

TokenId TokenSampler::draw(std::uint32_t position) {
  std::uint64_t point = point_below(mass_, position);
  std::size_t block = 0;
  while (point >= block_masses_[block]) point -= block_masses_[block++];
  std::size_t id = block * kBlock;
  for (std::uint64_t mass; point >= (mass = mass_of(weights_[id])); ++id) point -= mass;
  return static_cast<TokenId>(id);
}

TokenId TokenSampler::draw_candidate(std::uint32_t position) const {
  std::uint64_t total = 0;
  for (const Candidate& candidate : candidates_) total += mass_of(candidate.weight);
  std::uint64_t point = point_below(total, position);
  std::size_t i = 0;
  for (std::uint64_t mass; point >= (mass = mass_of(candidates_[i].weight)); ++i) point -= mass;
  return candidates_[i].id;
}

}  // namespace incipit::engine
