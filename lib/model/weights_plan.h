// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_WEIGHTS_PLAN_H_
#define INCIPIT_MODEL_WEIGHTS_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/tensor_names.h"
#include "model/tensor_source.h"
#include "model/weights.h"

namespace incipit::model {

/// Which of a tensor's rows (of a vector: elements) a part of the model takes: row r of the part is
/// row first + r / run * stride + r % run of the tensor.
struct RowChoice {
  std::uint64_t first = 0;
  std::uint64_t count = 0;   // rows of the part
  std::uint64_t run = 0;     // of these lie next to each other
  std::uint64_t stride = 0;  // rows from run to run

  std::uint64_t row(std::uint64_t r) const noexcept { return first + r / run * stride + r % run; }
};

/// A part of the model, the tensor that holds it, and where it goes: one of `matrix` and `vector`.
struct WeightSlot {
  std::string name = {};                  // of the tensor
  std::vector<std::uint64_t> shape = {};  // that the tensor must have
  RowChoice rows = {};
  bool transposed = false;  // the tensor is [columns, rows]
  bool from_one = false;    // each element is 1 plus what the tensor holds
  std::unique_ptr<device::Weight>* matrix = nullptr;
  device::Buffer* vector = nullptr;
  const TensorInfo* tensor = nullptr;

  std::uint64_t columns() const noexcept { return transposed ? shape.front() : shape.back(); }
  bool whole() const noexcept { return rows.count == (transposed ? shape.back() : shape.front()); }
};

/// The slots of a model by tensor name, each with its tensor; they point into `weights`, whose
/// layers this makes. Throws Error{kModelUnreadable} naming the first tensor that is missing, has
/// another shape, or would change what the model computes and has no place in it.
std::vector<WeightSlot> plan_weights(const TensorSource& source, const TensorNames& names,
                                     const ModelConfig& config, ModelWeights& weights);

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_WEIGHTS_PLAN_H_
