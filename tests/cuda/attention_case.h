// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CUDA_ATTENTION_CASE_H_
#define INCIPIT_TESTS_CUDA_ATTENTION_CASE_H_

#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "cuda/kernel_test.h"
#include "cuda/kernels/attention.cuh"
#include "cuda/launch/attention.h"
#include "device/kv_layout.h"

// What the tests of attention share: a pool of KV, batches over it, and a float64 reference.

namespace incipit::testing {

/// The type that products have where the pool has `Stored` and a test asks for none.
template <class Stored>
struct ProductTypeOf {
  using Type = Stored;
};
template <>
struct ProductTypeOf<std::int8_t> {
  using Type = cuda::BF16;
};

/// How a case starts its kernels: those of the library, which are compiled once for all tests.
template <class Stored, unsigned kDim, class Product>
struct Launch {
  static void attention(cuda::Stream stream, cuda::Math math, device::KvFormat type,
                        const cuda::PagedAttentionParams& params, const cuda::TileLists& tiles) {
    cuda::launch_attention(stream, math, type, params, tiles);
  }
};

struct AttentionModel {
  unsigned heads = 4, kv_heads = 2, layers = 2, layer = 1;
  float scale = 0.0f;  // 0: 1 / sqrt(head dim)
  float soft_cap = 0.0f;
  unsigned window = 0;
  bool alibi = false;
  unsigned segment_tokens = 128;
};

/// One sequence of a batch: some rows behind a cached prefix.
struct Rows {
  unsigned text = 0;  // whose KV and queries they are
  unsigned first = 0, count = 1;
};

/// A pool that holds `texts` texts, whose first `shared` tokens are the same blocks. Blocks lie in
/// random order; what no token was written to is NaN, or scales of NaN.
template <class Stored, unsigned kDim, class Product = typename ProductTypeOf<Stored>::Type>
class AttentionCase {
 public:
  using T = Product;
  static constexpr bool kInt8 = sizeof(Stored) == 1;
  static constexpr unsigned kTokens = 16;

