// SPDX-License-Identifier: Apache-2.0
#include "simt/runtime.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "base/check.h"
#include "simt/stream_scheduler.h"
#include "tensor/dtype.h"

namespace incipit::simt {
namespace {

using cuda::EventRef;
using cuda::StreamRef;

constexpr std::align_val_t kAlignment{256};
constexpr std::size_t kHeaderBytes = 256;
constexpr int kGarbage = 0xff;  // NaN as a float

StreamScheduler::Stream& stream_of(StreamRef stream) {
  return *static_cast<StreamScheduler::Stream*>(stream.native);
}
StreamScheduler::Event& event_of(EventRef event) {
  return *static_cast<StreamScheduler::Event*>(event.native);
}

void multiply_plain(const cuda::GemmParams& params) {
  const auto value = [&](const void* data, std::size_t index) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(data) + index * sizeof bits, sizeof bits);
    return static_cast<double>(params.bf16 ? tensor::bf16_to_f32(bits) : tensor::f16_to_f32(bits));
  };
  for (std::size_t row = 0; row < params.rows; ++row) {
    for (std::size_t output = 0; output < params.outputs; ++output) {
      double sum = 0.0;
      for (std::size_t i = 0; i < params.depth; ++i) {
        sum += value(params.x, row * params.x_stride + i) *
               value(params.weight, output * params.weight_stride + i);
      }
      params.out[row * params.out_stride + output] = static_cast<float>(sum);
    }
  }
}

std::function<void(Machine&)> copy_of(const cuda::Launch& launch) {
  std::vector<std::max_align_t> body(launch.bytes / sizeof(std::max_align_t) + 1);
  std::memcpy(body.data(), launch.body, launch.bytes);
  return [call = launch.call, body](Machine& machine) { call(&machine, body.data()); };
}

struct Piece {
  std::size_t bytes = 0;
  bool pinned = false;
};

/// Launches find the instructions of the device.
RuntimeOptions with_architecture(RuntimeOptions options, unsigned architecture) {
  options.launches.architecture = architecture;
  return options;
}

}  // namespace

struct EmulatedRuntime::State : std::enable_shared_from_this<State> {
  explicit State(const RuntimeOptions& given)
      : options(given), streams(given.order, given.seed, given.launches) {}

  /// One call of the host: counted, refused once the device is lost, and a chance for the streams.
  template <class Body>
  auto call(const Body& body) {
    const std::lock_guard lock(mutex);
    ++counters.calls;
    if (options.losing_call != 0 && counters.calls >= options.losing_call) lose("as was asked for");
    if (!lost.empty()) {
      base::throw_error(ErrorCode::kDeviceLost, "the emulated GPU is lost: " + lost);
    }
    return guarded([&] {
      streams.go_on();
      return body();
    });
  }

  /// What a kernel or the caller does wrong costs the device.
  template <class Body>
  auto guarded(const Body& body) -> decltype(body()) {
    try {
      return body();
    } catch (const Failure& failure) {
      lose(failure.what());
      throw;
    }
  }

  void lose(const std::string& why) {
    if (lost.empty()) lost = why;
    streams.drop_all();
  }

  void add(StreamRef stream, std::function<void(Machine&)> run) {
    streams.add(stream_of(stream), {std::move(run), {}});
    if (options.order == StreamOrder::kEager) streams.go_on();
  }

  device::Buffer allocate(std::size_t bytes, bool pinned);
  static void free(void* data, std::size_t bytes) noexcept;
  void forget(const std::byte* data) noexcept;
  void check_memory(const std::byte* data, std::size_t bytes, bool pinned) const;

  std::mutex mutex;
  RuntimeOptions options;
  RuntimeCounters counters;
  StreamScheduler streams;
  std::map<const std::byte*, Piece> memory;
  std::size_t used = 0;  // of the device
  std::string lost;      // why; empty: it is not
};

