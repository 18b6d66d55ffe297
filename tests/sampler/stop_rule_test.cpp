// SPDX-License-Identifier: Apache-2.0
#include "sampler/stop_rule.h"

#include "sampler/weight.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::sampler;

namespace {

/// Votes of weight 1 for two answers; the first came up as the rank-th.
Standing standing(std::size_t leader, std::size_t runner_up, std::size_t rank = 1) {
  Standing standing;
  standing.votes = leader + runner_up;
  standing.weight = standing.votes * kFullWeight;
  standing.leader_votes = leader;
  standing.leader_weight = leader * kFullWeight;
  standing.leader_rank = leader == 0 ? 0 : rank;
  standing.runner_up_votes = runner_up;
  standing.runner_up_weight = runner_up * kFullWeight;
  return standing;
}

}  // namespace

TEST_CASE("None never stops") {
  CHECK_FALSE(may_stop(stop::None{}, standing(100, 0), 1));
  CHECK(votes_needed(stop::None{}, standing(0, 0), 16) == 16);
}

TEST_CASE("Lossless stops when the rest could not even draw level") {
  CHECK(may_stop(stop::Lossless{}, standing(9, 0), 7));
  CHECK(may_stop(stop::Lossless{}, standing(9, 1), 7));
  CHECK_FALSE(may_stop(stop::Lossless{}, standing(9, 2), 7));
  CHECK_FALSE(may_stop(stop::Lossless{}, standing(8, 0), 8));
  CHECK_FALSE(may_stop(stop::Lossless{}, standing(9, 0), 0));  // that is the end, not a stop
  CHECK(votes_needed(stop::Lossless{}, standing(0, 0), 16) == 9);
  CHECK(votes_needed(stop::Lossless{}, standing(8, 0), 8) == 1);
  CHECK(votes_needed(stop::Lossless{}, standing(0, 0), 1) == 1);
  CHECK(votes_needed(stop::Lossless{}, standing(4, 4), 2) == 2);
}

TEST_CASE("Lossless reckons with the largest weights there can be") {
  Standing light = standing(9, 0);
  light.weight = light.leader_weight = 9 * kFullWeight / 2;  // nine votes of half the weight
  CHECK_FALSE(may_stop(stop::Lossless{}, light, 7));
  CHECK_FALSE(may_stop(stop::Lossless{}, light, 5));
  CHECK(may_stop(stop::Lossless{}, light, 4));
}

TEST_CASE("Certified asks the certificate, also at the end") {
  CHECK(may_stop(stop::Certified{0.05}, standing(9, 0), 7));
  CHECK(may_stop(stop::Certified{0.05}, standing(9, 0), 0));
  CHECK_FALSE(may_stop(stop::Certified{0.05}, standing(8, 0), 0));
  CHECK_FALSE(may_stop(stop::Certified{0.05}, standing(9, 0, 2), 7));
  CHECK(votes_needed(stop::Certified{0.05}, standing(0, 0), 16) == 9);
  CHECK(votes_needed(stop::Certified{0.05}, standing(5, 0), 11) == 4);
  CHECK(votes_needed(stop::Certified{0.01}, standing(0, 0), 8) == 8);  // out of reach
}

TEST_CASE("how many votes are needed is what counting up finds, whatever may follow") {
  CHECK(votes_needed(stop::Certified{0.05}, standing(0, 0), 4096) == 9);
  CHECK(votes_needed(stop::Certified{0.05}, standing(60, 34), 300) == 8);
  // The certificate ends at 102 votes; what it cannot say by then it will not say later.
  CHECK(votes_needed(stop::Certified{0.05}, standing(51, 50), 300) == 300);
  CHECK(votes_needed(stop::Certified{0.05}, standing(52, 50), 300) == 300);
  CHECK(votes_needed(stop::Certified{0.05}, standing(90, 50), 300) == 300);
  for (const StopRule& rule : {StopRule(stop::None{}), StopRule(stop::Lossless{}),
                               StopRule(stop::Certified{0.05}), StopRule(stop::Horizon{0.01})}) {
    for (const std::size_t remaining : {1U, 2U, 7U, 40U, 130U}) {
      for (std::size_t leader = 0; leader <= 60; leader += 4) {
        for (std::size_t runner_up = 0; runner_up <= leader; runner_up += 3) {
          std::size_t votes = 1;
          while (votes < remaining &&
                 !may_stop(rule, standing(leader + votes, runner_up), remaining - votes)) {
            ++votes;
          }
          CAPTURE(rule.index(), remaining, leader, runner_up);
          REQUIRE(votes_needed(rule, standing(leader, runner_up), remaining) == votes);
        }
      }
    }
  }
}

TEST_CASE("Horizon weighs what is left") {
  CHECK(may_stop(stop::Horizon{0.01}, standing(5, 0), 11));
  CHECK_FALSE(may_stop(stop::Horizon{0.01}, standing(4, 0), 12));
  CHECK_FALSE(may_stop(stop::Horizon{0.01}, standing(0, 0), 16));
  CHECK_FALSE(may_stop(stop::Horizon{0.01}, standing(5, 0), 0));
  CHECK(votes_needed(stop::Horizon{0.01}, standing(0, 0), 16) == 5);
  CHECK(votes_needed(stop::Horizon{0.01}, standing(0, 0), 40) == 6);
  // All votes at a quarter of the weight count as votes; but what may still come is whole.
  Standing light = standing(8, 0);
  light.weight = light.leader_weight = 8 * kFullWeight / 4;
  CHECK(may_stop(stop::Horizon{0.01}, light, 8));
  // A leader by weight alone, with fewer votes than the runner-up.
  Standing split = standing(2, 3);
  split.leader_weight = 2 * kFullWeight;
  split.runner_up_weight = 1 * kFullWeight;
  split.weight = 3 * kFullWeight;
  CHECK_FALSE(may_stop(stop::Horizon{0.01}, split, 11));
}

TEST_CASE("a wave is what is needed, and as many more as are worth it") {
  // A unanimous vote so far: few spares. An open one: many. One row for nothing: none ever.
  CHECK(wave_size(4, standing(20, 0), 30, 0.2) == 4);
  CHECK(wave_size(4, standing(8, 2), 30, 0.2) == 6);
  CHECK(wave_size(4, standing(5, 5), 30, 0.2) == 10);
  CHECK(wave_size(4, standing(5, 5), 6, 0.2) == 6);
  CHECK(wave_size(4, standing(5, 5), 30, 1.0) == 4);
  CHECK(wave_size(4, standing(5, 5), 100, 0.0) == 20);
  CHECK(wave_size(1, standing(0, 0), 30, 0.6) == 1);
  CHECK(wave_size(100, standing(5, 5), 4000, 0.2) == 100);
  CHECK(wave_size(16, standing(5, 5), 16, 0.2) == 16);
}
