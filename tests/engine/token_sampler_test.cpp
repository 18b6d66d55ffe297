// SPDX-License-Identifier: Apache-2.0
#include "engine/token_sampler.h"

#include <cmath>
#include <limits>
#include <map>

#include "incipit/error.h"
#include "support/catch.h"

using incipit::ErrorCode;
using incipit::GenerateParams;
using incipit::TokenId;
using incipit::engine::TokenSampler;

namespace {

const std::vector<float> kLogits = {1.0f, 3.0f, 2.0f, -1.0f, 3.0f, 0.0f};

GenerateParams at_temperature(float temperature) {
  GenerateParams params;
  params.temperature = temperature;
  return params;
}

// How often each token comes up over many positions.
std::map<TokenId, int> histogram(const GenerateParams& params, int draws,
                                 const TokenSampler::Limits& limits = {}) {
  TokenSampler sampler(params, {}, kLogits.size());
  std::map<TokenId, int> counts;
  for (int i = 0; i < draws; ++i) {
    ++counts[sampler.choose(kLogits, static_cast<std::uint32_t>(i), limits)];
  }
  return counts;
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const incipit::Error& error) {
    return error.code();
  }
  FAIL("no error");
  return ErrorCode::kInternal;
}

}  // namespace

TEST_CASE("greedy takes the likeliest, ties by the lower id") {
  const GenerateParams params;
  TokenSampler sampler(params, {}, kLogits.size());
  CHECK(sampler.choose(kLogits, 0, {}) == 1);
  const std::vector<TokenId> banned = {1};
  CHECK(sampler.choose(kLogits, 0, {banned, {}}) == 4);
}

TEST_CASE("draws follow the softmax") {
  const int draws = 40000;
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    const auto counts = histogram(at_temperature(temperature), draws);
    double total = 0.0;
    for (const float logit : kLogits) total += std::exp(double(logit) / double(temperature));
    double chi_square = 0.0;
    for (std::size_t i = 0; i < kLogits.size(); ++i) {
      const double expected = draws * std::exp(double(kLogits[i]) / double(temperature)) / total;
      const auto found = counts.find(static_cast<TokenId>(i));
      const double difference = (found == counts.end() ? 0 : found->second) - expected;
      chi_square += difference * difference / expected;
    }
    CHECK(chi_square < 20.5);  // 5 degrees of freedom: passed by chance 999 times in 1000
  }
}

TEST_CASE("top_k, top_p and min_p keep what they say") {
  GenerateParams params = at_temperature(1.0f);
  params.top_k = 3;
  auto counts = histogram(params, 3000);
  CHECK(counts.size() == 3);
  CHECK(counts.count(1) + counts.count(2) + counts.count(4) == 3);

  params = at_temperature(1.0f);
  params.top_k = 1;  // of a tie, the lower id
  CHECK(histogram(params, 100).begin()->first == 1);
  CHECK(histogram(params, 100).size() == 1);

  // e^3, e^3, e^2, e^1, e^0, e^-1: shares .389 .389 .143 .053 ...
  params = at_temperature(1.0f);
  params.top_p = 0.38f;
  CHECK(histogram(params, 500).size() == 1);
  params.top_p = 0.77f;
  CHECK(histogram(params, 500).size() == 2);
  params.top_p = 0.9f;
  CHECK(histogram(params, 3000).size() == 3);

  params = at_temperature(1.0f);
  params.min_p = 0.3f;  // e^-1 = .368 stays, e^-2 goes
  CHECK(histogram(params, 3000).size() == 3);
  params.min_p = 1.0f;
  CHECK(histogram(params, 500).size() == 2);
}

