// SPDX-License-Identifier: Apache-2.0
#include "engine/vocabulary_passes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "engine/exact_math.h"
#include "support/catch.h"

using namespace incipit::engine;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::size_t kCounts[] = {0, 1, 7, 15, 16, 17, 31, 255, kTokenBlock};

// With a NaN, both infinities and an outlier from time to time.
std::vector<float> scores_of(std::mt19937& random, std::size_t count) {
  std::vector<float> scores(count);
  for (float& score : scores) score = static_cast<float>(random() % 4000) / 100.0f - 30.0f;
  if (count > 1) scores[random() % count] = std::nanf("");
  if (count > 2) scores[random() % count] = -kInfinity;
  if (count > 3) scores[random() % count] = -1e30f;
  return scores;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

bool same(const TokenMass& a, const TokenMass& b) {
  return a.mass == b.mass && a.count == b.count && a.most == b.most;
}

}  // namespace

TEST_CASE("the largest score is found wherever it stands, and a NaN is none") {
  for (const VocabularyPasses* passes : {&plain_vocabulary_passes(), &vocabulary_passes()}) {
    CHECK(passes->largest(nullptr, 0) == -kInfinity);
    for (std::size_t at = 0; at < 37; ++at) {
      std::vector<float> scores(37, -2.0f);
      scores[(at + 1) % 37] = std::nanf("");
      scores[at] = -1.0f;
      CHECK(passes->largest(scores.data(), scores.size()) == -1.0f);
    }
  }
}

TEST_CASE("weights are powers, and masses are sums of what each weighs") {
  std::mt19937 random(1);
  for (const std::size_t count : kCounts) {
    const std::vector<float> scores = scores_of(random, count);
    std::vector<float> weights(count);
    const float best = 10.0f, inverse = 1.0f / 0.7f;
    const auto& passes = plain_vocabulary_passes();
    const TokenMass all = passes.weigh(scores.data(), count, best, inverse, weights.data());
    for (const float least : {0.0f, 0x1p-24f, 0x1p-12f, 0.5f}) {
      TokenMass sum;
      for (std::size_t i = 0; i < count; ++i) {
        const float x = (scores[i] - best) * inverse;
        CHECK(weights[i] == relative_weight(x > kVanishes ? x : kVanishes));
        sum.most = std::max(sum.most, weights[i]);
        if (weights[i] < least) continue;
        sum.mass += mass_of(weights[i]);
        ++sum.count;
      }
      CHECK(same(least == 0.0f ? all : passes.at_least(weights.data(), count, least), sum));
    }
  }
}

TEST_CASE("terms are those of exact_exp()") {
  std::mt19937 random(2);
  for (const std::size_t count : kCounts) {
    const std::vector<float> logits = scores_of(random, count);
    std::vector<double> terms(count), expected(count);
    for (std::size_t i = 0; i < count; ++i) expected[i] = exact_exp(double(logits[i]) - 10.0);
    plain_vocabulary_passes().exponentials(logits.data(), count, 10.0, terms.data());
    CHECK(same_bits(terms, expected));
  }
}

TEST_CASE("this machine's passes give the bits of the plain ones") {
  std::mt19937 random(3);
  const auto &plain = plain_vocabulary_passes(), &fast = vocabulary_passes();
  for (const std::size_t count : kCounts) {
    const std::vector<float> scores = scores_of(random, count);
    CHECK(plain.largest(scores.data(), count) == fast.largest(scores.data(), count));
    for (const float best : {9.99f, -20.0f, kInfinity}) {
      std::vector<float> a(count), b(count);
      const float above = std::max(best, plain.largest(scores.data(), count));
      CHECK(same(plain.weigh(scores.data(), count, above, 1.25f, a.data()),
                 fast.weigh(scores.data(), count, above, 1.25f, b.data())));
      CHECK(same_bits(a, b));
      CHECK(
          same(plain.at_least(a.data(), count, 0x1p-9f), fast.at_least(a.data(), count, 0x1p-9f)));
      std::vector<double> c(count), d(count);
      plain.exponentials(scores.data(), count, double(above), c.data());
      fast.exponentials(scores.data(), count, double(above), d.data());
      CHECK(same_bits(c, d));
    }
  }
}