device::Buffer EmulatedRuntime::State::allocate(std::size_t bytes, bool pinned) {
  ++counters.allocations;
  const bool refused = counters.allocations == options.refused_allocation;
  if (refused || (!pinned && bytes > options.memory_bytes - used)) {
    base::throw_error(ErrorCode::kOutOfMemory,
                      "the emulated GPU has no " + std::to_string(bytes) + " bytes left");
  }
  if (bytes == 0) return {};
  auto* const header = static_cast<std::byte*>(::operator new(kHeaderBytes + bytes, kAlignment));
  std::memset(header, kGarbage, kHeaderBytes + bytes);
  ::new (header) std::shared_ptr<State>(shared_from_this());
  std::byte* const data = header + kHeaderBytes;
  memory[data] = {bytes, pinned};
  if (!pinned) used += bytes;
  return {data, bytes, &State::free};
}

void EmulatedRuntime::State::free(void* data, std::size_t) noexcept {
  auto* const header = static_cast<std::byte*>(data) - kHeaderBytes;
  auto* const owner = std::launder(reinterpret_cast<std::shared_ptr<State>*>(header));
  const std::shared_ptr<State> state = std::move(*owner);
  owner->~shared_ptr();
  state->forget(static_cast<std::byte*>(data));
  ::operator delete(header, kAlignment);
}

/// As cudaFree, it waits for all work of the device.
void EmulatedRuntime::State::forget(const std::byte* data) noexcept {
  const std::lock_guard lock(mutex);
  ++counters.frees;
  try {
    streams.finish_all();
  } catch (const std::exception& failure) {
    lose(failure.what());  // the next call says so
  }
  for (const std::byte* guard = data - kHeaderBytes + sizeof(std::shared_ptr<State>); guard != data;
       ++guard) {
    if (*guard != std::byte{kGarbage}) lose("something wrote before the start of memory");
  }
  const auto piece = memory.find(data);
  if (!piece->second.pinned) used -= piece->second.bytes;
  memory.erase(piece);
}

void EmulatedRuntime::State::check_memory(const std::byte* data, std::size_t bytes,
                                          bool pinned) const {
  auto piece = memory.upper_bound(data);
  if (piece != memory.begin()) {
    --piece;
    const auto offset = static_cast<std::size_t>(data - piece->first);
    if (piece->second.pinned == pinned && offset <= piece->second.bytes &&
        bytes <= piece->second.bytes - offset) {
      return;
    }
  }
  throw Failure(std::string("copy: not within ") + (pinned ? "pinned memory" : "device memory"));
}

EmulatedRuntime::EmulatedRuntime(const RuntimeOptions& options,
                                 const cuda::DeviceProperties& properties)
    : properties_(properties),
      state_(std::make_shared<State>(with_architecture(options, properties.architecture))) {}

EmulatedRuntime::~EmulatedRuntime() {
  const std::lock_guard lock(state_->mutex);
  try {
    state_->streams.finish_all();
  } catch (const std::exception& failure) {
    state_->lose(failure.what());
  }
}

cuda::DeviceProperties EmulatedRuntime::emulated_device() {
  cuda::DeviceProperties device;
  device.name = "emulated GPU";
  device.id = "0000:00:00.0";
  device.arithmetic = "emulated";
  device.architecture = Options().architecture;
  device.multiprocessors = 4;
  device.memory_bytes = RuntimeOptions().memory_bytes;
  device.shared_bytes = shared_limit(Options().architecture);
  return device;
}

RuntimeCounters EmulatedRuntime::counters() const {
  const std::lock_guard lock(state_->mutex);
  RuntimeCounters counters = state_->counters;
  for (const auto& stream : state_->streams.streams()) {
    const Counters& own = stream.machine.counters;
    counters.kernels.blocks += own.blocks;
    counters.kernels.products += own.products;
    counters.kernels.bank_conflicts += own.bank_conflicts;
    counters.kernels.async_copy_bytes += own.async_copy_bytes;
    counters.kernels.global_load_bytes += own.global_load_bytes;
    counters.kernels.global_store_bytes += own.global_store_bytes;
  }
  return counters;
}

