// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_RUNTIME_H_
#define INCIPIT_CUDA_RUNTIME_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "cuda/gemm/gemm.h"
#include "device/device.h"

// What this project wants of the CUDA runtime, and its only way to it. Two things stand behind it:
// the runtime itself (runtime/cudart.cpp), and a twin over host memory that runs kernels in the
// SIMT emulator, puts off and reorders what streams do, and fails on demand (tests/simt/runtime.h).

namespace incipit::cuda {

struct DeviceProperties {
  std::string name = {};
  std::string id = {};          // PCI address, "0000:17:00.0"
  std::string arithmetic = {};  // devices of the same give the same bits
  unsigned architecture = 0;    // compute capability: 80 is 8.0
  unsigned multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::size_t shared_bytes = 0;  // that a block can have at most
};

/// The oldest that the kernels are made for.
inline constexpr unsigned kOldestArchitecture = 75;

/// A queue of work of one device: in order within, in any order with other streams but for events.
/// It lives as long as its runtime.
struct StreamRef {
  void* native = nullptr;
};

/// A point in a stream. It lives as long as its runtime.
struct EventRef {
  void* native = nullptr;
};

/// Kernels to start: call(native, body), where `native` is what kernels take for a stream. The body
/// is copied, so it holds values and pointers to memory of the device only.
struct Launch {
  using Call = void (*)(void* native, const void* body);

  Call call = nullptr;
  const void* body = nullptr;
  std::size_t bytes = 0;

  /// Of a function object, which must stay until it has been copied.
  template <class Body>
  static Launch of(const Body& body) {
    static_assert(std::is_trivially_copyable_v<Body>);
    static_assert(alignof(Body) <= alignof(std::max_align_t));
    return {[](void* native, const void* copied) { (*static_cast<const Body*>(copied))(native); },
            &body, sizeof body};
  }
};

/// Launches that a device starts as one. It must not outlive its runtime.
class Graph {
 public:
  virtual ~Graph() = default;
  /// Queues them.
  virtual void launch(StreamRef stream) = 0;
};

/// One device. All functions may be called by any thread.
///
/// They throw Error{kDeviceLost} once the device has failed, also for work of earlier calls, and
/// then always; and Error{kOutOfMemory} where memory is asked for.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual const DeviceProperties& properties() const noexcept = 0;
  /// Bytes that nobody on this device has taken.
  virtual std::size_t free_memory() = 0;

  /// Memory of the device, aligned to 256 bytes, of any content. Freeing it waits for the device,
  /// so nothing under way loses it; it may outlive the runtime.
  virtual device::Buffer allocate(std::size_t bytes) = 0;
  /// Host memory that copies can go to and come from on their own.
  virtual device::Buffer allocate_pinned(std::size_t bytes) = 0;

  virtual StreamRef make_stream() = 0;
  virtual EventRef make_event() = 0;
  /// Null where this machine has none for the device.
  virtual std::unique_ptr<Gemm> make_gemm() = 0;
  /// The event becomes the end of what the stream has by now.
  virtual void record(EventRef event, StreamRef stream) = 0;
  /// What comes next in the stream waits for where the event was recorded last, if it was.
  virtual void wait(StreamRef stream, EventRef event) = 0;
  /// The calling thread waits.
  virtual void synchronize(EventRef event) = 0;
  virtual void synchronize(StreamRef stream) = 0;

  // Queued; the host's side is pinned memory, and stays as it is until the stream has got there.
  virtual void upload(StreamRef stream, const std::byte* pinned, std::byte* to,
                      std::size_t bytes) = 0;
  virtual void download(StreamRef stream, const std::byte* from, std::byte* pinned,
                        std::size_t bytes) = 0;
  /// Within the device; the two do not overlap.
  virtual void copy(StreamRef stream, const std::byte* from, std::byte* to, std::size_t bytes) = 0;
  virtual void fill(StreamRef stream, std::byte* to, std::byte value, std::size_t bytes) = 0;

  /// Queues a launch; it is called at once or later.
  virtual void queue(StreamRef stream, const Launch& launch) = 0;
  /// The same for body(native).
  template <class Body>
  void launch(StreamRef stream, const Body& body) {
    queue(stream, Launch::of(body));
  }
  /// A graph of launches; null: the device makes none of these. `previous`, or null, is used up:
  /// where it differs in what kernels get, and not in which there are, it is changed, which takes
  /// less time.
  virtual std::unique_ptr<Graph> make_graph(std::span<const Launch> launches,
                                            std::unique_ptr<Graph> previous) = 0;
};

/// The devices of a machine.
class Driver {
 public:
  virtual ~Driver() = default;

  /// Throws Error{kInvalidArgument} where there is no driver, or one that is too old.
  virtual std::vector<DeviceProperties> devices() = 0;
  /// Throws also Error{kInvalidArgument} where the device is none of devices(), or older than the
  /// kernels.
  virtual std::shared_ptr<Runtime> open(std::size_t device) = 0;
};

/// The index of a device, checked, for Driver::open(). Throws as that.
void check_device(const std::vector<DeviceProperties>& devices, std::size_t device);

/// This machine's.
std::unique_ptr<Driver> system_driver();

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_RUNTIME_H_
