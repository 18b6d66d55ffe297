// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/sample.cuh"

#include <limits>

#include "base/philox.h"
#include "cuda/kernel_test.h"
#include "engine/token_sampler.h"
#include "incipit/sampling.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

cuda::SamplingRow row_of(const GenerateParams& params, std::uint32_t position) {
  return {params.seed,        params.sample, position,    static_cast<std::uint32_t>(params.top_k),
          params.temperature, params.top_p,  params.min_p};
}

/// The tokens of rows that share their logits.
std::vector<std::int32_t> drawn(const std::vector<float>& logits,
                                const std::vector<cuda::SamplingRow>& how) {
  return run([&](cuda::Stream stream) {
    DeviceArray<float> device_logits(logits);
    DeviceArray<cuda::SamplingRow> device_how(how);
    DeviceArray<std::int32_t> tokens(how.size(), -7);
    cuda::sample(stream, {.logits = device_logits.data(),
                          .stride = 0,
                          .how = device_how.data(),
                          .tokens = tokens.data(),
                          .rows = static_cast<unsigned>(how.size()),
                          .vocabulary = static_cast<unsigned>(logits.size())});
    return tokens.read();
  });
}

std::int32_t on_the_cpu(const std::vector<float>& logits, const GenerateParams& params,
                        std::uint32_t position) {
  engine::TokenSampler sampler(params, {}, logits.size());
  return sampler.choose(logits, position, {});
}

/// Logits of the shape that models have: few stand out.
std::vector<float> model_like(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  auto logits = random_values<float>(random, count, 8.0f);
  for (std::size_t i = 0; i < count; i += 37) logits[i] = logits[i] * 0.5f + 6.0f;
  return logits;
}

std::vector<GenerateParams> settings() {
  std::vector<GenerateParams> all;
  const auto add = [&](float temperature, int top_k, float top_p, float min_p) {
    GenerateParams params;
    params.temperature = temperature;
    params.top_k = top_k;
    params.top_p = top_p;
    params.min_p = min_p;
    params.seed = 0x123456789abcdefull + all.size();
    params.sample = (std::uint64_t{1} << 40) + all.size();
    all.push_back(params);
  };
  add(0.0f, 0, 1.0f, 0.0f);
  add(1.0f, 0, 1.0f, 0.0f);
  add(0.3f, 0, 1.0f, 0.0f);
  add(4.0f, 0, 1.0f, 0.0f);
  add(1.0f, 1, 1.0f, 0.0f);
  add(1.0f, 40, 1.0f, 0.0f);
  add(1.0f, 1000000, 1.0f, 0.0f);
  add(1.0f, 0, 0.9f, 0.0f);
  add(2.0f, 0, 0.999f, 0.0f);
  add(1.0f, 0, 1e-9f, 0.0f);
  add(1.0f, 0, 1.0f, 0.05f);
  add(1.0f, 0, 1.0f, 1.0f);
  add(0.8f, 50, 0.95f, 0.02f);
  add(1e-30f, 0, 0.9f, 0.0f);
  return all;
}

/// With each `step`-th of the settings.
void check_like_the_cpu(const std::vector<float>& logits, std::size_t step = 1) {
  std::vector<cuda::SamplingRow> how;
  std::vector<std::int32_t> wanted;
  const auto all = settings();
  for (std::size_t i = step - 1; i < all.size(); i += step) {
    const auto position = static_cast<std::uint32_t>(1000003 * i);
    how.push_back(row_of(all[i], position));
    wanted.push_back(on_the_cpu(logits, all[i], position));
  }
  CHECK(drawn(logits, how) == wanted);
}

}  // namespace

TEST_CASE("the device draws the token that the CPU draws") {
  for (const std::size_t vocabulary : {1u, 2u, 33u, 5003u}) {
    CAPTURE(vocabulary);
    check_like_the_cpu(model_like(vocabulary, static_cast<unsigned>(vocabulary)));
  }
}

