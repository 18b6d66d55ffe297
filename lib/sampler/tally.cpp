// SPDX-License-Identifier: Apache-2.0
#include "sampler/tally.h"

#include <algorithm>

#include "sampler/weight.h"

namespace incipit::sampler {

bool Tally::is_before(const Candidate& a, const Candidate& b) noexcept {
  if (a.weight != b.weight) return a.weight > b.weight;
  // Means, compared without a division: sums have less than 2^53, counts less than 2^13. With
  // equal weights that are not uniform the counts may differ.
  __extension__ using Wide = __int128;
  const Wide left = static_cast<Wide>(a.logprobs) * static_cast<Wide>(b.count);
  const Wide right = static_cast<Wide>(b.logprobs) * static_cast<Wide>(a.count);
  if (left != right) return left > right;
  return a.first_sample < b.first_sample;
}

void Tally::add(std::string_view key, std::string_view answer, std::size_t sample,
                std::uint64_t weight, std::int64_t mean_logprob) {
  auto found = index_.find(key);
  if (found == index_.end()) {
    found = index_.emplace(std::string(key), candidates_.size()).first;
    Candidate candidate;
    candidate.key = found->first;
    candidate.answer = answer;
    candidate.first_sample = sample;
    candidate.rank = candidates_.size() + 1;
    candidates_.push_back(std::move(candidate));
  }
  Candidate& candidate = candidates_[found->second];
  ++candidate.count;
  candidate.weight += weight;
  candidate.logprobs += mean_logprob;
  ++votes_;
  weight_ += weight;
  promote(found->second);
}

/// A candidate's mean may have fallen, but its weight has grown: only it can have overtaken others.
void Tally::promote(std::size_t changed) {
  if (leader_ == changed) return;
  if (!leader_ || is_before(candidates_[changed], candidates_[*leader_])) {
    runner_up_ = leader_;
    leader_ = changed;
  } else if (!runner_up_ || is_before(candidates_[changed], candidates_[*runner_up_])) {
    runner_up_ = changed;
  }
}

Standing Tally::standing() const noexcept {
  Standing standing;
  standing.votes = votes_;
  standing.weight = weight_;
  if (leader_) {
    const Candidate& leader = candidates_[*leader_];
    standing.leader_votes = leader.count;
    standing.leader_weight = leader.weight;
    standing.leader_rank = leader.rank;
  }
  if (runner_up_) {
    standing.runner_up_votes = candidates_[*runner_up_].count;
    standing.runner_up_weight = candidates_[*runner_up_].weight;
  }
  return standing;
}

std::optional<std::size_t> Tally::leader() const noexcept {
  if (!leader_) return std::nullopt;
  return candidates_[*leader_].first_sample;
}

std::vector<Vote> Tally::sorted() const {
  std::vector<const Candidate*> order;
  order.reserve(candidates_.size());
  for (const Candidate& candidate : candidates_) order.push_back(&candidate);
  std::sort(order.begin(), order.end(),
            [](const Candidate* a, const Candidate* b) { return is_before(*a, *b); });
  std::vector<Vote> votes;
  votes.reserve(order.size());
  for (const Candidate* candidate : order) {
    Vote& vote = votes.emplace_back();
    vote.key = candidate->key;
    vote.answer = candidate->answer;
    vote.count = candidate->count;
    vote.weight = static_cast<double>(candidate->weight) / static_cast<double>(kFullWeight);
    vote.mean_logprob = static_cast<double>(candidate->logprobs) /
                        static_cast<double>(kLogprobUnit) / static_cast<double>(candidate->count);
    vote.first_sample = candidate->first_sample;
  }
  return votes;
}

}  // namespace incipit::sampler
