// SPDX-License-Identifier: Apache-2.0
#include "cuda/runtime/graph.h"

#include "cuda/runtime/current_device.h"
#include "cuda/runtime/error.h"
#include "incipit/error.h"

namespace incipit::cuda {
namespace {

class CudaGraph final : public Graph {
 public:
  CudaGraph(int device, cudaGraphExec_t graph) : device_(device), graph_(graph) {}
  ~CudaGraph() override { static_cast<void>(cudaGraphExecDestroy(graph_)); }

  void launch(StreamRef stream) override {
    const CurrentDevice current(device_);
    check_cuda(cudaGraphLaunch(graph_, static_cast<cudaStream_t>(stream.native)), "start a graph");
  }
  bool update(cudaGraph_t to) noexcept {
    cudaGraphExecUpdateResultInfo info = {};
    return cudaGraphExecUpdate(graph_, to, &info) == cudaSuccess;
  }

 private:
  const int device_;
  const cudaGraphExec_t graph_;
};

/// Null where something was launched that a graph cannot have.
cudaGraph_t capture(cudaStream_t stream, std::span<const Launch> launches) {
  // Of this thread only: others may take memory meanwhile.
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
    return nullptr;
  }
  bool complete = true;
  try {
    for (const Launch& launch : launches) launch.call(stream, launch.body);
  } catch (const Error&) {
    complete = false;  // the caller queues the launches, which says what is wrong with them
  }
  cudaGraph_t graph = nullptr;
  const bool ended = cudaStreamEndCapture(stream, &graph) == cudaSuccess;
  if (complete && ended) return graph;
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  return nullptr;
}

}  // namespace

std::unique_ptr<Graph> make_cuda_graph(int device, cudaStream_t stream,
                                       std::span<const Launch> launches,
                                       std::unique_ptr<Graph> previous) {
  std::unique_ptr<Graph> made;
  if (cudaGraph_t graph = capture(stream, launches); graph != nullptr) {
    auto* const old = static_cast<CudaGraph*>(previous.get());
    cudaGraphExec_t fresh = nullptr;
    if (old != nullptr && old->update(graph)) {
      made = std::move(previous);
    } else if (cudaGraphInstantiate(&fresh, graph, 0) == cudaSuccess) {
      made = std::make_unique<CudaGraph>(device, fresh);
    }
    static_cast<void>(cudaGraphDestroy(graph));
  }
  static_cast<void>(cudaGetLastError());  // of what was refused: nobody has asked for it
  return made;
}

}  // namespace incipit::cuda
