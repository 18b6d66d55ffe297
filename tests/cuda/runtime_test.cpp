// SPDX-License-Identifier: Apache-2.0
// The emulated runtime: what CUDA promises holds in every order of streams, and what it does not
// promise goes wrong in one of them.
#include "cuda/runtime.h"

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cuda/prim/launch.cuh"
#include "cuda/prim/memory.cuh"
#include "cuda/runtime_test.h"
#include "support/catch.h"

using namespace incipit;
using cuda::EventRef;
using cuda::StreamRef;
using simt::EmulatedRuntime;
using simt::StreamOrder;

namespace {

constexpr unsigned kCount = 64;
constexpr std::size_t kBytes = kCount * sizeof(std::uint32_t);

INCIPIT_KERNEL(32) add_kernel(std::uint32_t* values, std::uint32_t summand) {
  for (unsigned i = cuda::prim::thread_x(); i < kCount; i += 32) values[i] += summand;
}

INCIPIT_KERNEL(32) failing_kernel() { cuda::prim::trap(); }

void add(EmulatedRuntime& runtime, StreamRef stream, const device::Buffer& values,
         std::uint32_t summand) {
  auto* const data = values.as<std::uint32_t>().data();
  runtime.launch(stream, [=](void* native) {
    cuda::launch(static_cast<cuda::Stream>(native), {.threads = 32}, &add_kernel, data, summand);
  });
}

std::vector<simt::RuntimeOptions> orders() { return testing::stream_orders(20); }

/// In how many orders the program returns `wanted`.
std::size_t right(std::uint32_t wanted, const std::function<std::uint32_t(EmulatedRuntime&)>& run) {
  std::size_t count = 0;
  for (const simt::RuntimeOptions& options : orders()) {
    EmulatedRuntime runtime(options);
    if (run(runtime) == wanted) ++count;
  }
  return count;
}

/// Pinned memory with one value throughout.
device::Buffer pinned(EmulatedRuntime& runtime, std::uint32_t value) {
  device::Buffer buffer = runtime.allocate_pinned(kBytes);
  for (std::uint32_t& element : buffer.as<std::uint32_t>()) element = value;
  return buffer;
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("no error");
  return ErrorCode::kInternal;
}

}  // namespace

TEST_CASE("a stream keeps its order, and the host waits for what it asked for") {
  const auto program = [](EmulatedRuntime& runtime) {
    const device::Buffer host = pinned(runtime, 5), values = runtime.allocate(kBytes),
                         other = runtime.allocate(kBytes);
    const StreamRef stream = runtime.make_stream();
    runtime.upload(stream, host.data(), values.data(), kBytes);
    add(runtime, stream, values, 2);
    runtime.copy(stream, values.data(), other.data(), kBytes);
    runtime.fill(stream, values.data(), std::byte{9}, kBytes);
    add(runtime, stream, other, 1);
    runtime.download(stream, other.data(), host.data(), kBytes);
    runtime.synchronize(stream);
    return host.as<std::uint32_t>()[kCount - 1];
  };
  CHECK(right(8, program) == orders().size());
}

TEST_CASE("streams wait for each other by events, and not otherwise") {
  for (const bool waits : {true, false}) {
    const auto program = [&](EmulatedRuntime& runtime) {
      const device::Buffer host = pinned(runtime, 5), result = pinned(runtime, 0),
                           values = runtime.allocate(kBytes);
      const StreamRef copies = runtime.make_stream(), compute = runtime.make_stream();
      const EventRef there = runtime.make_event(), computed = runtime.make_event();
      runtime.upload(copies, host.data(), values.data(), kBytes);
      runtime.record(there, copies);
      if (waits) runtime.wait(compute, there);
      add(runtime, compute, values, 2);
      runtime.record(computed, compute);
      runtime.wait(copies, computed);
      runtime.download(copies, values.data(), result.data(), kBytes);
      runtime.synchronize(copies);
      return result.as<std::uint32_t>()[0];
    };
    CAPTURE(waits);
    // Without the wait it is right where the upload happens to be first, as on a real GPU.
    const std::size_t count = right(7, program);
    if (waits) {
      CHECK(count == orders().size());
    } else {
      CHECK(count > 0);
      CHECK(count < orders().size());
    }
  }
}

