// SPDX-License-Identifier: Apache-2.0
#include "cpu/attention.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu/attention_fixture.h"
#include "incipit/error.h"
#include "support/catch.h"

// Attention against a reference in double precision over K and V as the pool holds them.

namespace incipit::testing::attention {
namespace {

constexpr double kEpsilon = 1.0 / (1 << 23);
constexpr double kVanishing = 1e-30;  // weights that small may be zero

/// What one head of one row should be, and how far off the path's arithmetic may be.
struct Expected {
  std::vector<double> value, tolerance;  // [head_dim]
};

bool rounds_to_bf16(const Path& path, const device::KvShape& shape) {
  const bool exact_in_bf16 = shape.type == KvFormat::kBF16 || shape.type == KvFormat::kInt8;
  return path.features.avx512_bf16 && exact_in_bf16 && shape.head_dim % 16 == 0 &&
         shape.head_dim <= 256;
}

/// The query as the path rounds it; in units in which its product with a key is the score before
/// the cap.
std::vector<double> rounded_query(std::span<const float> query, float scale, float soft_cap,
                                  bool bf16) {
  const bool binary = bf16 && soft_cap == 0.0f;
  const float factor = binary ? scale * 1.44269504f : scale;
  std::vector<double> rounded;
  for (const float value : query) {
    const float scaled = value * factor;
    const float kept = bf16 ? tensor::bf16_to_f32(tensor::f32_to_bf16(scaled)) : scaled;
    rounded.push_back(static_cast<double>(kept) / (binary ? 1.44269504088896340736 : 1.0));
  }
  return rounded;
}

/// K and V of one KV head, as stored.
struct StoredKv {
  std::vector<double> k, v;  // [tokens, head_dim]