TEST_CASE("a large vocabulary is drawn from to its last token") {
  // Every other token of 1001 is impossible; the others have one of two probabilities.
  std::vector<float> logits(1001, -std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < logits.size(); i += 2) logits[i] = i >= 998 ? 5.0f : 0.0f;
  const GenerateParams params = at_temperature(1.0f);
  TokenSampler sampler(params, {}, logits.size());
  std::map<TokenId, int> counts;
  const int draws = 20000;
  for (int i = 0; i < draws; ++i) ++counts[sampler.choose(logits, static_cast<unsigned>(i), {})];
  int likely = 0;
  for (const auto& [id, count] : counts) {
    CHECK(id % 2 == 0);
    if (id >= 998) likely += count;
  }
  // 2 e^5 of 2 e^5 + 499: .373, with a standard deviation of .0034.
  CHECK(likely / static_cast<double>(draws) == Approx(0.373).margin(0.017));
  CHECK(counts.contains(998));
  CHECK(counts.contains(1000));
  CHECK(counts.size() > 490);
}

TEST_CASE("top_k and top_p look as far into the tail as they must") {
  // Equal tokens, of which nine tenths are kept: the lower ids.
  std::vector<float> logits(3001, 1.0f);
  GenerateParams params = at_temperature(1.0f);
  params.top_p = 0.9f;
  TokenSampler sampler(params, {}, logits.size());
  std::map<TokenId, int> counts;
  for (int i = 0; i < 5000; ++i) ++counts[sampler.choose(logits, static_cast<unsigned>(i), {})];
  CHECK(counts.rbegin()->first >= 2680);
  CHECK(counts.rbegin()->first <= 2701);
  // One likely token and 3000 that are 2^-20 as likely, half of which top_p needs.
  std::fill(logits.begin(), logits.end(), -13.862944f);
  logits[1500] = 0.0f;
  params.top_p = static_cast<float>((1.0 + 1500.0 / 1048576.0) / (1.0 + 3000.0 / 1048576.0));
  TokenSampler tail(params, {}, logits.size());
  counts.clear();
  for (int i = 0; i < 10000; ++i) ++counts[tail.choose(logits, static_cast<unsigned>(i), {})];
  CHECK(counts.size() > 4);  // 14 of the tail are expected
  CHECK(counts.rbegin()->first <= 1600);
}

TEST_CASE("top_p keeps the fewest of the likeliest that have its share, however flat they are") {
  for (const float spread : {0.0f, 0.01f, 1.0f, 6.0f}) {
    for (const float top_p : {1e-6f, 0.1f, 0.5f, 0.95f, 0.9999f}) {
      for (const std::size_t size : {1u, 2u, 3u, 255u, 5000u}) {
        std::vector<float> logits(size);
        double sum = 0;
        for (std::size_t i = 0; i < size; ++i) {  // about 16 tokens share each value
          logits[i] = spread * static_cast<float>(i * 7919 % (size / 16 + 1)) /
                      static_cast<float>(size / 16 + 1);
          sum += std::exp(static_cast<double>(logits[i]));
        }
        GenerateParams params = at_temperature(1.0f);
        params.top_p = top_p;
        TokenSampler sampler(params, {}, size);
        const TokenId token = sampler.choose(logits, 0, {});
        const auto kept = sampler.drawn(token, size).top;
        CAPTURE(spread, top_p, size);
        REQUIRE_FALSE(kept.empty());
        double share = 0, last = 0;
        std::vector<bool> is_kept(size);
        for (const auto& entry : kept) {
          const auto id = static_cast<std::size_t>(entry.id);
          is_kept[id] = true;
          last = std::exp(static_cast<double>(logits[id])) / sum;
          share += last;
        }
        CHECK(share >= static_cast<double>(top_p) - 1e-5);
        CHECK((kept.size() == 1 || share - last <= static_cast<double>(top_p) + 1e-5));
        // Nobody who is likelier, or as likely with a lower id, is missing.
        const auto worst = static_cast<std::size_t>(kept.back().id);
        for (std::size_t i = 0; i < size; ++i) {
          const bool before =
              logits[i] > logits[worst] || (logits[i] == logits[worst] && i < worst);
          if (before && !is_kept[i]) FAIL("token " << i << " is missing");
        }
      }
    }
  }
}

TEST_CASE("top_k and top_p rank by score where probabilities round to the same") {
  const std::vector<float> logits = {0.1f, std::nextafter(0.1f, 1.0f), 0.05f};
  GenerateParams params = at_temperature(2.0f);
  params.top_k = 1;
  TokenSampler one(params, {}, logits.size());
  CHECK(one.choose(logits, 0, {}) == 1);
  params.top_k = 0;
  params.top_p = 0.01f;
  TokenSampler few(params, {}, logits.size());
  CHECK(few.choose(logits, 0, {}) == 1);
}