TEST_CASE("pinned memory is read when the copy runs, and written when it runs") {
  for (const bool waits : {true, false}) {
    const auto reused = [&](EmulatedRuntime& runtime) {
      const device::Buffer host = pinned(runtime, 5), values = runtime.allocate(kBytes);
      const StreamRef stream = runtime.make_stream();
      runtime.upload(stream, host.data(), values.data(), kBytes);
      if (waits) runtime.synchronize(stream);
      std::memset(host.data(), 0, kBytes);
      runtime.download(stream, values.data(), host.data(), kBytes);
      runtime.synchronize(stream);
      return host.as<std::uint32_t>()[0];
    };
    const auto read_early = [&](EmulatedRuntime& runtime) {
      const device::Buffer host = pinned(runtime, 0), values = runtime.allocate(kBytes);
      const StreamRef stream = runtime.make_stream();
      runtime.fill(stream, values.data(), std::byte{1}, kBytes);
      runtime.download(stream, values.data(), host.data(), kBytes);
      if (waits) runtime.synchronize(stream);
      return host.as<std::uint32_t>()[0];
    };
    CAPTURE(waits);
    CHECK((right(5, reused) == orders().size()) == waits);
    CHECK((right(0x01010101, read_early) == orders().size()) == waits);
  }
}

TEST_CASE("an event is where it was recorded last; one that never was holds nothing up") {
  const auto program = [](EmulatedRuntime& runtime) {
    const device::Buffer host = pinned(runtime, 0), values = runtime.allocate(kBytes);
    const StreamRef stream = runtime.make_stream(), other = runtime.make_stream();
    const EventRef event = runtime.make_event();
    runtime.synchronize(event);
    runtime.wait(stream, event);
    runtime.fill(stream, values.data(), std::byte{0}, kBytes);
    runtime.record(event, stream);
    runtime.wait(other, event);  // for the fill, not for what is recorded below
    add(runtime, other, values, 1);
    runtime.record(event, other);
    runtime.synchronize(event);
    runtime.download(other, values.data(), host.data(), kBytes);
    runtime.synchronize(other);
    return host.as<std::uint32_t>()[0];
  };
  CHECK(right(1, program) == orders().size());
}

TEST_CASE("copies stay within what was allocated, on the right side") {
  const auto fails = [](const std::function<void(EmulatedRuntime&, StreamRef)>& call) {
    EmulatedRuntime runtime;
    const StreamRef stream = runtime.make_stream();
    CHECK_THROWS_AS(call(runtime, stream), simt::Failure);
    // A caller that does this has lost the device.
    CHECK(code_of([&] { runtime.synchronize(stream); }) == ErrorCode::kDeviceLost);
  };
  std::array<std::byte, kBytes> pageable = {};
  fails([&](EmulatedRuntime& runtime, StreamRef stream) {
    const device::Buffer values = runtime.allocate(kBytes);
    runtime.upload(stream, pageable.data(), values.data(), kBytes);
  });
  fails([&](EmulatedRuntime& runtime, StreamRef stream) {
    const device::Buffer values = runtime.allocate(kBytes), host = runtime.allocate_pinned(kBytes);
    runtime.download(stream, values.data() + 4, host.data(), kBytes);
  });
  fails([&](EmulatedRuntime& runtime, StreamRef stream) {
    const device::Buffer values = runtime.allocate(kBytes);
    runtime.copy(stream, values.data(), values.data() + 4, kBytes / 2);
  });
  fails([&](EmulatedRuntime& runtime, StreamRef stream) {
    const device::Buffer host = runtime.allocate_pinned(kBytes);
    runtime.fill(stream, host.data(), std::byte{0}, kBytes);
  });
}