  StoredKv(TestPool& pool, std::size_t layer, std::size_t kv_head, const TestSequence& sequence) {
    for (std::uint32_t key = 0; key < sequence.length; ++key) {
      const BlockId block = sequence.blocks[key / 16];
      for (std::size_t i = 0; i < pool.shape().head_dim; ++i) {
        k.push_back(pool.k(block, layer, kv_head, key % 16, i));
        v.push_back(pool.v(block, layer, kv_head, key % 16, i));
      }
    }
  }
};

/// The keys that a row sees: their softmax weights, and how far off the scores may be.
struct Weights {
  std::uint32_t first = 0;
  std::vector<double> weights = {};  // sum 1
  double score_error = 0.0;
};

Weights reference_weights(const device::AttentionParams& params, const StoredKv& kv,
                          std::uint32_t position, std::size_t head, std::span<const double> q) {
  const double cap = static_cast<double>(params.soft_cap);
  const double slope =
      params.alibi_slopes.empty() ? 0.0 : static_cast<double>(params.alibi_slopes[head]);
  Weights result;
  if (params.window > 0 && params.window <= position) result.first = position + 1 - params.window;
  std::vector<double> errors;
  double largest = -std::numeric_limits<double>::infinity(), sum = 0.0;
  for (std::uint32_t key = result.first; key <= position; ++key) {
    double score = 0.0, size = 0.0;
    for (std::size_t i = 0; i < q.size(); ++i) {
      const double term = q[i] * kv.k[key * q.size() + i];
      score += term;
      size += std::abs(term);
    }
    if (cap > 0.0) score = cap * std::tanh(score / cap);
    const double bias = slope * (static_cast<double>(key) - static_cast<double>(position));
    largest = std::max(largest, score + bias);
    result.weights.push_back(score + bias);
    errors.push_back((static_cast<double>(q.size()) + 4.0) * size + 8.0 * cap +
                     4.0 * (std::abs(score) + std::abs(bias)));
  }
  for (std::size_t i = 0; i < errors.size(); ++i) {
    double& weight = result.weights[i];
    // Keys whose weight vanishes may have any score.
    if (weight > largest - 30.0) {
      result.score_error = std::max(result.score_error, kEpsilon * errors[i]);
    }
    sum += weight = std::exp(weight - largest);
  }
  for (double& weight : result.weights) weight /= sum;
  return result;
}

/// Errors of first order, each at its worst: those of scores change weights by twice their size
/// (the key's own and the maximum's), weights round once more (to 9 bits with BF16 dot products),
/// and a changed weight moves the output by its distance from the value that it weighs; or by all
/// of that value where the sum of the weights is that of other ones, `scaled` ones being rounded.
Expected reference(const StoredKv& kv, const Weights& weights, std::size_t dims, bool bf16,
                   bool scaled) {
  const std::size_t count = weights.weights.size();
  const double rounding = !bf16 ? 1e-6 : scaled ? 1.01 / 256.0 : 1.01 / 512.0;
  const double sum_error = kEpsilon * (static_cast<double>(count) + 16.0);
  Expected expected;
  for (std::size_t i = 0; i < dims; ++i) {
    const auto value = [&](std::size_t key) { return kv.v[(weights.first + key) * dims + i]; };
    double mean = 0.0, size = 0.0, spread = 0.0;
    for (std::size_t key = 0; key < count; ++key) {
      mean += weights.weights[key] * value(key);
      size += weights.weights[key] * std::abs(value(key));
    }
    for (std::size_t key = 0; key < count; ++key) {
      spread += weights.weights[key] * std::abs(value(key) - mean);
    }
    expected.value.push_back(mean);
    const double moved = 2.0 * weights.score_error * spread + rounding * (scaled ? size : spread);
    expected.tolerance.push_back(1.02 * moved + sum_error * size + kVanishing);
  }
  return expected;
}

/// The largest error of some rows of a batch of one sequence, as a part of what is allowed.
double worst_error(const Path& path, TestPool& pool, const device::AttentionParams& params,
                   const TestSequence& sequence, std::span<const float> out,
                   std::span<const std::uint32_t> positions) {
  const std::size_t dims = pool.shape().head_dim, width = params.heads * dims;
  const bool bf16 = rounds_to_bf16(path, pool.shape());
  std::vector<float> query(width);
  double worst = 0.0;
  for (std::size_t head = 0; head < params.heads; ++head) {
    const StoredKv kv(pool, params.layer, head / (params.heads / pool.shape().kv_heads), sequence);
    for (const std::uint32_t position : positions) {
      make_query(sequence, position, query);
      const std::vector<double> q = rounded_query(std::span(query).subspan(head * dims, dims),
                                                  params.scale, params.soft_cap, bf16);
      const Expected expected = reference(kv, reference_weights(params, kv, position, head, q),
                                          dims, bf16, pool.shape().type == KvFormat::kInt8);
      for (std::size_t i = 0; i < dims; ++i) {
        const double got = static_cast<double>(out[position * width + head * dims + i]);
        const double error = std::abs(got - expected.value[i]) / expected.tolerance[i];
        if (!(error <= worst)) worst = error;
      }
    }
  }
  return worst;
}

struct Shape {
  std::size_t head_dim, kv_heads, group;
};

constexpr std::array<KvFormat, 4> kTypes = {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16,
                                            KvFormat::kInt8};
constexpr std::array<std::uint32_t, 10> kRows = {0, 1, 14, 15, 16, 17, 255, 256, 257, 270};

device::AttentionParams params_of(const Shape& shape) {
  device::AttentionParams params;
  params.layer = 1;
  params.heads = shape.kv_heads * shape.group;
  params.scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  return params;
}

double run_and_compare(const Path& path, KvFormat type, const Shape& shape,
                       const device::AttentionParams& params,
                       std::span<const std::uint32_t> rows = kRows) {
  TestPool pool({2, shape.kv_heads, shape.head_dim, type}, 20, 7);
  const TestSequence sequence = make_sequence(pool, rows.back() + 1, 3);
  const std::vector<float> out =
      run_attention(path, pool, params, Batch().add(sequence, 0, sequence.length));
  return worst_error(path, pool, params, sequence, out, rows);
}

TEST_CASE("Attention is right for every KV type, head size and group of heads") {
  for (const Path& path : paths()) {
    for (const KvFormat type : kTypes) {
      for (const Shape& shape : {Shape{16, 2, 1}, Shape{32, 1, 7}, Shape{64, 2, 3}, Shape{80, 1, 1},
                                 Shape{96, 1, 2}, Shape{112, 1, 1}, Shape{128, 1, 3},
                                 Shape{256, 1, 1}, Shape{24, 1, 2}, Shape{2, 2, 1}}) {
        CAPTURE(path.name, device::name(type), shape.head_dim, shape.group);
        CHECK(run_and_compare(path, type, shape, params_of(shape)) <= 1.0);
      }
    }
  }
}

TEST_CASE("Window, ALiBi, soft cap and scale, alone and together") {
  const Shape shape{32, 1, 3};
  constexpr std::array<float, 3> kSlopes = {0.5f, 0.03125f, 0.0f};
  for (const Path& path : paths()) {
    for (const KvFormat type : kTypes) {
      for (const std::uint32_t window : {0u, 1u, 2u, 15u, 16u, 33u, 256u, 1000u}) {
        for (const bool alibi : {false, true}) {
          for (const float soft_cap : {0.0f, 3.0f}) {
            device::AttentionParams params = params_of(shape);
            params.window = window;
            params.soft_cap = soft_cap;
            params.scale = soft_cap > 0.0f ? 1.0f : 0.3f;
            if (alibi) params.alibi_slopes = kSlopes;
            CAPTURE(path.name, device::name(type), window, alibi, soft_cap);
            CHECK(run_and_compare(path, type, shape, params) <= 1.0);
          }
        }
      }
    }
  }
}

TEST_CASE("Sharp and flat softmax") {
  const Shape shape{32, 1, 2};
  for (const Path& path : paths()) {
    for (const float scale : {0.0f, 1e-3f, 20.0f, 1000.0f}) {
      device::AttentionParams params = params_of(shape);
      params.scale = scale;
      CAPTURE(path.name, scale);
      for (const KvFormat type : kTypes) {
        CAPTURE(device::name(type));
        CHECK(run_and_compare(path, type, shape, params) <= 1.0);
      }
    }
  }
}

TEST_CASE("The comparison notices one key too many or too few") {
  const Shape shape{64, 1, 3};
  for (const Path& path : paths()) {
    for (const KvFormat type : kTypes) {
      TestPool pool({2, 1, 64, type}, 20, 7);
      const TestSequence sequence = make_sequence(pool, 271, 3);
      device::AttentionParams params = params_of(shape);
      params.window = 100;
      const std::vector<float> out =
          run_attention(path, pool, params, Batch().add(sequence, 0, sequence.length));
      for (const std::uint32_t wrong : {99u, 101u}) {
        params.window = wrong;
        CAPTURE(path.name, device::name(type), wrong);
        CHECK(worst_error(path, pool, params, sequence, out, std::array{270u}) > 2.0);
      }
    }
  }
}

TEST_CASE("A row that sees one key returns its value") {
  for (const Path& path : paths()) {
    for (const KvFormat type : kTypes) {
      TestPool pool({1, 1, 32, type}, 4, 9);
      const TestSequence sequence = make_sequence(pool, 20, 1);
      device::AttentionParams params;
      params.heads = 1;
      params.window = 1;
      const std::vector<float> out =
          run_attention(path, pool, params, Batch().add(sequence, 0, sequence.length));
      for (std::uint32_t position = 0; position < 20; ++position) {
        for (std::size_t i = 0; i < 32; ++i) {
          const double value = pool.v(sequence.blocks[position / 16], 0, 0, position % 16, i);
          const auto got = static_cast<double>(out[position * 32 + i]);
          // The scale is the one weight, and rounds as weights do.
          const bool rounds = type == KvFormat::kInt8 && rounds_to_bf16(path, pool.shape());
          REQUIRE(std::abs(got - value) <= std::abs(value) * (rounds ? 1.0 / 256.0 : kEpsilon / 2));
          if (type != KvFormat::kInt8) REQUIRE(got == value);
        }
      }
    }
  }
}

TEST_CASE("A NaN that a row sees is not hidden") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Path& path : paths()) {
    for (const KvFormat type : kTypes) {
      TestPool pool({1, 1, 32, type}, 4, 9);
      const TestSequence sequence = make_sequence(pool, 20, 1);
      device::AttentionParams params;
      params.heads = 1;
      CAPTURE(path.name, device::name(type));
      pool.set_v(sequence.blocks[0], 0, 0, 3, 5, kNan);
      std::vector<float> out = run_attention(path, pool, params, Batch().add(sequence, 0, 20));
      CHECK(std::isnan(out[19 * 32 + 5]));
      CHECK(std::isnan(out[19 * 32 + 6]) == (type == KvFormat::kInt8));  // one scale for all
      CHECK_FALSE(std::isnan(out[2 * 32 + 5]));
      pool.set_k(sequence.blocks[0], 0, 0, 4, 5, kNan);
      out = run_attention(path, pool, params, Batch().add(sequence, 0, 20));
      CHECK(std::isnan(out[19 * 32 + 6]));
      CHECK(std::isnan(out[4 * 32 + 6]));
      CHECK(std::isnan(out[3 * 32 + 6]) == (type == KvFormat::kInt8));
    }
  }
}

