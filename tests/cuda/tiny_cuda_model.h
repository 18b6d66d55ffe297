// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CUDA_TINY_CUDA_MODEL_H_
#define INCIPIT_TESTS_CUDA_TINY_CUDA_MODEL_H_

#include "engine/tiny_engine.h"
#include "incipit/engine.h"

namespace incipit::test {

/// Heads of 64, for which there are kernels.
inline TinyModelOptions tiny(Family family, tensor::DType type) {
  TinyModelOptions options;
  options.family = family;
  options.layers = 2;
  options.heads = 3;
  options.kv_heads = 1;
  options.head_dim = 64;
  options.width = 32;
  options.ffn_width = 32;
  options.type = type;
  return options;
}

inline EngineOptions on(const TinyModelFile& file, DeviceKind device, KvType type = KvType::kBF16) {
  EngineOptions options = file.options();
  options.device = device;
  options.kv_type = type;
  options.kv_pool_bytes = std::size_t{2} << 20;
  return options;
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_CUDA_TINY_CUDA_MODEL_H_