TEST_CASE("memory ends, and comes back") {
  EmulatedRuntime runtime({.memory_bytes = 1000});
  CHECK(runtime.free_memory() == 1000);
  {
    const device::Buffer most = runtime.allocate(900);
    CHECK(reinterpret_cast<std::uintptr_t>(most.data()) % 256 == 0);
    CHECK(most.data()[899] == std::byte{0xff});  // garbage, as on a GPU
    CHECK(runtime.free_memory() == 100);
    CHECK(code_of([&] { runtime.allocate(101); }) == ErrorCode::kOutOfMemory);
    runtime.allocate_pinned(5000);  // is the host's
  }
  CHECK(runtime.free_memory() == 1000);
  runtime.refuse_allocation(2);
  runtime.allocate(1);
  CHECK(code_of([&] { runtime.allocate(1); }) == ErrorCode::kOutOfMemory);
  runtime.allocate(1);  // the device is still there
  CHECK(runtime.counters().allocations == 6);
  CHECK(runtime.counters().frees == 4);
}

TEST_CASE("memory outlives its runtime, and freeing it waits for the device") {
  device::Buffer values;
  {
    EmulatedRuntime runtime;
    values = runtime.allocate(kBytes);
    device::Buffer other = runtime.allocate(kBytes);
    const StreamRef stream = runtime.make_stream();
    runtime.fill(stream, values.data(), std::byte{0}, kBytes);
    add(runtime, stream, values, 3);
    runtime.copy(stream, values.data(), other.data(), kBytes);
    other = {};
  }
  CHECK(values.as<std::uint32_t>()[0] == 3);
}

TEST_CASE("a lost device stays lost, whatever was under way") {
  EmulatedRuntime runtime;
  const StreamRef stream = runtime.make_stream();
  device::Buffer values = runtime.allocate(kBytes);
  runtime.fill(stream, values.data(), std::byte{0}, kBytes);
  runtime.lose_device(2);
  add(runtime, stream, values, 1);
  for (int i = 0; i < 2; ++i) {
    CHECK(code_of([&] { runtime.synchronize(stream); }) == ErrorCode::kDeviceLost);
    CHECK(code_of([&] { runtime.allocate(1); }) == ErrorCode::kDeviceLost);
  }
  values = {};
}

TEST_CASE("a kernel that fails says why where the host waits, and loses the device") {
  EmulatedRuntime runtime;
  const StreamRef stream = runtime.make_stream();
  runtime.launch(stream, [](void* native) {
    cuda::launch(static_cast<cuda::Stream>(native), {.threads = 32}, &failing_kernel);
  });
  CHECK_THROWS_AS(runtime.synchronize(stream), simt::Failure);
  try {
    runtime.synchronize(stream);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kDeviceLost);
    CHECK(std::string(error.what()).find("trap") != std::string::npos);
  }
}

TEST_CASE("a driver says what is missing") {
  cuda::DeviceProperties fine = EmulatedRuntime::emulated_device(), old = fine;
  old.architecture = 70;
  CHECK(code_of([&] { simt::EmulatedDriver({fine}, simt::DriverState::kMissing).open(0); }) ==
        ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { simt::EmulatedDriver({fine}, simt::DriverState::kOld).devices(); }) ==
        ErrorCode::kInvalidArgument);
  simt::EmulatedDriver two({old, fine});
  CHECK(two.devices().size() == 2);
  CHECK(two.open(1)->properties().architecture == fine.architecture);
  const auto message = [](simt::EmulatedDriver driver, std::size_t device) -> std::string {
    try {
      driver.open(device);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "";
  };
  CHECK(message(simt::EmulatedDriver({}), 0).find("shows no GPU") != std::string::npos);
  CHECK(message(two, 2).find("no GPU number 2") != std::string::npos);
  CHECK(message(two, 0).find("compute capability 7.0, but the kernels need 7.5") !=
        std::string::npos);
}
