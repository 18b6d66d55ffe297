// SPDX-License-Identifier: Apache-2.0
// What the stop rules promise and save, on synthetic sources of answers.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "sampler/stop_math.h"
#include "sampler/stop_rule.h"
#include "sampler/weight.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::sampler;

namespace {

using Random = std::mt19937_64;
using Source = std::vector<double>;  // probability of each answer; the first is the likeliest

double uniform(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

std::size_t draw(const Source& source, Random& random) {
  double left = uniform(random);
  for (std::size_t i = 0; i + 1 < source.size(); ++i) {
    if (left < source[i]) return i;
    left -= source[i];
  }
  return source.size() - 1;
}

Source with_small(Source source, std::size_t count) {
  double rest = 1.0;
  for (const double p : source) rest -= p;
  source.insert(source.end(), count, rest / static_cast<double>(count));
  return source;
}

/// is_certified(), each case once.
class Certificate {
 public:
  explicit Certificate(double alpha) : alpha_(probability_units(alpha)) {}
  bool operator()(std::size_t a, std::size_t b, std::size_t rank) {
    char& known = known_.try_emplace({a, b, rank}, '?').first->second;
    if (known == '?') known = is_certified(a, b, rank, alpha_) ? 'y' : 'n';
    return known == 'y';
  }

 private:
  std::uint64_t alpha_;
  std::map<std::array<std::size_t, 3>, char> known_;
};

/// Samples until something is certified, `cap` times at most. Returns the answer, or none.
std::size_t certified_answer(const Source& source, Certificate& certificate, Random& random,
                             std::size_t cap) {
  std::vector<std::size_t> count(source.size(), 0), rank(source.size(), 0);
  std::size_t ranks = 0, leader = 0;
  for (std::size_t i = 0; i < cap; ++i) {
    const std::size_t answer = draw(source, random);
    if (count[answer]++ == 0) rank[answer] = ++ranks;
    if (count[answer] > count[leader]) leader = answer;
    if (answer != leader || count[leader] < 5) continue;  // E falls, or is too small anyway
    std::size_t runner_up = 0;
    for (std::size_t k = 0; k < count.size(); ++k) {
      if (k != leader) runner_up = std::max(runner_up, count[k]);
    }
    if (certificate(count[leader], runner_up, rank[leader])) return leader;
  }
  return source.size();
}

/// Beta(a, b) by rejection.
double beta(double a, double b, Random& random) {
  const auto density = [&](double x) { return std::pow(x, a - 1.0) * std::pow(1.0 - x, b - 1.0); };
  const double mode = b == 1.0 ? 1.0 : (a - 1.0) / (a + b - 2.0);
  while (true) {
    const double x = uniform(random);
    if (uniform(random) * density(mode) <= density(x)) return x;
  }
}

/// A question: the first answer has `p`, the others share the rest at random.
Source question(double p, Random& random) {
  Source source = {p};
  const std::size_t others = 2 + random() % 11;
  double sum = 0.0;
  for (std::size_t i = 0; i < others; ++i) sum += source.emplace_back(uniform(random));
  for (std::size_t i = 1; i <= others; ++i) source[i] *= (1.0 - p) / sum;
  return source;
}

struct Savings {
  double samples = 0.0;    // mean per question
  double agreement = 0.0;  // share of questions with the answer of all samples
};

constexpr std::size_t kAll = 40;

/// What a rule does to 4,000 questions whose first answer has Beta(a, b).
Savings savings_of(const StopRule& rule, double a, double b) {
  constexpr int kQuestions = 4000;
  Random random(2024);
  std::size_t samples = 0;
  int agree = 0;
  for (int i = 0; i < kQuestions; ++i) {
    const Source source = question(beta(a, b, random), random);
    Tally tally;
    std::optional<std::size_t> early;  // the winner's first sample
    for (std::size_t k = 0; k < kAll; ++k) {
      const std::string key(1, static_cast<char>('a' + draw(source, random)));
      tally.add(key, key, k, kFullWeight, -1);
      if (early || k + 1 < 3) continue;
      if (!may_stop(rule, tally.standing(), kAll - k - 1) && k + 1 < kAll) continue;
      early = tally.leader();
      samples += k + 1;
    }
    agree += early == tally.leader();
  }
  return {static_cast<double>(samples) / kQuestions, 100.0 * agree / kQuestions};
}

}  // namespace

TEST_CASE("a certified answer is the likeliest one, but for alpha at most, for every source") {
  const std::vector<Source> sources = {
      {0.6, 0.4},
      {0.5, 0.45, 0.05},
      {0.51, 0.49},
      {0.34, 0.33, 0.33},
      {0.9, 0.1},
      with_small({0.35, 0.3}, 10),
      with_small({0.3}, 30),
      with_small({0.11}, 9),
      with_small({0.26, 0.25, 0.25}, 1),
      with_small({0.2, 0.19, 0.19, 0.19, 0.19}, 1),
  };
  constexpr int kRuns = 10'000;  // of each source and rate: 200,000 in all
  for (const double alpha : {0.2, 0.05}) {
    Certificate certificate(alpha);
    for (std::size_t s = 0; s < sources.size(); ++s) {
      Random random(s);
      int certified = 0, wrong = 0;
      for (int run = 0; run < kRuns; ++run) {
        const std::size_t answer = certified_answer(sources[s], certificate, random, 100);
        certified += answer < sources[s].size();
        wrong += answer > 0 && answer < sources[s].size();
      }
      CAPTURE(alpha, s, certified, wrong);
      CHECK(wrong <= alpha * kRuns);
      if (sources[s][0] == 0.9) CHECK(certified == kRuns);
    }
  }
}

TEST_CASE("the rules save what docs/self_consistency.md says") {
  struct Bound {
    StopRule rule;
    double hard_agreement, hard;  // at least so many percent, with fewer samples than that
    double easy_agreement, easy;
  };
  const std::vector<Bound> bounds = {{stop::Lossless{}, 100.0, 31.0, 100.0, 24.0},
                                     {stop::Certified{0.05}, 99.9, 30.0, 99.95, 14.5},
                                     {stop::Certified{0.2}, 99.8, 26.5, 99.9, 10.5},
                                     {stop::Horizon{0.01}, 99.7, 20.5, 99.8, 9.0}};
  for (const Bound& bound : bounds) {
    CAPTURE(bound.rule.index(), bound.hard);
    const Savings hard = savings_of(bound.rule, 2.2, 1.6);
    CHECK(hard.agreement >= bound.hard_agreement);
    CHECK(hard.samples < bound.hard);
    const Savings easy = savings_of(bound.rule, 8.0, 1.0);
    CHECK(easy.agreement >= bound.easy_agreement);
    CHECK(easy.samples < bound.easy);
  }
}
