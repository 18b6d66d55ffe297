// SPDX-License-Identifier: Apache-2.0
#include "engine/token_sampler.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/check.h"
#include "base/philox.h"
#include "engine/exact_math.h"
#include "engine/vocabulary_passes.h"

namespace incipit::engine {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

constexpr auto kLikelier = [](const auto& a, const auto& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
};

// Bins of scores per unit of their distance from the best one, over the temperature.
constexpr float kBinsPerUnit = 64.0f;
constexpr std::size_t kBins = 1825;  // down to kVanishes

/// Those of block `block`.
template <class T>
std::span<T> block_of(std::span<T> values, std::size_t block) noexcept {
  const std::size_t first = block * kTokenBlock;
  return values.subspan(first, std::min(kTokenBlock, values.size() - first));
}

constexpr std::size_t blocks_of(std::size_t values) noexcept {
  return (values + kTokenBlock - 1) / kTokenBlock;
}

}  // namespace

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
    : params_(params), weights_(blocks_of(vocabulary) * kTokenBlock, 0.0f) {
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

/// The first of the largest scores.
TokenId TokenSampler::likeliest(std::span<const float> scores) const {
  float best = kNever;
  std::size_t where = 0;
  for (std::size_t block = 0; block < blocks_of(scores.size()); ++block) {
    const std::span<const float> some = block_of(scores, block);
    const float most = passes_.largest(some.data(), some.size());
    if (most > best) where = block;
    best = std::max(best, most);
  }
  if (best == kNever) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "no token may follow: logit_bias, allowed_tokens and min_tokens together "
                      "rule out the whole vocabulary");
  }
  const auto first = scores.begin() + static_cast<std::ptrdiff_t>(where * kTokenBlock);
  return static_cast<TokenId>(std::find(first, scores.end(), best) - scores.begin());
}

double TokenSampler::log_sum_exp(std::span<const float> logits) const {
  const auto best = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0.0;
  double terms[kTokenBlock];
  for (std::size_t block = 0; block < blocks_of(logits.size()); ++block) {
    const std::span<const float> some = block_of(logits, block);
    passes_.exponentials(some.data(), some.size(), best, terms);
    for (std::size_t i = 0; i < some.size(); ++i) sum += terms[i];
  }
  return best + exact_log(sum);
}

void TokenSampler::weigh(std::span<const float> scores) {
  INCIPIT_CHECK(scores.size() <= weights_.size());
  const float inverse = 1.0f / params_.temperature;
  block_masses_.clear();
  mass_ = 0;
  for (std::size_t block = 0; block < blocks_of(scores.size()); ++block) {
    const std::span<const float> some = block_of(scores, block);
    block_masses_.push_back(passes_.weigh(some.data(), some.size(), best_, inverse,
                                          weights_.data() + block * kTokenBlock));
    mass_ += block_masses_.back().mass;
  }
}

bool TokenSampler::truncates() const {
  return params_.top_k > 0 || params_.top_p < 1.0f || params_.min_p > 0.0f;
}

/// Those that weigh `least` or more and have a mass.
void TokenSampler::collect(std::span<const float> scores, float least) {
  candidates_.clear();
  for (std::size_t block = 0; block < block_masses_.size(); ++block) {
    if (block_masses_[block].mass == 0 || block_masses_[block].most < least) continue;
    const std::size_t first = block * kTokenBlock;
    const std::size_t end = std::min(first + kTokenBlock, scores.size());
    for (std::size_t i = first; i < end; ++i) {
      if (weights_[i] >= least && mass_of(weights_[i]) > 0) {
        candidates_.push_back({scores[i], weights_[i], static_cast<TokenId>(i)});
      }
    }
  }
}

/// The likeliest tokens, as many as top_k, top_p and min_p can keep. These keep few of many, and
/// weighing up whether some are enough costs less than collecting them.
void TokenSampler::collect_likeliest(std::span<const float> scores) {
  // top_p is a share of what top_k leaves, which min_p does not thin out.
  const float floor = params_.top_k > 0 && params_.top_p < 1.0f ? 0.0f : params_.min_p;
  for (const float least : {0x1p-4f, 0x1p-8f, 0x1p-12f, 0x1p-16f, 0x1p-20f, 0x1p-24f}) {
    if (least <= floor || are_enough(least)) return collect(scores, std::max(least, floor));
  }
  collect(scores, 0.0f);
}

/// Whether those that weigh `least` or more are.
bool TokenSampler::are_enough(float least) const {
  if (params_.top_k == 0 && params_.top_p >= 1.0f) return false;
  TokenMass sum;
  for (std::size_t block = 0; block < block_masses_.size(); ++block) {
    if (block_masses_[block].most < least) continue;
    const std::span<const float> some = block_of(std::span<const float>(weights_), block);
    const TokenMass part = passes_.at_least(some.data(), some.size(), least);
    sum.mass += part.mass;
    sum.count += part.count;
  }
  if (params_.top_k > 0) return sum.count >= static_cast<std::size_t>(params_.top_k);
  return static_cast<double>(sum.mass) >=
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
  while (point >= block_masses_[block].mass) point -= block_masses_[block++].mass;
  std::size_t id = block * kTokenBlock;
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
