// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime itself, on a machine with a GPU and on one without.
#include <cstring>
#include <string>

#include "cuda/cuda_device.h"
#include "cuda/runtime.h"
#include "support/catch.h"

using namespace incipit;

namespace {

/// The error of a machine on which nothing can run; empty where something can.
std::string reason_against() {
  try {
    if (cuda::system_driver()->devices().empty()) return "no GPU";
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    return error.what();
  }
}

}  // namespace

TEST_CASE("without a usable GPU an error says what to do") {
  const std::string reason = reason_against();
  if (reason.empty()) {
    WARN("there is a GPU");
    return;
  }
  CAPTURE(reason);
  CHECK(reason.find("DeviceKind::kAuto or kCpu") != std::string::npos);
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(cuda::open_cuda_device(), Error);
}

TEST_CASE("bytes go through a GPU") {
  if (!reason_against().empty()) {
    WARN("skipped: there is no GPU that CUDA can use");
    return;
  }
  const auto driver = cuda::system_driver();
  const auto runtime = driver->open(0);
  CHECK(runtime->properties().architecture >= cuda::kOldestArchitecture);
  CHECK(runtime->free_memory() <= runtime->properties().memory_bytes);
  constexpr std::size_t kBytes = 1000;
  const device::Buffer host = runtime->allocate_pinned(kBytes),
                       memory = runtime->allocate(2 * kBytes);
  const cuda::StreamRef first = runtime->make_stream(), second = runtime->make_stream();
  const cuda::EventRef event = runtime->make_event();
  std::memset(host.data(), 7, kBytes);
  runtime->upload(first, host.data(), memory.data(), kBytes);
  runtime->record(event, first);
  runtime->wait(second, event);
  runtime->copy(second, memory.data(), memory.data() + kBytes, kBytes);
  runtime->fill(second, memory.data(), std::byte{1}, kBytes);
  runtime->synchronize(event);
  std::memset(host.data(), 0, kBytes);
  runtime->download(second, memory.data() + kBytes, host.data(), kBytes);
  runtime->synchronize(second);
  CHECK(host.data()[kBytes - 1] == std::byte{7});
  CHECK_THROWS_AS(driver->open(1000), Error);
  CHECK_THROWS_AS(runtime->allocate(std::size_t{1} << 50), Error);
  runtime->synchronize(first);  // the device is still there
}
