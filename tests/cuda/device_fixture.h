// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CUDA_DEVICE_FIXTURE_H_
#define INCIPIT_TESTS_CUDA_DEVICE_FIXTURE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "cpu/cpu_device.h"
#include "cuda/cuda_device.h"
#include "cuda/runtime_test.h"
#include "support/catch.h"
#include "support/random_matrix.h"

// What tests of the CUDA device over the emulated runtime share.

namespace incipit::testing {

/// A matrix in memory of a device.
class OnDevice {
 public:
  OnDevice(device::Device& device, const std::vector<float>& values, std::size_t columns)
      : device_(device),
        memory_(device.allocate(values.size() * sizeof(float))),
        view({memory_.as<float>().data(), values.size() / columns, columns, columns}) {
    device.upload(std::as_bytes(std::span(values)), memory_.data());
  }

  std::span<const float> values() const { return memory_.as<float>(); }
  std::vector<float> read() const {
    std::vector<float> out(memory_.as<float>().size());
    device_.download(memory_.data(), std::as_writable_bytes(std::span(out)));
    return out;
  }

 private:
  device::Device& device_;
  device::Buffer memory_;

 public:
  const device::Matrix view;
};

inline std::vector<float> random_matrix(std::size_t rows, std::size_t columns, std::uint32_t seed) {
  std::mt19937 random(seed);
  return random_floats(random, rows * columns);
}

/// The largest difference, relative where values are large.
inline double worst_difference(const std::vector<float>& got, const std::vector<float>& wanted) {
  REQUIRE(got.size() == wanted.size());
  double worst = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto a = static_cast<double>(got[i]), b = static_cast<double>(wanted[i]);
    const double error = std::abs(a - b) / (1.0 + std::abs(b));
    worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
  }
  return worst;
}

/// Calls body(device) with the CPU's scalar device, then with the GPU's in several orders of
/// streams, and compares what comes back.
template <class Body>
void check_like_cpu(double tolerance, const Body& body,
                    Activations activations = Activations::kMixed) {
  const auto cpu = cpu::make_cpu_device({CpuPath::kScalar, Activations::kFloat, 1});
  const std::vector<float> wanted = body(*cpu);
  std::vector<float> first;
  for (const auto& options : stream_orders(2)) {
    const auto gpu =
        cuda::make_cuda_device(std::make_shared<simt::EmulatedRuntime>(options), activations, 1);
    const std::vector<float> got = body(*gpu);
    CAPTURE(static_cast<int>(options.order), options.seed);
    CHECK(worst_difference(got, wanted) <= tolerance);
    if (first.empty()) first = got;
    CHECK(same_bits(got, first));
  }
}

}  // namespace incipit::testing

#endif  // INCIPIT_TESTS_CUDA_DEVICE_FIXTURE_H_