  AttentionCase(const AttentionModel& model_in, unsigned texts, unsigned tokens_in, unsigned shared,
                float query_scale = 1.0f)
      : model(model_in),
        tokens(tokens_in),
        layout_({model.layers, model.kv_heads, kDim,
                 kInt8                                ? device::KvFormat::kInt8
                 : std::is_same_v<Stored, cuda::BF16> ? device::KvFormat::kBF16
                                                      : device::KvFormat::kF16}),
        random_(model.heads * 131 + kDim * 7 + tokens) {
    if (model.scale == 0.0f) model.scale = 1.0f / std::sqrt(static_cast<float>(kDim));
    const unsigned blocks_each = (tokens + kTokens - 1) / kTokens, common = shared / kTokens;
    const unsigned count = common + texts * (blocks_each - common);
    std::vector<device::BlockId> order(count + 3);
    for (unsigned i = 0; i < order.size(); ++i) order[i] = i;
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_() % i]);
    pool.assign(order.size() * layout_.block_bytes(), 0xff);
    blocks.resize(texts);
    for (unsigned text = 0, next = common; text < texts; ++text) {
      for (unsigned b = 0; b < blocks_each; ++b) {
        blocks[text].push_back(order[b < common ? b : next++]);
      }
    }
    for (unsigned text = 0; text < texts; ++text) {
      for (unsigned token = text == 0 ? 0 : common * kTokens; token < tokens; ++token) {
        write_token(text, token);
      }
      queries.push_back(
          random_values<float>(random_, std::size_t{tokens} * model.heads * kDim, query_scale));
    }
    for (unsigned h = 0; h < model.heads; ++h) {
      slopes.push_back(
          std::exp2(-8.0f * static_cast<float>(h + 1) / static_cast<float>(model.heads)));
    }
  }

  /// `window`: of the plan, which may leave out what the model's window hides.
  device::AttentionPlan plan(const std::vector<Rows>& batch, const device::PlanOptions& options,
                             unsigned window = 0) const {
    std::vector<device::SequenceRows> sequences;
    for (const Rows& rows : batch) sequences.push_back({blocks[rows.text], rows.first, rows.count});
    device::PlanOptions ours = options;
    ours.segment_tokens = model.segment_tokens;
    return device::plan_attention(sequences, ours, window);
  }

  /// The output of each row of the batch.
  std::vector<float> run_on(cuda::Stream stream, const std::vector<Rows>& batch,
                            const device::AttentionPlan& plan, bool all_wide = false) {
    std::vector<float> q;
    for (const Rows& rows : batch) {
      const auto width = static_cast<std::ptrdiff_t>(model.heads * kDim);
      const auto from = queries[rows.text].begin() + rows.first * width;
      q.insert(q.end(), from, from + rows.count * width);
      q.resize(q.size());
    }
    DeviceArray<unsigned char> device_pool(pool);
    return run_on_pool(stream, device_pool.data(), q, plan, all_wide);
  }

  std::vector<float> run_on_pool(cuda::Stream stream, const unsigned char* device_pool,
                                 const std::vector<float>& q, const device::AttentionPlan& plan,
                                 bool all_wide) {
    constexpr unsigned kGap = 8;  // rows lie apart, as those of a fused product do
    const unsigned width = model.heads * kDim, stride = width + kGap;
    const auto rows = static_cast<unsigned>(plan.positions.size());
    std::vector<float> spread(std::size_t{rows} * stride, std::nanf(""));
    for (unsigned r = 0; r < rows; ++r) std::copy_n(&q[r * width], width, &spread[r * stride]);
    DeviceArray<float> device_q(spread);
    DeviceArray<float> out(spread.size(), std::nanf(""));
    DeviceArray<float> device_slopes(slopes);
    cuda::AttentionTiles tiles(plan, model.heads / model.kv_heads, kDim, math.fast);
    if (all_wide) {
      for (auto* const few : {&tiles.narrow, &tiles.vector}) {
        tiles.wide.insert(tiles.wide.end(), few->begin(), few->end());
        few->clear();
      }
    }
    DeviceArray<cuda::AttentionTileRef> narrow(tiles.narrow), wide(tiles.wide),
        vector(tiles.vector);
    DeviceArray<std::uint32_t> positions(plan.positions), plan_rows(plan.rows),
        split_index(plan.split_index);
    DeviceArray<device::BlockId> plan_blocks(plan.blocks);
    DeviceArray<device::AttentionItem> items(plan.items);
    DeviceArray<device::SplitRow> split_rows(plan.split_rows);
    const std::size_t slots = std::size_t{plan.states} * model.heads;
    DeviceArray<cuda::SoftmaxState> states(slots, {std::nanf(""), std::nanf("")});
    DeviceArray<float> state_values(slots * kDim, std::nanf(""));

    cuda::PagedAttentionParams params;
    params.q = device_q.data();
    params.out = out.data();
    params.q_stride = params.out_stride = stride;
    params.pool = device_pool;
    params.block_bytes = static_cast<std::int64_t>(layout_.block_bytes());
    params.k_offset = static_cast<std::int64_t>(layout_.k_offset(model.layer, 0));
    params.v_offset = static_cast<std::int64_t>(layout_.v_offset(model.layer, 0));
    params.head_bytes = static_cast<std::int64_t>(layout_.head_bytes());
    params.plan = {positions.data(),
                   plan_rows.data(),
                   plan_blocks.data(),
                   items.data(),
                   split_index.data(),
                   split_rows.data(),
                   static_cast<std::uint32_t>(plan.split_rows.size()),
                   plan.segment_tokens};
    params.states = states.data();
    params.state_values = state_values.data();
    params.heads = model.heads;
    params.kv_heads = model.kv_heads;
    params.head_dim = kDim;
    cuda::set_scores(params, model.scale, model.soft_cap, model.window,
                     model.alibi ? device_slopes.data() : nullptr);
    const auto size = [](const auto& list) { return static_cast<unsigned>(list.size()); };
    const cuda::TileLists lists = {narrow.data(),    wide.data(),   size(tiles.narrow),
                                   size(tiles.wide), vector.data(), size(tiles.vector),
                                   tiles.vector_rows};
    Launch<Stored, kDim, T>::attention(stream, math, layout_.shape().type, params, lists);
    const std::vector<float> all = out.read();
    std::vector<float> result;
    for (unsigned r = 0; r < rows; ++r) {
      const auto row = all.begin() + r * stride;
      result.insert(result.end(), row, row + width);
    }
    return result;
  }

  /// Float64, with the query and KV as they are rounded.
  std::vector<double> wanted(const std::vector<Rows>& batch) const {
    std::vector<double> out;
    for (const Rows& rows : batch) {
      for (unsigned position = rows.first; position < rows.first + rows.count; ++position) {
        for (unsigned h = 0; h < model.heads; ++h) attend(rows.text, position, h, out);
      }
    }
    return out;
  }

  /// Bytes of K and V of one token of one KV head.
  static constexpr std::size_t token_bytes() {
    return 2 * (kDim * sizeof(Stored) + (kInt8 ? sizeof(float) : 0));
  }

  /// What is written for a token; tests may change it.
  void set_value(unsigned text, unsigned token, unsigned kv_head, bool is_v, unsigned i,
                 Stored value) {
    std::memcpy(&pool[place(text, token, kv_head, is_v) + i * sizeof(Stored)], &value,
                sizeof(Stored));
  }
  void set_scale(unsigned text, unsigned token, unsigned kv_head, bool is_v, float scale) {
    std::memcpy(&pool[scale_place(text, token, kv_head, is_v)], &scale, sizeof(scale));
  }

  const device::KvLayout& layout() const { return layout_; }

  AttentionModel model;
  cuda::Math math = {};        // exact
  bool rounds_queries = true;  // as all kernels do but that of few rows in fast mode
  unsigned tokens;
  std::vector<unsigned char> pool;
  std::vector<std::vector<device::BlockId>> blocks;
  std::vector<std::vector<float>> queries;  // [tokens, heads * dim] of each text
  std::vector<float> slopes;

 private:
  std::size_t record(unsigned text, unsigned token, unsigned kv_head, bool is_v) const {
    const std::size_t offset =
        is_v ? layout_.v_offset(model.layer, kv_head) : layout_.k_offset(model.layer, kv_head);
    return blocks[text][token / kTokens] * layout_.block_bytes() + offset;
  }
  std::size_t place(unsigned text, unsigned token, unsigned kv_head, bool is_v) const {
    return record(text, token, kv_head, is_v) + token % kTokens * kDim * sizeof(Stored);
  }
  std::size_t scale_place(unsigned text, unsigned token, unsigned kv_head, bool is_v) const {
    return record(text, token, kv_head, is_v) + layout_.scales_offset() + token % kTokens * 4;
  }

  void write_token(unsigned text, unsigned token) {
    for (unsigned h = 0; h < model.kv_heads; ++h) {
      for (const bool is_v : {false, true}) {
        if constexpr (kInt8) {
          for (unsigned i = 0; i < kDim; ++i) {
            set_value(text, token, h, is_v, i, static_cast<std::int8_t>(random_() % 255 - 127));
          }
          set_scale(text, token, h, is_v, random_values<float>(random_, 1)[0] / 60.0f);
        } else {
          const auto values = random_values<Stored>(random_, kDim, 2.0f);
          for (unsigned i = 0; i < kDim; ++i) set_value(text, token, h, is_v, i, values[i]);
        }
      }
    }
  }

  double value(unsigned text, unsigned token, unsigned kv_head, bool is_v, unsigned i) const {
    Stored stored;
    std::memcpy(&stored, &pool[place(text, token, kv_head, is_v) + i * sizeof(Stored)],
                sizeof(Stored));
    if constexpr (kInt8) {
      float scale = 0.0f;
      std::memcpy(&scale, &pool[scale_place(text, token, kv_head, is_v)], sizeof(scale));
      return value_of(scale) * stored;
    } else {
      return value_of(stored);
    }
  }

  void attend(unsigned text, unsigned position, unsigned head, std::vector<double>& out) const {
    const unsigned kv_head = head / (model.heads / model.kv_heads);
    const float* const q = &queries[text][(position * model.heads + head) * kDim];
    const unsigned begin =
        model.window == 0 || position < model.window ? 0 : position + 1 - model.window;
    std::vector<double> scores;
    double max = -HUGE_VAL;
    for (unsigned key = begin; key <= position; ++key) {
      double score = 0.0;
      for (unsigned i = 0; i < kDim; ++i) {
        const double query = rounds_queries ? value_of(rounded<T>(q[i])) : value_of(q[i]);
        score += query * value(text, key, kv_head, false, i);
      }
      score *= value_of(model.scale);
      const double cap = value_of(model.soft_cap);
      if (cap > 0.0) score = cap * std::tanh(score / cap);
      if (model.alibi) score += value_of(slopes[head]) * (double(key) - double(position));
      scores.push_back(score);
      max = std::max(max, score);
    }
    std::vector<double> sums(kDim, 0.0);
    double total = 0.0;
    for (unsigned key = begin; key <= position; ++key) {
      const double weight = std::exp(scores[key - begin] - max);
      total += weight;
      for (unsigned i = 0; i < kDim; ++i) {
        sums[i] += weight * value(text, key, kv_head, true, i);
      }
    }
    for (const double sum : sums) out.push_back(sum / total);
  }

  device::KvLayout layout_;
  std::mt19937 random_;
};

