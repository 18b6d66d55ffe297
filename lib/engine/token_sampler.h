// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_TOKEN_SAMPLER_H_
#define INCIPIT_ENGINE_TOKEN_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "engine/vocabulary_passes.h"
#include "incipit/sampling.h"

namespace incipit::engine {

/// The n likeliest tokens, likeliest first, ties by id; log-probabilities of the raw logits.
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, double log_sum,
                                       std::size_t n);

/// Picks the tokens of one request. A choice depends on the logits, the parameters, the tokens so
/// far and the position only: chance is Philox keyed by (seed, sample, position), and probability
/// is fixed-point mass, whose sums do not depend on the order of addition.
class TokenSampler {
 public:
  /// `params` must outlive it.
  TokenSampler(const GenerateParams& params, std::span<const TokenId> prompt,
               std::size_t vocabulary);

  /// What may not or alone may be chosen at this position.
  struct Limits {
    std::span<const TokenId> banned = {};
    std::span<const TokenId> allowed = {};  // empty: all
  };

  /// The token for `position`. Ties go to the lower id. Throws Error{kInvalidArgument} where no
  /// token is left to choose.
  TokenId choose(std::span<const float> logits, std::uint32_t position, const Limits& limits);

  /// Log-probabilities in what the last choice was drawn from: of a token, and of the n likeliest.
  struct Drawn {
    float logprob = 0.0f;
    std::vector<TokenLogprob> top = {};
  };
  Drawn drawn(TokenId token, std::size_t n) const;

  /// log(sum of exp) of a row of logits, summed in the order of the ids.
  double log_sum_exp(std::span<const float> logits) const;

  /// Makes a token part of what the repetition penalty sees.
  void accept(TokenId token);

 private:
  struct Candidate {
    float score;   // ranks: different scores may have weights that round to the same
    float weight;  // see weights_
    TokenId id;
  };
  struct Bin {
    std::size_t count = 0;
    std::uint64_t mass = 0;
  };
  std::span<const float> adjust(std::span<const float> logits, const Limits& limits);
  TokenId likeliest(std::span<const float> scores) const;
  void weigh(std::span<const float> scores);
  bool truncates() const;
  void collect(std::span<const float> scores, float least);
  void collect_likeliest(std::span<const float> scores);
  bool are_enough(float least) const;
  template <class Enough>
  void keep_fewest(Enough enough);
  void truncate();
  TokenId draw(std::uint32_t position);
  TokenId draw_candidate(std::uint32_t position) const;
  std::uint64_t point_below(std::uint64_t total, std::uint32_t position) const;

  const GenerateParams& params_;
  const VocabularyPasses& passes_ = vocabulary_passes();
  std::vector<bool> seen_;       // [vocabulary]; empty without a repetition penalty
  std::vector<float> adjusted_;  // [vocabulary] logits, where there is something to adjust
  // Of all tokens, relative to the likeliest: weights [vocabulary, padded to whole blocks], and the
  // masses of blocks of tokens and of all.
  std::vector<float> weights_;
  std::vector<TokenMass> block_masses_;
  std::uint64_t mass_ = 0;
  float best_ = 0.0f;                  // the largest score
  bool certain_ = true;                // the last choice had no alternative
  std::vector<Candidate> candidates_;  // what top_k, top_p and min_p leave, by id
  std::vector<Bin> bins_;              // of keep_fewest: candidates by score
  std::vector<Candidate> edge_;        // those of the bin that is kept in part
};

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_TOKEN_SAMPLER_H_