TEST_CASE("an infinite bias and a temperature of all but zero leave the likeliest token") {
  GenerateParams params = at_temperature(1.0f);
  params.logit_bias = {{2, std::numeric_limits<float>::infinity()}};
  TokenSampler biased(params, {}, kLogits.size());
  CHECK(biased.choose(kLogits, 0, {}) == 2);
  params = at_temperature(std::numeric_limits<float>::denorm_min());
  TokenSampler cold(params, {}, kLogits.size());
  CHECK(cold.choose(kLogits, 0, {}) == 1);
}

TEST_CASE("a choice depends on seed, sample and position only") {
  GenerateParams params = at_temperature(1.5f);
  const auto sequence = [&](std::uint32_t first) {
    TokenSampler sampler(params, {}, kLogits.size());
    std::vector<TokenId> ids;
    for (std::uint32_t i = first; i < 64; ++i) ids.push_back(sampler.choose(kLogits, i, {}));
    return ids;
  };
  const auto base = sequence(0);
  CHECK(sequence(0) == base);
  CHECK(sequence(10) == std::vector(base.begin() + 10, base.end()));
  params.seed = 1;
  const auto other_seed = sequence(0);
  CHECK(other_seed != base);
  params.seed = 0;
  params.sample = 1;
  CHECK(sequence(0) != base);
  CHECK(sequence(0) != other_seed);
}

TEST_CASE("repetition penalty, bias and allowed tokens") {
  GenerateParams params;
  params.repetition_penalty = 2.0f;
  const std::vector<TokenId> prompt = {1, 3};
  TokenSampler sampler(params, prompt, kLogits.size());
  CHECK(sampler.choose(kLogits, 0, {}) == 4);  // 1 fell to 1.5
  sampler.accept(4);
  CHECK(sampler.choose(kLogits, 0, {}) == 2);
  const std::vector<TokenId> low = {3, 5};  // 3 sank to -2
  CHECK(sampler.choose(kLogits, 0, {{}, low}) == 5);

  params = {};
  params.logit_bias = {{3, 10.0f}, {1, -std::numeric_limits<float>::infinity()}};
  TokenSampler biased(params, {}, kLogits.size());
  CHECK(biased.choose(kLogits, 0, {}) == 3);
  const std::vector<TokenId> narrow = {0, 1};
  CHECK(biased.choose(kLogits, 0, {{}, narrow}) == 0);
  const std::vector<TokenId> only_banned = {1};
  CHECK(code_of([&] {
          biased.choose(kLogits, 0, {{}, only_banned});
        }) == ErrorCode::kInvalidArgument);
  const std::vector<TokenId> unknown = {6};
  CHECK(code_of([&] { biased.choose(kLogits, 0, {{}, unknown}); }) == ErrorCode::kInvalidArgument);
  const std::vector<TokenId> negative = {-1};
  CHECK(code_of([&] { biased.choose(kLogits, 0, {{}, negative}); }) == ErrorCode::kInvalidArgument);
}

TEST_CASE("log-probabilities are those of the raw logits, likeliest first") {
  double sum = 0.0;
  for (const float logit : kLogits) sum += std::exp(double(logit));
  const GenerateParams params;
  const double log_sum = TokenSampler(params, {}, kLogits.size()).log_sum_exp(kLogits);
  CHECK(log_sum == Approx(std::log(sum)).epsilon(1e-14));
  const auto top = incipit::engine::top_logprobs(kLogits, log_sum, 3);
  REQUIRE(top.size() == 3);
  CHECK(top[0].id == 1);
  CHECK(top[1].id == 4);
  CHECK(top[2].id == 2);
  CHECK(top[2].logprob == static_cast<float>(2.0 - log_sum));
  CHECK(incipit::engine::top_logprobs(kLogits, log_sum, 100).size() == kLogits.size());
}
