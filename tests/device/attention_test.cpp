// SPDX-License-Identifier: Apache-2.0
// Attention through the seam: what append_kv wrote, attention reads, on every device of this
// machine. The kernels' own tests (tests/cpu/attention_*) are stricter, but know the order of KV.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/machine.h"
#include "cpu/cpu_device.h"
#include "device/attention_plan.h"
#include "device/device.h"
#include "support/catch.h"
#include "support/random_matrix.h"

using namespace incipit;
using namespace incipit::testing;
using device::BlockId;
using device::kBlockTokens;
using device::KvFormat;

namespace {

constexpr std::size_t kHeads = 6, kKvHeads = 2, kHeadDim = 32, kLayers = 2, kLayer = 1;
constexpr std::size_t kQueryWidth = kHeads * kHeadDim, kKvWidth = kKvHeads * kHeadDim;
constexpr std::uint32_t kTokens = 300;

std::vector<std::unique_ptr<device::Device>> devices(unsigned threads) {
  std::vector<std::unique_ptr<device::Device>> out;
  const base::CpuFeatures features = base::cpu_features();
  const auto add = [&](CpuPath path) {
    out.push_back(cpu::make_cpu_device({path, Activations::kMixed, threads}));
  };
  add(CpuPath::kScalar);
  if (features.avx2) add(CpuPath::kAvx2);
  if (features.avx512) add(CpuPath::kAvx512);
  return out;
}

/// One head's K (or V) of a token, as it comes back from the pool.
std::array<double, kHeadDim> stored(KvFormat type, const float* values) {
  float top = 0.0f;
  for (std::size_t i = 0; i < kHeadDim; ++i) top = std::max(top, std::abs(values[i]));
  const auto kept = [&](float x) {
    switch (type) {
      case KvFormat::kF16:
        return tensor::f16_to_f32(tensor::f32_to_f16(x));
      case KvFormat::kBF16:
        return tensor::bf16_to_f32(tensor::f32_to_bf16(x));
      case KvFormat::kInt8:
        return std::nearbyint(x * (127.0f / top)) * (top / 127.0f);
      case KvFormat::kF32:
        break;
    }
    return x;
  };
  std::array<double, kHeadDim> out;
  for (std::size_t i = 0; i < kHeadDim; ++i) out[i] = static_cast<double>(kept(values[i]));
  return out;
}

/// One sequence in a pool of a device, its blocks in an order of their own.
class Sequence {
 public:
  Sequence(device::Device& device, KvFormat type, std::uint64_t seed)
      : device_(device),
        layout_({kLayers, kKvHeads, kHeadDim, type}),
        buffer_(device.allocate(kBlocks * layout_.block_bytes())) {
    std::mt19937 random(static_cast<unsigned>(seed));
    q = random_floats(random, kTokens * kQueryWidth);
    k = random_floats(random, kTokens * kKvWidth);
    v = random_floats(random, kTokens * kKvWidth);
    for (BlockId i = 0; i < kBlocks; ++i) blocks_.push_back((i * 7 + 3) % kBlocks);
  }

  device::KvPoolView pool() const { return {buffer_.data(), kBlocks, layout_}; }

  /// Appends the rows' K and V, then attends: as a forward pass does. [count, kQueryWidth].
  std::vector<float> step(const device::AttentionParams& params, std::uint32_t first,
                          std::uint32_t count) {
    std::vector<device::KvSlot> slots;
    for (std::uint32_t position = first; position < first + count; ++position) {
      slots.push_back({blocks_[position / kBlockTokens], position % std::uint32_t{kBlockTokens}});
    }
    device_.append_kv(pool(), kLayer, rows(k, kKvWidth, first, count),
                      rows(v, kKvWidth, first, count), slots);
    const std::array sequences = {device::SequenceRows{blocks_, first, count}};
    const device::AttentionPlan plan = device::plan_attention(sequences, device_.info().plan);
    std::vector<float> out(count * kQueryWidth, NAN);
    device_.attention(pool(), params, plan, rows(q, kQueryWidth, first, count),
                      view(out, kQueryWidth));
    return out;
  }

  std::vector<float> q, k, v;  // [kTokens, width]

 private:
  static constexpr BlockId kBlocks = (kTokens + kBlockTokens - 1) / kBlockTokens;

  static tensor::ConstMatrix rows(const std::vector<float>& values, std::size_t width,
                                  std::uint32_t first, std::uint32_t count) {
    return {values.data() + first * width, count, width, width};
  }

