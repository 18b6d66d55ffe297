// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_RUN_MODEL_H_
#define INCIPIT_TESTS_SUPPORT_RUN_MODEL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "incipit/engine.h"
#include "model/transformer.h"

namespace incipit::test {

/// A model behind the device that an Engine of the same options would use, without its scheduler
/// and cache: whole rows of logits, at every position.
class ModelRunner {
 public:
  /// Of the options, `model`, `kv_type`, `activations`, `cpu_path`, `threads` and `prefill_chunk`.
  explicit ModelRunner(const EngineOptions& options);

  const model::ModelConfig& config() const noexcept { return transformer_->config(); }

  /// Calls row(position, logits) for each position of `ids`, in order.
  void run(std::span<const TokenId> ids,
           const std::function<void(std::size_t position, std::span<const float> logits)>& row);

  /// The same, kept: [ids][vocabulary].
  std::vector<std::vector<float>> logits(std::span<const TokenId> ids);

 private:
  const EngineOptions options_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<model::Transformer> transformer_;
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_RUN_MODEL_H_
