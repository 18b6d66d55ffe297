// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_SAMPLER_TALLY_H_
#define INCIPIT_SAMPLER_TALLY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "incipit/self_consistency.h"

namespace incipit::sampler {

/// What a stop rule looks at. Weights are in units of kFullWeight.
struct Standing {
  std::size_t votes = 0;         // of all answers
  std::uint64_t weight = 0;      // of all answers
  std::size_t leader_votes = 0;  // 0: nobody has voted
  std::uint64_t leader_weight = 0;
  std::size_t leader_rank = 0;  // the leader came up as the so many-th different answer, from 1
  std::size_t runner_up_votes = 0;
  std::uint64_t runner_up_weight = 0;
};

/// The votes so far. Votes must come in the order of the samples.
class Tally {
 public:
  Tally() = default;
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

  /// `mean_logprob` and `weight` as weight.h has them. O(log answers).
  void add(std::string_view key, std::string_view answer, std::size_t sample, std::uint64_t weight,
           std::int64_t mean_logprob);

  /// O(1).
  Standing standing() const noexcept;
  /// The leader's first sample; nullopt where nobody has voted.
  std::optional<std::size_t> leader() const noexcept;
  /// Leader first: by weight, mean log-probability, first sample. O(answers log answers).
  std::vector<Vote> sorted() const;

 private:
  struct Candidate {
    std::string_view key;  // of index_
    std::string answer;
    std::size_t count = 0, first_sample = 0, rank = 0;
    std::uint64_t weight = 0;
    std::int64_t logprobs = 0;  // sum of the samples' means
  };
  static bool is_before(const Candidate& a, const Candidate& b) noexcept;
  void promote(std::size_t changed);

  std::map<std::string, std::size_t, std::less<>> index_;  // key: place in candidates_
  std::vector<Candidate> candidates_;                      // in the order of their first samples
  std::optional<std::size_t> leader_, runner_up_;          // places in candidates_
  std::size_t votes_ = 0;
  std::uint64_t weight_ = 0;
};

}  // namespace incipit::sampler

#endif  // INCIPIT_SAMPLER_TALLY_H_
