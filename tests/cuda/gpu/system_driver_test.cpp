// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime itself, on a machine with a GPU and on one without.
#include <cstdint>
#include <cstring>
#include <string>

#include "cuda/cuda_device.h"
#include "cuda/runtime.h"
#include "support/catch.h"
#include "tensor/dtype.h"

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

TEST_CASE("the library of a GPU multiplies what a device in fast mode gives it") {
  if (!reason_against().empty()) {
    WARN("skipped: there is no GPU that CUDA can use");
    return;
  }
  const auto runtime = cuda::system_driver()->open(0);
  const auto gemm = runtime->make_gemm();
  if (gemm == nullptr) {
    WARN("skipped: cuBLASLt is not on the loader's path");
    return;
  }
  constexpr std::size_t kRows = 128, kOutputs = 40, kDepth = 72, kStride = 128;
  // Of small whole numbers sums are exact, in any order.
  const auto x = [](std::size_t row, std::size_t i) { return static_cast<float>((row + i) % 7); };
  const auto weight = [](std::size_t output, std::size_t i) {
    return static_cast<float>((output * 3 + i) % 5) - 2.0f;
  };
  constexpr std::size_t kX = kRows * kStride * 2, kWeight = kOutputs * kDepth * 2,
                        kOut = kRows * kOutputs * sizeof(float);
  const device::Buffer host = runtime->allocate_pinned(kX + kWeight + kOut),
                       memory = runtime->allocate(kX + kWeight + kOut),
                       own = runtime->allocate(gemm->workspace_bytes());
  auto* const halves = host.as<std::uint16_t>().data();
  for (std::size_t i = 0; i < kRows * kStride; ++i) {
    halves[i] = tensor::f32_to_f16(x(i / kStride, i % kStride));
  }
  for (std::size_t i = 0; i < kOutputs * kDepth; ++i) {
    halves[kRows * kStride + i] = tensor::f32_to_f16(weight(i / kDepth, i % kDepth));
  }
  const cuda::StreamRef stream = runtime->make_stream();
  runtime->upload(stream, host.data(), memory.data(), kX + kWeight);
  cuda::GemmParams params;
  params.x = memory.data();
  params.weight = memory.data() + kX;
  params.out = reinterpret_cast<float*>(memory.data() + kX + kWeight);
  params.x_stride = kStride;
  params.weight_stride = kDepth;
  params.out_stride = params.outputs = kOutputs;
  params.rows = kRows;
  params.depth = kDepth;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(gemm->multiply(stream, params, {own.data(), own.bytes()}));
  }
  runtime->download(stream, memory.data() + kX + kWeight, host.data() + kX + kWeight, kOut);
  runtime->synchronize(stream);
  const auto* const out = reinterpret_cast<const float*>(host.data() + kX + kWeight);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kRows * kOutputs; ++i) {
    float sum = 0.0f;
    for (std::size_t j = 0; j < kDepth; ++j) sum += x(i / kOutputs, j) * weight(i % kOutputs, j);
    wrong += out[i] == sum ? 0 : 1;
  }
  CHECK(wrong == 0);
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
