// SPDX-License-Identifier: Apache-2.0
#include "support/run_model.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "engine/make_device.h"
#include "model/model_file.h"

namespace incipit::test {
ModelRunner::ModelRunner(const EngineOptions& options) : options_(options) {
  const auto file = model::open_model(options.model);
  device_ = engine::make_device(options, file->config());
  transformer_ = std::make_unique<model::Transformer>(*device_, file->config(),
                                                      file->load_weights(*device_, {}));
}

void ModelRunner::run(
    std::span<const TokenId> ids,
    const std::function<void(std::size_t position, std::span<const float> logits)>& row) {
  // The blocks of the sequence, last one first, so that no two of them follow each other.
  std::vector<device::BlockId> blocks((ids.size() + device::kBlockTokens - 1) /
                                      device::kBlockTokens);
  std::iota(blocks.rbegin(), blocks.rend(), device::BlockId{0});
  const device::KvLayout layout(engine::kv_shape_of(options_, config(), device_->info()));
  const device::Buffer memory = device_->allocate(blocks.size() * layout.block_bytes());
  const device::KvPoolView pool = {memory.data(), blocks.size(), layout};

  for (std::size_t first = 0; first < ids.size(); first += options_.prefill_chunk) {
    const std::size_t rows = std::min(options_.prefill_chunk, ids.size() - first);
    const std::array sequences = {device::SequenceRows{blocks, static_cast<std::uint32_t>(first),
                                                       static_cast<std::uint32_t>(rows)}};
    std::vector<std::uint32_t> wanted(rows);
    std::iota(wanted.begin(), wanted.end(), 0u);
    transformer_->forward(pool, {ids.subspan(first, rows), sequences, wanted},
                          [&](std::size_t slice, tensor::ConstMatrix logits) {
                            for (std::size_t i = 0; i < logits.rows; ++i) {
                              row(first + slice + i, {logits.row(i), logits.columns});
                            }
                          });
  }
}

std::vector<std::vector<float>> ModelRunner::logits(std::span<const TokenId> ids) {
  std::vector<std::vector<float>> rows;
  run(ids, [&](std::size_t, std::span<const float> logits) {
    rows.emplace_back(logits.begin(), logits.end());
  });
  return rows;
}

}  // namespace incipit::test