/// A first token alone, a chunk behind a cached prefix, a few rows in the middle.
inline const std::vector<Rows> kBatch = {{0, 0, 1}, {0, 130, 13}, {0, 7, 2}};
inline constexpr unsigned kBatchTokens = 143;

/// Weights are rounded to T, and so are queries, but those alike in the reference.
template <class T>
constexpr double kAttentionTolerance = 3.0 * kRounding<T>;

template <class Stored, unsigned kDim, class Product = typename ProductTypeOf<Stored>::Type>
void check_case(const AttentionModel& model, unsigned tokens, const std::vector<Rows>& batch,
                float query_scale = 1.0f) {
  CAPTURE(kDim, sizeof(Stored), model.heads, model.kv_heads, tokens, model.window, model.soft_cap);
  AttentionCase<Stored, kDim, Product> problem(model, 1, tokens, 0, query_scale);
  const auto plan = problem.plan(batch, {});
  const auto got = run([&](cuda::Stream s) { return problem.run_on(s, batch, plan); });
  check_near(got, problem.wanted(batch), 0.0, kAttentionTolerance<Product>);
}

#if INCIPIT_CUDA_EMULATED
template <class Stored, unsigned kDim>
void check_before_sm_80() {
  CAPTURE(kDim, sizeof(Stored));
  AttentionCase<Stored, kDim, cuda::F16> problem({}, 1, kBatchTokens, 0);
  const auto plan = problem.plan(kBatch, {});
  simt::Machine machine;
  machine.options.architecture = 75;
  check_near(problem.run_on(&machine, kBatch, plan), problem.wanted(kBatch), 0.0,
             kAttentionTolerance<cuda::F16>);
}
#endif

}  // namespace incipit::testing

#endif  // INCIPIT_TESTS_CUDA_ATTENTION_CASE_H_
