// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_WEIGHTS_LOADER_H_
#define INCIPIT_MODEL_WEIGHTS_LOADER_H_

#include <functional>

#include "model/config.h"
#include "model/tensor_names.h"
#include "model/tensor_source.h"
#include "model/weights.h"

namespace incipit::model {

/// Checks that the source has each tensor of the model, in the right shape, and no other that would
/// change what the model computes. Throws Error{kModelUnreadable} naming the first that is wrong.
void check_tensors(const TensorSource& source, const TensorNames& names, const ModelConfig& config);

/// ModelFile::load_weights() of what check_tensors() has passed. Throws Error{kModelUnreadable} for
/// a tensor with an infinity or NaN.
ModelWeights load_weights(const TensorSource& source, const TensorNames& names,
                          const ModelConfig& config, device::Device& device,
                          const std::function<void(double fraction)>& progress, bool f16_as_bf16);

/// Whether a tensor in a file's form stands for finite values only.
bool all_finite(tensor::DType type, base::Bytes bytes) noexcept;

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_WEIGHTS_LOADER_H_
