// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_RUNTIME_H_
#define INCIPIT_TESTS_SIMT_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/runtime.h"
#include "simt/types.h"

// The emulated twin of the CUDA runtime: device memory is host memory, kernels run in the emulator,
// and streams run as late, as early or in as odd an order as CUDA allows. What lacks an event, or
// touches pinned memory that a copy still needs, gives wrong bytes here.

namespace incipit::simt {

/// When queued work runs. No order lets work pass an event that it waits for.
enum class StreamOrder {
  kLazy,         // only when the host waits, and then nothing but what that needs
  kOthersFirst,  // when the host waits, but the streams that it does not wait for go first
  kEager,        // at once
  kRandom,       // at some calls some work of random streams, drawn from the seed
};

/// What the library of products does.
enum class GemmState { kFine, kMissing, kRefusing };

/// Whether the device makes graphs; kNoUpdates: it never changes one.
enum class GraphState { kFine, kNoUpdates, kRefusing };

enum class DriverState { kFine, kMissing, kOld };

struct RuntimeOptions {
  StreamOrder order = StreamOrder::kLazy;
  std::uint64_t seed = 1;
  Options launches = {};                            // `architecture` is the device's
  std::size_t memory_bytes = std::size_t{1} << 30;  // of the device
  std::uint64_t refused_allocation = 0;             // number of the one that fails; 0: none
  std::uint64_t losing_call = 0;  // number of the call at which the device is lost; 0: never
  GemmState gemm = GemmState::kFine;
  GraphState graphs = GraphState::kFine;
};

struct RuntimeCounters {
  std::uint64_t calls = 0;
  std::uint64_t allocations = 0;  // of the device and of pinned memory
  std::uint64_t frees = 0;
  std::uint64_t launches = 0;
  std::uint64_t gemms = 0;
  std::uint64_t graphs = 0, graph_updates = 0, graph_launches = 0;  // made, changed, started
  std::uint64_t uploads = 0, upload_bytes = 0;
  std::uint64_t downloads = 0, download_bytes = 0;
  std::uint64_t host_waits = 0;
  Counters kernels = {};  // of all streams
};

class StreamScheduler;

class EmulatedRuntime final : public cuda::Runtime {
 public:
  explicit EmulatedRuntime(const RuntimeOptions& options = {},
                           const cuda::DeviceProperties& properties = emulated_device());
  ~EmulatedRuntime() override;

  static cuda::DeviceProperties emulated_device();

  RuntimeCounters counters() const;
  /// From here on: the n-th allocation from now fails, or the device is lost at the n-th call.
  void refuse_allocation(std::uint64_t n);
  void lose_device(std::uint64_t n);

  const cuda::DeviceProperties& properties() const noexcept override { return properties_; }
  std::size_t free_memory() override;
  device::Buffer allocate(std::size_t bytes) override;
  device::Buffer allocate_pinned(std::size_t bytes) override;
  cuda::StreamRef make_stream() override;
  cuda::EventRef make_event() override;
  std::unique_ptr<cuda::Gemm> make_gemm() override;
  void record(cuda::EventRef event, cuda::StreamRef stream) override;
  void wait(cuda::StreamRef stream, cuda::EventRef event) override;
  void synchronize(cuda::EventRef event) override;
  void synchronize(cuda::StreamRef stream) override;
  void upload(cuda::StreamRef stream, const std::byte* pinned, std::byte* to,
              std::size_t bytes) override;
  void download(cuda::StreamRef stream, const std::byte* from, std::byte* pinned,
                std::size_t bytes) override;
  void copy(cuda::StreamRef stream, const std::byte* from, std::byte* to,
            std::size_t bytes) override;
  void fill(cuda::StreamRef stream, std::byte* to, std::byte value, std::size_t bytes) override;
  void queue(cuda::StreamRef stream, const cuda::Launch& launch) override;
  std::unique_ptr<cuda::Graph> make_graph(std::span<const cuda::Launch> launches,
                                          std::unique_ptr<cuda::Graph> previous) override;

 private:
  struct State;  // shared with the buffers, which may outlive the runtime
  class EmulatedGemm;
  class EmulatedGraph;

  const cuda::DeviceProperties properties_;
  const std::shared_ptr<State> state_;
};

class EmulatedDriver final : public cuda::Driver {
 public:
  explicit EmulatedDriver(std::vector<cuda::DeviceProperties> devices,
                          DriverState state = DriverState::kFine,
                          const RuntimeOptions& options = {})
      : devices_(std::move(devices)), state_(state), options_(options) {}

  std::vector<cuda::DeviceProperties> devices() override;
  std::shared_ptr<cuda::Runtime> open(std::size_t device) override;

 private:
  const std::vector<cuda::DeviceProperties> devices_;
  const DriverState state_;
  const RuntimeOptions options_;
};

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_RUNTIME_H_