  device::Device& device_;
  device::KvLayout layout_;
  device::Buffer buffer_;
  std::vector<BlockId> blocks_;
};

/// One row in double precision, over K and V as rounded to the pool's type.
std::vector<double> reference(const Sequence& sequence, const device::AttentionParams& params,
                              std::uint32_t row) {
  const KvFormat type = sequence.pool().layout.shape().type;
  std::vector<double> out(kQueryWidth, 0.0);
  for (std::size_t head = 0; head < kHeads; ++head) {
    const std::size_t kv_head = head / (kHeads / kKvHeads);
    const auto kv = [&](const std::vector<float>& values, std::uint32_t key) {
      return stored(type, &values[key * kKvWidth + kv_head * kHeadDim]);
    };
    const std::uint32_t first =
        params.window > 0 && params.window <= row ? row + 1 - params.window : 0;
    std::vector<double> weights;
    for (std::uint32_t key = first; key <= row; ++key) {
      const auto k = kv(sequence.k, key);
      double score = 0.0;
      for (std::size_t i = 0; i < kHeadDim; ++i) {
        score += static_cast<double>(sequence.q[row * kQueryWidth + head * kHeadDim + i]) * k[i];
      }
      score *= static_cast<double>(params.scale);
      const double cap = static_cast<double>(params.soft_cap);
      if (cap > 0.0) score = cap * std::tanh(score / cap);
      if (!params.alibi_slopes.empty()) {
        score -= static_cast<double>(params.alibi_slopes[head]) * (row - key);
      }
      weights.push_back(score);
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0.0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (std::uint32_t key = first; key <= row; ++key) {
      const auto v = kv(sequence.v, key);
      for (std::size_t i = 0; i < kHeadDim; ++i) {
        out[head * kHeadDim + i] += weights[key - first] / sum * v[i];
      }
    }
  }
  return out;
}

/// Plain attention, and all that bends it.
void for_each_params(device::Device& device,
                     const std::function<void(device::AttentionParams)>& body) {
  constexpr std::array<float, kHeads> kSlopes = {0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f, 0.0f};
  device::AttentionParams params;
  params.layer = kLayer;
  params.heads = kHeads;
  params.scale = 0.2f;
  body(params);
  const device::Buffer slopes = device.allocate(sizeof(kSlopes));
  device.upload(std::as_bytes(std::span(kSlopes)), slopes.data());
  params.window = 40;
  params.soft_cap = 5.0f;
  params.alibi_slopes = slopes.as<float>().first(kHeads);
  body(params);
}

// BF16 and int8 KV may be met by BF16 queries and weights, which are off by 2^-9 each.
double tolerance(KvFormat type) {
  return type == KvFormat::kBF16 || type == KvFormat::kInt8 ? 0.02 : 5e-6;
}

}  // namespace

TEST_CASE("attention agrees with double precision over what append_kv wrote") {
  for (const auto& device : devices(2)) {
    for (const KvFormat type : {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16, KvFormat::kInt8}) {
      for_each_params(*device, [&](const device::AttentionParams& params) {
        Sequence sequence(*device, type, 1);
        const std::vector<float> out = sequence.step(params, 0, kTokens);
        double worst = 0.0;
        for (const std::uint32_t row : {0u, 1u, 15u, 16u, 100u, 255u, 256u, 299u}) {
          const std::vector<double> expected = reference(sequence, params, row);
          for (std::size_t i = 0; i < kQueryWidth; ++i) {
            const double error =
                std::abs(static_cast<double>(out[row * kQueryWidth + i]) - expected[i]);
            if (!(error <= worst)) worst = error;
          }
        }
        CAPTURE(device->info().numerics, device::name(type), params.window);
        CHECK(worst <= tolerance(type));
      });
    }
  }
}

TEST_CASE("attention gives a row the same bits in any chunk and on any number of threads") {
  const auto one = devices(1), three = devices(3);
  for (std::size_t d = 0; d < one.size(); ++d) {
    for (const KvFormat type : {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16, KvFormat::kInt8}) {
      for_each_params(*one[d], [&](const device::AttentionParams& params) {
        const std::vector<float> whole = Sequence(*one[d], type, 2).step(params, 0, kTokens);
        Sequence pieces(*three[d], type, 2);
        std::vector<float> joined;
        for (std::uint32_t first = 0, count = 0; first < kTokens; first += count) {
          count = std::min(kTokens - first, count * 2 % 61 + 1);
          const std::vector<float> piece = pieces.step(params, first, count);
          joined.insert(joined.end(), piece.begin(), piece.end());
        }
        CAPTURE(one[d]->info().numerics, device::name(type), params.window);
        CHECK(same_bits(joined, whole));
      });
    }
  }
}
