// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CUDA_DECODING_H_
#define INCIPIT_TESTS_CUDA_DECODING_H_

#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "cuda/device_fixture.h"
#include "device/attention_plan.h"
#include "support/weight_types.h"

namespace incipit::testing {

/// Steps of up to 8 texts with one front, through a model of one layer that means nothing.
class Decoding {
 public:
  static constexpr std::size_t kDim = 64, kTexts = 8, kFrontBlocks = 16;

  explicit Decoding(device::Device& device)
      : device_(device),
        layout_({1, 1, kDim, device::KvFormat::kF16}),
        memory_(device.allocate(kBlocks * layout_.block_bytes())),
        pool_({memory_.data(), kBlocks, layout_}),
        x_(device, random_matrix(kTexts, kDim, 1), kDim),
        y_(device, random_matrix(kTexts, kDim, 2), kDim),
        tables_(kTexts, std::vector<device::BlockId>(kFrontBlocks + 1)) {
    std::mt19937 random(1);
    const auto bytes = random_weight(random, tensor::DType::kF16, kDim, kDim);
    weight_ = device.make_weight(tensor::DType::kF16, kDim, kDim, bytes);
    for (std::size_t i = 0; i < kTexts; ++i) {
      std::iota(tables_[i].begin(), tables_[i].end(), 0u);
      tables_[i].back() = static_cast<device::BlockId>(20 + i);  // after a shared front
    }
  }

  /// One token of the first `rows` texts; what comes out. `is_step`: between begin_step() and
  /// end_step().
  std::vector<float> step(std::uint32_t position, std::size_t rows, bool is_step) {
    std::vector<std::int32_t> ids;
    std::vector<std::uint32_t> kept;
    std::vector<device::KvSlot> slots;
    std::vector<device::SequenceRows> sequences;
    for (std::uint32_t i = 0; i < rows; ++i) {
      ids.push_back(static_cast<std::int32_t>((i + position) % kDim));
      kept.push_back(static_cast<std::uint32_t>(rows - 1 - i));
      slots.push_back({tables_[i].back(), position % 16});
      sequences.push_back({tables_[i], position, 1});
    }
    if (is_step) device_.begin_step(rows);
    const device::Matrix a = x_.view.first_rows(rows), b = y_.view.first_rows(rows);
    device_.embed(*weight_, ids, 1.0f, a);
    const device::Product product = {weight_.get(), {}, b};
    device_.matmul(a, std::span(&product, 1));
    device_.append_kv(pool_, 0, a, b, slots);
    device::AttentionParams params;
    params.heads = 1;
    device_.attention(pool_, params, plan_attention(sequences, device_.info().plan), a, b);
    device_.gather_rows(b, kept, a);
    if (is_step) device_.end_step();
    std::vector<float> out(rows * kDim);
    device_.download(reinterpret_cast<const std::byte*>(a.data),
                     std::as_writable_bytes(std::span(out)));
    return out;
  }

 private:
  static constexpr std::size_t kBlocks = 40;

  device::Device& device_;
  const device::KvLayout layout_;
  const device::Buffer memory_;
  const device::KvPoolView pool_;
  const OnDevice x_, y_;
  std::unique_ptr<device::Weight> weight_;
  std::vector<std::vector<device::BlockId>> tables_;
};

}  // namespace incipit::testing

#endif  // INCIPIT_TESTS_CUDA_DECODING_H_