void EmulatedRuntime::refuse_allocation(std::uint64_t n) {
  const std::lock_guard lock(state_->mutex);
  state_->options.refused_allocation = state_->counters.allocations + n;
}

void EmulatedRuntime::lose_device(std::uint64_t n) {
  const std::lock_guard lock(state_->mutex);
  state_->options.losing_call = state_->counters.calls + n;
}

std::size_t EmulatedRuntime::free_memory() {
  return state_->call([&] { return state_->options.memory_bytes - state_->used; });
}

device::Buffer EmulatedRuntime::allocate(std::size_t bytes) {
  return state_->call([&] { return state_->allocate(bytes, false); });
}
device::Buffer EmulatedRuntime::allocate_pinned(std::size_t bytes) {
  return state_->call([&] { return state_->allocate(bytes, true); });
}

StreamRef EmulatedRuntime::make_stream() {
  return state_->call([&] { return StreamRef{&state_->streams.make_stream()}; });
}
EventRef EmulatedRuntime::make_event() {
  return state_->call([&] { return EventRef{&state_->streams.make_event()}; });
}

/// Plain loops, in double: other last bits than any kernel's, and no order of sums to rely on.
class EmulatedRuntime::EmulatedGemm final : public cuda::Gemm {
 public:
  explicit EmulatedGemm(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::size_t workspace_bytes() const noexcept override { return std::size_t{64} << 10; }
  bool multiply(StreamRef stream, const cuda::GemmParams& params,
                std::span<std::byte> workspace) override {
    return state_->call([&] {
      if (state_->options.gemm != GemmState::kFine) return false;
      check(params, workspace);
      ++state_->counters.gemms;
      state_->add(stream, [params, workspace](Machine&) {
        std::memset(workspace.data(), kGarbage, workspace.size());  // is the product's own
        multiply_plain(params);
      });
      return true;
    });
  }

 private:
  void check(const cuda::GemmParams& params, std::span<std::byte> workspace) const {
    const auto matrix = [&](const void* data, std::size_t rows, std::size_t columns,
                            std::size_t stride, std::size_t size) {
      if (reinterpret_cast<std::uintptr_t>(data) % 16 != 0 || columns > stride) {
        throw Failure("product: a matrix that is not aligned, or whose rows overlap");
      }
      state_->check_memory(static_cast<const std::byte*>(data),
                           ((rows - 1) * stride + columns) * size, false);
    };
    matrix(params.x, params.rows, params.depth, params.x_stride, 2);
    matrix(params.weight, params.outputs, params.depth, params.weight_stride, 2);
    matrix(params.out, params.rows, params.outputs, params.out_stride, sizeof(float));
    if (workspace.size() < workspace_bytes()) throw Failure("product: too small a workspace");
    state_->check_memory(workspace.data(), workspace.size(), false);
  }

  const std::shared_ptr<State> state_;
};

std::unique_ptr<cuda::Gemm> EmulatedRuntime::make_gemm() {
  return state_->call([&]() -> std::unique_ptr<cuda::Gemm> {
    if (state_->options.gemm == GemmState::kMissing) return nullptr;
    return std::make_unique<EmulatedGemm>(state_);
  });
}

void EmulatedRuntime::record(EventRef event, StreamRef stream) {
  state_->call([&] { event_of(event) = stream_of(stream).end(); });
}
void EmulatedRuntime::wait(StreamRef stream, EventRef event) {
  state_->call([&] { state_->streams.add(stream_of(stream), {{}, event_of(event)}); });
}
void EmulatedRuntime::synchronize(EventRef event) {
  state_->call([&] {
    ++state_->counters.host_waits;
    state_->streams.finish(event_of(event));
  });
}
void EmulatedRuntime::synchronize(StreamRef stream) {
  state_->call([&] {
    ++state_->counters.host_waits;
    state_->streams.finish(stream_of(stream).end());
  });
}

void EmulatedRuntime::upload(StreamRef stream, const std::byte* pinned, std::byte* to,
                             std::size_t bytes) {
  state_->call([&] {
    state_->check_memory(pinned, bytes, true);
    state_->check_memory(to, bytes, false);
    ++state_->counters.uploads;
    state_->counters.upload_bytes += bytes;
    state_->add(stream, [=](Machine&) { std::memcpy(to, pinned, bytes); });
  });
}
void EmulatedRuntime::download(StreamRef stream, const std::byte* from, std::byte* pinned,
                               std::size_t bytes) {
  state_->call([&] {
    state_->check_memory(from, bytes, false);
    state_->check_memory(pinned, bytes, true);
    ++state_->counters.downloads;
    state_->counters.download_bytes += bytes;
    state_->add(stream, [=](Machine&) { std::memcpy(pinned, from, bytes); });
  });
}
void EmulatedRuntime::copy(StreamRef stream, const std::byte* from, std::byte* to,
                           std::size_t bytes) {
  state_->call([&] {
    state_->check_memory(from, bytes, false);
    state_->check_memory(to, bytes, false);
    if (from < to + bytes && to < from + bytes) throw Failure("copy: memory overlaps");
    state_->add(stream, [=](Machine&) { std::memcpy(to, from, bytes); });
  });
}
void EmulatedRuntime::fill(StreamRef stream, std::byte* to, std::byte value, std::size_t bytes) {
  state_->call([&] {
    state_->check_memory(to, bytes, false);
    state_->add(stream, [=](Machine&) { std::memset(to, std::to_integer<int>(value), bytes); });
  });
}

void EmulatedRuntime::queue(StreamRef stream, const cuda::Launch& launch) {
  state_->call([&] {
    ++state_->counters.launches;
    state_->add(stream, copy_of(launch));
  });
}

/// What it starts, it has copied: so it shows what a launch takes from elsewhere.
class EmulatedRuntime::EmulatedGraph final : public cuda::Graph {
 public:
  EmulatedGraph(std::shared_ptr<State> state, std::span<const cuda::Launch> launches)
      : state_(std::move(state)) {
    for (const cuda::Launch& launch : launches) {
      calls_.push_back(launch.call);
      works_.push_back(copy_of(launch));
    }
  }

