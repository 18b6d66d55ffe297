// SPDX-License-Identifier: Apache-2.0
// The interface of runtime.h over the CUDA runtime. The host's threads may use CUDA themselves:
// each call leaves their current device as it was.
#include <deque>
#include <mutex>

#include "cuda/gemm/cublaslt.h"
#include "cuda/runtime.h"
#include "cuda/runtime/current_device.h"
#include "cuda/runtime/error.h"
#include "cuda/runtime/graph.h"

namespace incipit::cuda {
namespace {

cudaStream_t native(StreamRef stream) { return static_cast<cudaStream_t>(stream.native); }
cudaEvent_t native(EventRef event) { return static_cast<cudaEvent_t>(event.native); }

class CudartRuntime final : public Runtime {
 public:
  CudartRuntime(int device, DeviceProperties properties)
      : device_(device), properties_(std::move(properties)) {
    const CurrentDevice current(device_);
    check_cuda(cudaFree(nullptr), "be opened");  // makes the context
  }
  ~CudartRuntime() override;

  const DeviceProperties& properties() const noexcept override { return properties_; }
  std::size_t free_memory() override;
  device::Buffer allocate(std::size_t bytes) override;
  device::Buffer allocate_pinned(std::size_t bytes) override;
  StreamRef make_stream() override;
  EventRef make_event() override;
  std::unique_ptr<Gemm> make_gemm() override {
    return open_cublaslt(device_, properties_.architecture);
  }
  void record(EventRef event, StreamRef stream) override;
  void wait(StreamRef stream, EventRef event) override;
  void synchronize(EventRef event) override;
  void synchronize(StreamRef stream) override;
  void upload(StreamRef stream, const std::byte* pinned, std::byte* to,
              std::size_t bytes) override {
    copy(stream, pinned, to, bytes, cudaMemcpyHostToDevice);
  }
  void download(StreamRef stream, const std::byte* from, std::byte* pinned,
                std::size_t bytes) override {
    copy(stream, from, pinned, bytes, cudaMemcpyDeviceToHost);
  }
  void copy(StreamRef stream, const std::byte* from, std::byte* to, std::size_t bytes) override {
    copy(stream, from, to, bytes, cudaMemcpyDeviceToDevice);
  }
  void fill(StreamRef stream, std::byte* to, std::byte value, std::size_t bytes) override;

  void queue(StreamRef stream, const Launch& launch) override;
  std::unique_ptr<Graph> make_graph(std::span<const Launch> launches,
                                    std::unique_ptr<Graph> previous) override;

 private:
  void copy(StreamRef stream, const std::byte* from, std::byte* to, std::size_t bytes,
            cudaMemcpyKind kind);

  const int device_;
  const DeviceProperties properties_;
  std::mutex graph_mutex_;
  StreamRef graph_stream_ = {};  // where graphs are made; never runs anything
  std::mutex mutex_;             // of the two below
  std::deque<cudaStream_t> streams_;
  std::deque<cudaEvent_t> events_;
};

CudartRuntime::~CudartRuntime() {
  // Errors of a lost device; there is nothing left to do about them.
  for (const cudaEvent_t event : events_) static_cast<void>(cudaEventDestroy(event));
  for (const cudaStream_t stream : streams_) static_cast<void>(cudaStreamDestroy(stream));
}

std::size_t CudartRuntime::free_memory() {
  const CurrentDevice current(device_);
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "tell its free memory");
  return free;
}

device::Buffer CudartRuntime::allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  const CurrentDevice current(device_);
  void* data = nullptr;
  check_cuda(cudaMalloc(&data, bytes), "give memory");
  return {data, bytes,
          [](void* memory, std::size_t) noexcept { static_cast<void>(cudaFree(memory)); }};
}

device::Buffer CudartRuntime::allocate_pinned(std::size_t bytes) {
  if (bytes == 0) return {};
  const CurrentDevice current(device_);
  void* data = nullptr;
  check_cuda(cudaMallocHost(&data, bytes), "pin memory of the host");
  return {data, bytes,
          [](void* memory, std::size_t) noexcept { static_cast<void>(cudaFreeHost(memory)); }};
}

