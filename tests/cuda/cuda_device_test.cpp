// SPDX-License-Identifier: Apache-2.0
// The CUDA device over the emulated runtime: each operation of the seam against the CPU's scalar
// device, in orders of streams that find a missing wait; and what it takes of memory.
#include "cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "cuda/device_fixture.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::testing;
using device::Device;
using simt::EmulatedRuntime;

TEST_CASE("norms, sums, activations, caps and turns are the CPU's") {
  const auto a = random_matrix(5, 96, 1), b = random_matrix(5, 96, 2), w = random_matrix(1, 96, 3),
             v = random_matrix(1, 96, 5);
  check_like_cpu(2e-6, [&](Device& device) {
    OnDevice x(device, a, 96), y(device, b, 96), weight(device, w, 96);
    device.rms_norm(x.view, weight.values(), 1e-5f, x.view);
    device.add(x.view, y.view);
    device.activate(device::Activation::kSilu, x.view, y.view, y.view);
    return y.read();
  });
  for (const auto activation :
       {device::Activation::kSilu, device::Activation::kGeluTanh, device::Activation::kRelu}) {
    check_like_cpu(2e-6, [&](Device& device) {
      OnDevice x(device, a, 96), y(device, b, 96), weight(device, w, 96), bias(device, v, 96);
      device.layer_norm(x.view, weight.values(), bias.values(), 1e-5f, x.view);
      device.activate(activation, x.view, {}, y.view);
      device.soft_cap(y.view, 1.5f);
      return y.read();
    });
  }
  for (const auto pairs : {device::RopePairs::kHalves, device::RopePairs::kAdjacent}) {
    check_like_cpu(2e-6, [&](Device& device) {
      OnDevice x(device, a, 96), angles(device, random_matrix(5, 24, 4), 24);
      device.rope(x.view, 32, angles.view, pairs);
      return x.read();
    });
  }
}

TEST_CASE("operations on no rows do nothing") {
  check_like_cpu(0.0, [&](Device& device) {
    OnDevice kept(device, random_matrix(2, 64, 1), 64);
    const OnDevice weight(device, random_matrix(1, 64, 2), 64);
    const device::Matrix none = {kept.view.row(0), 0, 64, 64};
    const auto square = random_matrix(64, 64, 3);
    const auto matrix =
        device.make_weight(tensor::DType::kF32, 64, 64, std::as_bytes(std::span(square)));
    const std::array products = {device::Product{matrix.get(), {}, none}};
    device.embed(*matrix, {}, 1.0f, none);
    device.matmul(none, products);
    device.rms_norm(none, weight.values(), 1e-5f, none);
    device.layer_norm(none, weight.values(), weight.values(), 1e-5f, none);
    device.add(none, none);
    device.activate(device::Activation::kSilu, none, none, none);
    device.gather_rows(kept.view, {}, none);
    return kept.read();
  });
}

TEST_CASE("rows are gathered, again and again") {
  const auto values = random_matrix(9, 40, 1);
  check_like_cpu(0.0, [&](Device& device) {
    OnDevice x(device, values, 40), out(device, std::vector<float>(8 * 3 * 40), 40);
    for (std::uint32_t i = 0; i < 8; ++i) {
      std::vector<std::uint32_t> rows = {i, 8 - i, i / 2};
      const device::Matrix part = {out.view.row(3 * i), 3, 40, 40};
      device.gather_rows(x.view, rows, part);
      std::fill(rows.begin(), rows.end(), 0u);  // were only lent
    }
    return out.read();
  });
}

TEST_CASE("memory comes zeroed, is aligned, and ends") {
  EmulatedRuntime* raw = nullptr;
  auto runtime = std::make_shared<EmulatedRuntime>();
  raw = runtime.get();
  const auto device = cuda::make_cuda_device(runtime, Activations::kMixed, 1);
  const device::Buffer memory = device->allocate(1000);
  CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % 64 == 0);
  std::vector<std::byte> bytes(1000, std::byte{1});
  device->download(memory.data(), bytes);
  CHECK(std::ranges::count(bytes, std::byte{0}) == 1000);
  CHECK(device->allocate(0).data() == nullptr);
  CHECK(device->spare_bytes() <= raw->free_memory());
  CHECK(device->spare_bytes() > raw->free_memory() / 2);
  try {
    device->allocate(std::size_t{1} << 40);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kOutOfMemory);
  }
}

TEST_CASE("a device says what it computes like") {
  auto properties = EmulatedRuntime::emulated_device();
  const auto info = [&](GpuMath math = GpuMath::kExact) {
    const auto runtime = std::make_shared<EmulatedRuntime>(simt::RuntimeOptions{}, properties);
    return cuda::make_cuda_device(runtime, Activations::kMixed, 3, math)->info();
  };
  CHECK(info().numerics == "cuda/emulated/16-bit/exact/1");
  CHECK(info().exact);
  CHECK(info(GpuMath::kFast).numerics == "cuda/emulated/16-bit/fast/1");
  CHECK_FALSE(info(GpuMath::kFast).exact);
  CHECK(info().threads == 3);
  CHECK_FALSE(info().host_memory);
  CHECK(info().default_kv_type == device::KvFormat::kBF16);
  properties.architecture = 75;
  CHECK(info().default_kv_type == device::KvFormat::kF16);
}

TEST_CASE("what has no kernels is refused before it is needed") {
  auto properties = EmulatedRuntime::emulated_device();
  const auto refuses = [&](device::KvFormat type, std::size_t head_dim) {
    const auto runtime = std::make_shared<EmulatedRuntime>(simt::RuntimeOptions{}, properties);
    try {
      cuda::make_cuda_device(runtime, Activations::kMixed, 1)->check_kv({1, 1, head_dim, type});
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      return true;
    }
    return false;
  };
  for (const std::size_t dim : {64u, 80u, 96u, 112u, 128u, 256u}) {
    CHECK_FALSE(refuses(device::KvFormat::kF16, dim));
    CHECK_FALSE(refuses(device::KvFormat::kBF16, dim));
    CHECK_FALSE(refuses(device::KvFormat::kInt8, dim));
    CHECK(refuses(device::KvFormat::kF32, dim));
  }
  CHECK(refuses(device::KvFormat::kF16, 16));
  CHECK(refuses(device::KvFormat::kF16, 72));
  properties.architecture = 75;
  CHECK_FALSE(refuses(device::KvFormat::kF16, 64));
  CHECK(refuses(device::KvFormat::kBF16, 64));
  CHECK(refuses(device::KvFormat::kInt8, 64));
}

TEST_CASE("what is queued is done when the device has finished") {
  const auto runtime = std::make_shared<EmulatedRuntime>();  // runs nothing before it must
  const auto device = cuda::make_cuda_device(runtime, Activations::kMixed, 1);
  const OnDevice x(*device, random_matrix(2, 32, 1), 32);
  device->add(x.view, x.view);
  const auto blocks = runtime->counters().kernels.blocks;
  device->finish();
  CHECK(runtime->counters().kernels.blocks > blocks);
}

TEST_CASE("a lost device is an error of the next call that needs it") {
  auto runtime = std::make_shared<EmulatedRuntime>();
  const auto device = cuda::make_cuda_device(runtime, Activations::kMixed, 1);
  OnDevice x(*device, random_matrix(2, 32, 1), 32);
  runtime->lose_device(1);
  try {
    device->add(x.view, x.view);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kDeviceLost);
  }
}
