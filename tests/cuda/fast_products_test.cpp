// SPDX-License-Identifier: Apache-2.0
// Products of the CUDA device in fast mode, where a library does those of many rows; here its
// emulated twin.
#include <memory>
#include <vector>

#include "cuda/device_fixture.h"
#include "cuda/products.h"
#include "support/catch.h"
#include "support/weight_types.h"

using namespace incipit;
using namespace incipit::testing;
using cuda::Products;
using device::Device;
using simt::EmulatedRuntime;
using simt::GemmState;
using tensor::DType;

namespace {

constexpr std::size_t kOutputs = 12, kColumns = 64;  // each output row begins on 16 bytes

/// x w^T + b, then x w^T, for a w of this type.
std::vector<float> multiply(Device& device, DType type, std::size_t rows) {
  std::mt19937 random(static_cast<std::uint32_t>(type));
  const auto bytes = random_weight(random, type, kOutputs, kColumns);
  const auto weight = device.make_weight(type, kOutputs, kColumns, bytes);
  const OnDevice x(device, random_matrix(rows, kColumns, 1), kColumns),
      bias(device, random_matrix(1, kOutputs, 2), kOutputs),
      out(device, std::vector<float>(2 * rows * kOutputs), kOutputs);
  const device::Matrix second = {out.view.row(rows), rows, kOutputs, kOutputs};
  const device::Product products[] = {{weight.get(), bias.values(), out.view.first_rows(rows)},
                                      {weight.get(), {}, second}};
  device.matmul(x.view, products);
  return out.read();
}

struct Run {
  std::vector<float> values;
  std::uint64_t gemms = 0;
};

Run multiply_on_gpu(GpuMath math, DType type, std::size_t rows, simt::RuntimeOptions options = {}) {
  const auto runtime = std::make_shared<EmulatedRuntime>(options);
  const auto device = cuda::make_cuda_device(runtime, Activations::kMixed, 1, math);
  Run run;
  run.values = multiply(*device, type, rows);
  run.gemms = runtime->counters().gemms;
  return run;
}

}  // namespace

TEST_CASE("in fast mode a library does products of many rows, and they are the CPU's") {
  const auto cpu = cpu::make_cpu_device({CpuPath::kScalar, Activations::kFloat, 1});
  constexpr std::size_t kMany = Products::kGemmRows;
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const double tolerance = type == DType::kBF16 ? 0.1 : 0.01;  // activations are rounded
    const std::vector<float> wanted = multiply(*cpu, type, kMany);
    for (const auto& options : stream_orders(2)) {
      const Run got = multiply_on_gpu(GpuMath::kFast, type, kMany, options);
      CAPTURE(tensor::name(type), static_cast<int>(options.order));
      CHECK(worst_difference(got.values, wanted) <= tolerance);
      CHECK(got.gemms == 2);
    }
    // It agrees with our kernels but for the order of its sums.
    const Run exact = multiply_on_gpu(GpuMath::kExact, type, kMany);
    CHECK(exact.gemms == 0);
    const Run fast = multiply_on_gpu(GpuMath::kFast, type, kMany);
    CHECK(worst_difference(fast.values, exact.values) <= 1e-5);
    CHECK_FALSE(same_bits(fast.values, exact.values));
  }
}

TEST_CASE("our kernels do what the library does not") {
  constexpr std::size_t kMany = Products::kGemmRows;
  const auto as_exact = [](DType type, std::size_t rows, simt::RuntimeOptions options = {}) {
    const Run fast = multiply_on_gpu(GpuMath::kFast, type, rows, options);
    CHECK(fast.gemms == 0);
    return same_bits(fast.values, multiply_on_gpu(GpuMath::kExact, type, rows).values);
  };
  CHECK(as_exact(DType::kF16, kMany - 1));
  CHECK(as_exact(DType::kF32, kMany));
  CHECK(as_exact(DType::kQ8_0, kMany));
  simt::RuntimeOptions missing, refusing;
  missing.gemm = GemmState::kMissing;
  refusing.gemm = GemmState::kRefusing;
  CHECK(as_exact(DType::kF16, kMany, missing));
  CHECK(as_exact(DType::kBF16, kMany, refusing));
}

TEST_CASE("products by the library take no memory once some of their size have run") {
  const auto runtime = std::make_shared<EmulatedRuntime>();
  const auto device = cuda::make_cuda_device(runtime, Activations::kMixed, 1, GpuMath::kFast);
  constexpr std::size_t kMany = Products::kGemmRows;
  std::mt19937 random(1);
  const auto weight = device->make_weight(DType::kF16, kOutputs, kColumns,
                                          random_weight(random, DType::kF16, kOutputs, kColumns));
  const OnDevice x(*device, random_matrix(kMany, kColumns, 1), kColumns),
      out(*device, std::vector<float>(kMany * kOutputs), kOutputs);
  const device::Product product = {weight.get(), {}, out.view};
  device->matmul(x.view, std::span(&product, 1));
  const auto warm = runtime->counters();
  device->matmul(x.view, std::span(&product, 1));
  device->finish();
  CHECK(runtime->counters().allocations == warm.allocations);
  CHECK(runtime->counters().gemms == warm.gemms + 1);
}
