// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_RUNTIME_GRAPH_H_
#define INCIPIT_CUDA_RUNTIME_GRAPH_H_

#include <cuda_runtime_api.h>

#include <memory>
#include <span>

#include "cuda/runtime.h"

namespace incipit::cuda {

/// Runtime::make_graph() on the current device; the stream is nobody else's.
std::unique_ptr<Graph> make_cuda_graph(int device, cudaStream_t stream,
                                       std::span<const Launch> launches,
                                       std::unique_ptr<Graph> previous);

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_RUNTIME_GRAPH_H_
