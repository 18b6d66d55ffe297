// SPDX-License-Identifier: Apache-2.0
#include "sampler/tally.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "sampler/weight.h"
#include "support/catch.h"

using namespace incipit::sampler;

namespace {

std::vector<std::string> keys_of(const Tally& tally) {
  std::vector<std::string> keys;
  for (const incipit::Vote& vote : tally.sorted()) keys.push_back(vote.key);
  return keys;
}

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE("an empty tally has no leader") {
  const Tally tally;
  CHECK_FALSE(tally.leader());
  CHECK(tally.sorted().empty());
  CHECK(tally.standing().votes == 0);
  CHECK(tally.standing().leader_votes == 0);
}

TEST_CASE("votes with equal keys are one answer, written as by the first") {
  Tally tally;
  tally.add("18", "$18", 0, kFullWeight, -10);
  tally.add("7", "7", 1, kFullWeight, -10);
  tally.add("18", "18.0", 3, kFullWeight, -30);
  const auto votes = tally.sorted();
  REQUIRE(votes.size() == 2);
  CHECK(votes[0].key == "18");
  CHECK(votes[0].answer == "$18");
  CHECK(votes[0].count == 2);
  CHECK(votes[0].weight == 2.0);
  CHECK(votes[0].mean_logprob == Approx(-20.0 / kLogprobUnit));
  CHECK(votes[0].first_sample == 0);
  CHECK(votes[1].first_sample == 1);
  CHECK(tally.leader() == 0);
}

TEST_CASE("ties go to the better mean log-probability, then to the first sample") {
  Tally by_logprob;
  by_logprob.add("a", "a", 0, kFullWeight, -20);
  by_logprob.add("b", "b", 1, kFullWeight, -10);
  CHECK(by_logprob.leader() == 1);
  by_logprob.add("a", "a", 2, kFullWeight, -2);  // mean -11, two votes
  CHECK(by_logprob.leader() == 0);
  by_logprob.add("b", "b", 3, kFullWeight, -11);  // mean -10.5
  CHECK(by_logprob.leader() == 1);
  CHECK(keys_of(by_logprob) == Keys{"b", "a"});

  Tally by_sample;
  for (const char* key : {"c", "a", "b", "b", "a", "c"}) {
    by_sample.add(key, key, by_sample.standing().votes, kFullWeight, -5);
  }
  CHECK(keys_of(by_sample) == Keys{"c", "a", "b"});
}

TEST_CASE("weight decides, not the number of votes") {
  Tally tally;
  tally.add("a", "a", 0, kFullWeight / 4, -5);
  tally.add("a", "a", 1, kFullWeight / 4, -5);
  tally.add("b", "b", 2, kFullWeight, -50);
  const Standing standing = tally.standing();
  CHECK(tally.leader() == 2);
  CHECK(standing.leader_votes == 1);
  CHECK(standing.leader_rank == 2);
  CHECK(standing.leader_weight == kFullWeight);
  CHECK(standing.runner_up_votes == 2);
  CHECK(standing.runner_up_weight == kFullWeight / 2);
  CHECK(standing.weight == kFullWeight * 3 / 2);
  CHECK(standing.votes == 3);
}

TEST_CASE("leader and runner-up are always the first two of the sorted tally") {
  std::mt19937 random(7);
  for (unsigned run = 0; run < 300; ++run) {
    Tally tally;
    for (std::size_t i = 0; i < 40; ++i) {
      const std::string key(1, static_cast<char>('a' + random() % (2 + run % 9)));
      tally.add(key, key, i, 1 + random() % 3, -static_cast<std::int64_t>(random() % 4));
      const auto sorted = tally.sorted();
      const Standing standing = tally.standing();
      REQUIRE(tally.leader() == sorted[0].first_sample);
      REQUIRE(standing.leader_votes == sorted[0].count);
      REQUIRE(standing.runner_up_votes == (sorted.size() > 1 ? sorted[1].count : 0));
      const auto earlier = std::count_if(sorted.begin(), sorted.end(), [&](const auto& vote) {
        return vote.first_sample <= sorted[0].first_sample;
      });
      REQUIRE(standing.leader_rank == static_cast<std::size_t>(earlier));
      REQUIRE(standing.votes == i + 1);
    }
  }
}