TEST_CASE("The kernel follows path, KV type and head size") {
  const base::CpuFeatures none = {};
  const device::KvShape bf16 = {1, 1, 64, KvFormat::kBF16}, f16 = {1, 1, 64, KvFormat::kF16};
  const device::KvShape int8 = {1, 1, 64, KvFormat::kInt8};
  const device::KvShape odd = {1, 1, 24, KvFormat::kBF16}, wide = {1, 1, 272, KvFormat::kBF16};
  CHECK(&cpu::attention_kernel(none, bf16) == &cpu::scalar_attention_kernel(KvFormat::kBF16));
#if defined(__x86_64__)
  const base::CpuFeatures all = {.avx2 = true, .avx512 = true, .avx512_bf16 = true};
  const base::CpuFeatures lanes = {.avx2 = true, .avx512 = true};
  CHECK(&cpu::attention_kernel(all, bf16) == &cpu::avx512::bf16_attention_kernel(KvFormat::kBF16));
  CHECK(&cpu::attention_kernel(all, int8) == &cpu::avx512::bf16_attention_kernel(KvFormat::kInt8));
  CHECK(&cpu::attention_kernel(lanes, int8) == &cpu::avx512::attention_kernel(KvFormat::kInt8));
  CHECK(&cpu::attention_kernel(all, f16) == &cpu::avx512::attention_kernel(KvFormat::kF16));
  CHECK(&cpu::attention_kernel(lanes, bf16) == &cpu::avx512::attention_kernel(KvFormat::kBF16));
  CHECK(&cpu::attention_kernel({.avx2 = true}, f16) ==
        &cpu::avx2::attention_kernel(KvFormat::kF16));
  CHECK(&cpu::attention_kernel(all, odd) == &cpu::scalar_attention_kernel(KvFormat::kBF16));
  CHECK(&cpu::attention_kernel(all, wide) == &cpu::scalar_attention_kernel(KvFormat::kBF16));
  const base::CpuFeatures slow = {
      .avx2 = true, .avx512 = true, .avx512_bf16 = true, .slow_bf16 = true};
  CHECK(&cpu::attention_kernel(slow, bf16) == &cpu::avx512::attention_kernel(KvFormat::kBF16));
  CHECK(cpu::attention_numerics(slow) == cpu::attention_numerics(lanes));
  CHECK(cpu::attention_numerics(all) != cpu::attention_numerics(lanes));
  CHECK(cpu::attention_numerics(lanes) == cpu::attention_numerics({.avx2 = true}));
#endif
}

TEST_CASE("Views that do not fit together are refused") {
  TestPool pool({1, 2, 32, KvFormat::kF32}, 4, 9);
  const TestSequence sequence = make_sequence(pool, 20, 1);
  const Path path = paths().front();
  device::AttentionParams params;
  params.heads = 4;
  CHECK_NOTHROW(run_attention(path, pool, params, Batch().add(sequence, 0, 20)));
  params.heads = 3;
  CHECK_THROWS_AS(run_attention(path, pool, params, Batch().add(sequence, 0, 20)), Error);
  params.heads = 4;
  params.layer = 1;
  CHECK_THROWS_AS(run_attention(path, pool, params, Batch().add(sequence, 0, 20)), Error);
  params.layer = 0;
  Run other_segments;
  other_segments.plan.segment_tokens = 128;
  CHECK_THROWS_AS(run_attention(path, pool, params, Batch().add(sequence, 0, 20), other_segments),
                  Error);
}

}  // namespace
}  // namespace incipit::testing::attention
