// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_ADJUST_LOGITS_CUH_
#define INCIPIT_CUDA_KERNELS_ADJUST_LOGITS_CUH_

#include "cuda/prim/launch.cuh"
#include "cuda/prim/math.cuh"
#include "cuda/prim/memory.cuh"

namespace incipit::cuda {

/// A change of one token's logit.
struct LogitBias {
  std::int32_t token = 0;
  float bias = 0.0f;
};

/// What a request does to its row of logits, in this order; pointers are to device memory.
struct LogitChanges {
  const std::uint32_t* seen = nullptr;  // bits [vocabulary], or null: who is penalised
  float repetition_penalty = 1.0f;      // positive logits are divided by it, others multiplied
  const LogitBias* biases = nullptr;    // [bias_count], of different tokens
  unsigned bias_count = 0;
  const std::int32_t* banned = nullptr;  // [banned_count]
  unsigned banned_count = 0;
  const std::uint32_t* allowed = nullptr;  // bits [vocabulary], or null: all
};

struct AdjustLogitsParams {
  float* logits = nullptr;  // [rows, vocabulary]
  std::int64_t stride = 0;
  const LogitChanges* changes = nullptr;  // [rows]
  unsigned rows = 0;
  unsigned vocabulary = 0;
};

INCIPIT_DEVICE bool has_bit(const std::uint32_t* bits, unsigned index) {
  return (prim::load(bits + index / 32) >> (index % 32) & 1u) != 0;
}

/// One block per row.
template <unsigned kThreads>
INCIPIT_KERNEL(kThreads)
adjust_logits_kernel(AdjustLogitsParams params) {
  using namespace prim;
  const LogitChanges changes = params.changes[block_x()];
  float* const logits = params.logits + std::int64_t{block_x()} * params.stride;
  if (changes.seen != nullptr) {
    for (unsigned id = thread_x(); id < params.vocabulary; id += kThreads) {
      if (!has_bit(changes.seen, id)) continue;
      const float logit = load(logits + id);
      store(logits + id, logit > 0.0f ? divide_rn(logit, changes.repetition_penalty)
                                      : logit * changes.repetition_penalty);
    }
  }
  sync_threads();
  for (unsigned i = thread_x(); i < changes.bias_count; i += kThreads) {
    const LogitBias change = load(changes.biases + i);
    store(logits + change.token, load(logits + change.token) + change.bias);
  }
  sync_threads();
  for (unsigned i = thread_x(); i < changes.banned_count; i += kThreads) {
    store(logits + load(changes.banned + i), -infinity());
  }
  if (changes.allowed == nullptr) return;
  sync_threads();
  for (unsigned id = thread_x(); id < params.vocabulary; id += kThreads) {
    if (!has_bit(changes.allowed, id)) store(logits + id, -infinity());
  }
}

inline void adjust_logits(Stream stream, const AdjustLogitsParams& params) {
  launch(stream, {.blocks_x = params.rows, .threads = 256}, &adjust_logits_kernel<256>, params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_ADJUST_LOGITS_CUH_