  void launch(StreamRef stream) override {
    state_->call([&] {
      ++state_->counters.graph_launches;
      for (const auto& work : works_) state_->add(stream, work);
    });
  }
  bool has_calls_of(const EmulatedGraph& other) const { return calls_ == other.calls_; }

 private:
  const std::shared_ptr<State> state_;
  std::vector<cuda::Launch::Call> calls_;
  std::vector<std::function<void(Machine&)>> works_;
};

std::unique_ptr<cuda::Graph> EmulatedRuntime::make_graph(std::span<const cuda::Launch> launches,
                                                         std::unique_ptr<cuda::Graph> previous) {
  return state_->call([&]() -> std::unique_ptr<cuda::Graph> {
    const GraphState can = state_->options.graphs;
    if (can == GraphState::kRefusing) return nullptr;
    auto graph = std::make_unique<EmulatedGraph>(state_, launches);
    const auto* const old = static_cast<const EmulatedGraph*>(previous.get());
    const bool updated = can == GraphState::kFine && old != nullptr && old->has_calls_of(*graph);
    ++(updated ? state_->counters.graph_updates : state_->counters.graphs);
    return graph;
  });
}

std::vector<cuda::DeviceProperties> EmulatedDriver::devices() {
  switch (state_) {
    case DriverState::kMissing:
      base::throw_error(ErrorCode::kInvalidArgument, "the emulated machine has no driver");
    case DriverState::kOld:
      base::throw_error(ErrorCode::kInvalidArgument, "the emulated machine's driver is too old");
    case DriverState::kFine:
      break;
  }
  return devices_;
}

std::shared_ptr<cuda::Runtime> EmulatedDriver::open(std::size_t device) {
  const auto properties = devices();
  cuda::check_device(properties, device);
  RuntimeOptions options = options_;
  options.memory_bytes = std::min(options.memory_bytes, properties[device].memory_bytes);
  return std::make_shared<EmulatedRuntime>(options, properties[device]);
}

}  // namespace incipit::simt
