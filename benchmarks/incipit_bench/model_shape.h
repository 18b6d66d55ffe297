// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_INCIPIT_BENCH_MODEL_SHAPE_H_
#define INCIPIT_BENCHMARKS_INCIPIT_BENCH_MODEL_SHAPE_H_

#include <filesystem>
#include <optional>

namespace bench {

/// What of a model decides how much a step computes and reads.
struct ModelShape {
  double layer_parameters = 0;   // in the matrices of all layers
  double output_parameters = 0;  // in the output matrix
  double attention_width = 0;    // layers * heads * head_dim
  double weight_bytes = 0;  // of the file's tensors, less an embedding that is no output matrix
};

/// Reads it from the front of a GGUF file; nothing where the path is no such file or lacks a part
/// of it.
std::optional<ModelShape> read_shape(const std::filesystem::path& path);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_INCIPIT_BENCH_MODEL_SHAPE_H_