TEST_CASE("a vocabulary with more than 32 ids per range is drawn from, too") {
  check_like_the_cpu(model_like(33001, 9), 4);
}

TEST_CASE("ties go to the lower ids, also at the edges of top_k and top_p") {
  std::vector<float> logits(3000, 1.0f);
  check_like_the_cpu(logits);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = i % 3 == 0 ? 2.0f : -0.0f;
  for (std::size_t i = 1; i < logits.size(); i += 6) logits[i] = 0.0f;  // the same as -0
  check_like_the_cpu(logits);
}

TEST_CASE("damaged logits have no part, and a row of them alone has no token") {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  auto logits = model_like(500, 4);
  for (std::size_t i = 0; i < logits.size(); i += 3) logits[i] = nan;
  for (std::size_t i = 1; i < logits.size(); i += 3) logits[i] = -infinity;
  check_like_the_cpu(logits);
  logits[77] = logits[99] = infinity;
  for (const std::int32_t token : drawn(logits, {row_of(settings()[7], 1)})) CHECK(token == 77);
  for (const float nothing : {nan, -infinity}) {
    const std::vector<float> none(40, nothing);
    for (const GenerateParams& params : settings()) {
      CHECK(drawn(none, {row_of(params, 0)}) == std::vector<std::int32_t>{cuda::kNoToken});
    }
  }
}

TEST_CASE("a row's token does not depend on who else is drawn for") {
  const auto logits = model_like(700, 5);
  std::vector<cuda::SamplingRow> how;
  for (const GenerateParams& params : settings()) how.push_back(row_of(params, 3));
  const auto together = drawn(logits, how);
  for (std::size_t i = 0; i < how.size(); ++i) {
    CHECK(drawn(logits, {how[i]}) == std::vector<std::int32_t>{together[i]});
  }
}

#if INCIPIT_CUDA_EMULATED
TEST_CASE("the device's Philox is the library's") {
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    const auto word = [&] { return static_cast<std::uint32_t>(random()); };
    const std::array<std::uint32_t, 4> counter = {word(), word(), word(), word()};
    const std::array<std::uint32_t, 2> key = {word(), word()};
    const auto wanted = base::philox4x32(counter, key);
    const auto got =
        cuda::prim::philox4x32({{counter[0], counter[1], counter[2], counter[3]}}, key[0], key[1]);
    for (std::size_t j = 0; j < 4; ++j) CHECK(got.words[j] == wanted[j]);
  }
}
#endif

#if INCIPIT_CUDA_EMULATED
TEST_CASE("how often the vocabulary is read to draw from it") {
  const auto logits = model_like(8192, 3);
  const auto passes = [&](float temperature, int top_k, float top_p) {
    GenerateParams params;
    params.temperature = temperature;
    params.top_k = top_k;
    params.top_p = top_p;
    const auto counters = count([&](cuda::Stream stream) {
      DeviceArray<float> device_logits(logits);
      DeviceArray<cuda::SamplingRow> how(1, row_of(params, 7));
      DeviceArray<std::int32_t> token(1, -7);
      cuda::sample(stream, {.logits = device_logits.data(),
                            .stride = 0,
                            .how = how.data(),
                            .tokens = token.data(),
                            .rows = 1,
                            .vocabulary = 8192});
    });
    return static_cast<double>(counters.global_load_sectors) * 32 / (8192 * 4);
  };
  // The best and the mass; then the ranges, and the ids of one of them; for top_k and for top_p
  // three each.
  constexpr double kRange = 0.02;
  CHECK(passes(0.0f, 0, 1.0f) == 2.0);
  CHECK(passes(1.0f, 0, 1.0f) <= 3.0 + kRange);
  CHECK(passes(1.0f, 40, 1.0f) <= 6.0 + kRange);
  CHECK(passes(1.0f, 0, 0.9f) <= 6.0 + kRange);
  CHECK(passes(1.0f, 40, 0.9f) <= 9.0 + kRange);
}
#endif