StreamRef CudartRuntime::make_stream() {
  const CurrentDevice current(device_);
  const std::lock_guard lock(mutex_);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
  streams_.push_back(stream);
  return {stream};
}

EventRef CudartRuntime::make_event() {
  const CurrentDevice current(device_);
  const std::lock_guard lock(mutex_);
  cudaEvent_t event = nullptr;
  // A thread that waits sleeps: the cores are the host program's.
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
             "make an event");
  events_.push_back(event);
  return {event};
}

void CudartRuntime::record(EventRef event, StreamRef stream) {
  const CurrentDevice current(device_);
  check_cuda(cudaEventRecord(native(event), native(stream)), "record an event");
}

void CudartRuntime::wait(StreamRef stream, EventRef event) {
  const CurrentDevice current(device_);
  check_cuda(cudaStreamWaitEvent(native(stream), native(event), 0), "wait for an event");
}

void CudartRuntime::synchronize(EventRef event) {
  const CurrentDevice current(device_);
  check_cuda(cudaEventSynchronize(native(event)), "finish its work");
}

void CudartRuntime::synchronize(StreamRef stream) {
  const CurrentDevice current(device_);
  check_cuda(cudaStreamSynchronize(native(stream)), "finish its work");
}

void CudartRuntime::copy(StreamRef stream, const std::byte* from, std::byte* to, std::size_t bytes,
                         cudaMemcpyKind kind) {
  const CurrentDevice current(device_);
  check_cuda(cudaMemcpyAsync(to, from, bytes, kind, native(stream)), "copy");
}

void CudartRuntime::fill(StreamRef stream, std::byte* to, std::byte value, std::size_t bytes) {
  const CurrentDevice current(device_);
  check_cuda(cudaMemsetAsync(to, std::to_integer<int>(value), bytes, native(stream)),
             "fill memory");
}

void CudartRuntime::queue(StreamRef stream, const Launch& launch) {
  const CurrentDevice current(device_);
  try {
    launch.call(stream.native, launch.body);
  } catch (const Error&) {
    check_last_error("start a kernel");  // says more
    throw;
  }
}

std::unique_ptr<Graph> CudartRuntime::make_graph(std::span<const Launch> launches,
                                                 std::unique_ptr<Graph> previous) {
  const std::lock_guard lock(graph_mutex_);
  if (graph_stream_.native == nullptr) graph_stream_ = make_stream();
  const CurrentDevice current(device_);
  return make_cuda_graph(device_, native(graph_stream_), launches, std::move(previous));
}

DeviceProperties properties_of(int device) {
  cudaDeviceProp native = {};
  check_cuda(cudaGetDeviceProperties(&native, device), "tell its properties");
  char id[32] = {};
  check_cuda(cudaDeviceGetPCIBusId(id, sizeof id, device), "tell its address");
  DeviceProperties properties;
  properties.name = native.name;
  properties.id = id;
  properties.architecture = static_cast<unsigned>(native.major * 10 + native.minor);
  // How mma.sync rounds inside is a matter of the generation.
  properties.arithmetic = "sm_" + std::to_string(properties.architecture);
  properties.multiprocessors = static_cast<unsigned>(native.multiProcessorCount);
  properties.memory_bytes = native.totalGlobalMem;
  properties.shared_bytes = native.sharedMemPerBlockOptin;
  return properties;
}

class CudartDriver final : public Driver {
 public:
  std::vector<DeviceProperties> devices() override {
    int count = 0;
    check_cuda(cudaGetDeviceCount(&count), "be found");
    std::vector<DeviceProperties> all;
    for (int device = 0; device < count; ++device) all.push_back(properties_of(device));
    return all;
  }
  std::shared_ptr<Runtime> open(std::size_t device) override {
    const std::vector<DeviceProperties> all = devices();
    check_device(all, device);
    return std::make_shared<CudartRuntime>(static_cast<int>(device), all[device]);
  }
};

}  // namespace

std::unique_ptr<Driver> system_driver() { return std::make_unique<CudartDriver>(); }

}  // namespace incipit::cuda
