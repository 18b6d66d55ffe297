// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CUDA_KERNEL_TEST_H_
#define INCIPIT_TESTS_CUDA_KERNEL_TEST_H_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "cuda/prim/launch.cuh"
#include "cuda/prim/types.cuh"
#include "support/catch.h"
#include "tensor/dtype.h"

// What the tests of the kernels share. A test is written once: compiled by g++ it runs in the
// emulator in several schedules, compiled by nvcc on a GPU.

namespace incipit::testing {

/// Memory of the device, of exactly so many elements.
template <class T>
class DeviceArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  DeviceArray(std::size_t count, const T& value) : DeviceArray(std::vector<T>(count, value)) {}
#if INCIPIT_CUDA_EMULATED
  explicit DeviceArray(const std::vector<T>& values)
      : count_(values.size()),
        data_(static_cast<T*>(::operator new(count_ * sizeof(T), kAlignment))) {
    std::copy(values.begin(), values.end(), data_);
  }
  ~DeviceArray() { ::operator delete(data_, kAlignment); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* data() { return data_; }
  std::vector<T> read() const { return std::vector<T>(data_, data_ + count_); }

 private:
  static constexpr std::align_val_t kAlignment{256};  // as cudaMalloc
  std::size_t count_;
  T* data_;
#else
  explicit DeviceArray(const std::vector<T>& values) : count_(values.size()) {
    cuda::check_launch(cudaMalloc(&data_, count_ * sizeof(T)));
    cuda::check_launch(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyDefault));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  T* data() { return static_cast<T*>(data_); }
  /// Waits for the kernels before.
  std::vector<T> read() const {
    std::vector<T> values(count_);
    cuda::check_launch(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDefault));
    return values;
  }

 private:
  std::size_t count_;
  void* data_ = nullptr;
#endif
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Several results as one.
template <class T>
std::vector<T> joined(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> all(a.size() + b.size());
  std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), all.begin()));
  return all;
}

#if INCIPIT_CUDA_EMULATED

/// Ways to run a launch that must not matter.
inline std::vector<simt::Options> schedules() {
  std::vector<simt::Options> all(4);
  all[1].schedule = simt::Schedule::kReverse;
  for (std::size_t i = 2; i < all.size(); ++i) {
    all[i].schedule = simt::Schedule::kRandom;
    all[i].seed = i;
    all[i].permute_blocks = true;
  }
  return all;
}

/// The result of body(stream), a vector, which must be the same to the last bit in every schedule.
/// Bank conflicts are failures.
template <class Body>
auto run(const Body& body) {
  decltype(body(cuda::Stream())) first;
  bool is_first = true;
  for (const simt::Options& options : schedules()) {
    simt::Machine machine{options, {}};
    machine.options.conflicts_fail = true;
    machine.options.count_accesses = is_first;  // once is enough
    const auto result = body(&machine);
    if (is_first) first = result;
    is_first = false;
    CAPTURE(static_cast<int>(options.schedule), options.seed);
    CHECK(same_bits(result, first));
  }
  return first;
}

/// What the kernels of body(stream) did, in one schedule.
template <class Body>
simt::Counters count(const Body& body) {
  simt::Machine machine;
  body(&machine);
  return machine.counters;
}

#else

/// Twice, as the order in which blocks and warps run differs by itself.
template <class Body>
auto run(const Body& body) {
  const auto first = body(cuda::Stream());
  CHECK(same_bits(body(cuda::Stream()), first));
  return first;
}

#endif

/// Values of a type of device memory, and back, rounded to nearest even.
inline double value_of(float value) { return static_cast<double>(value); }
inline double value_of(cuda::F16 value) { return value_of(tensor::f16_to_f32(value.bits)); }
inline double value_of(cuda::BF16 value) { return value_of(tensor::bf16_to_f32(value.bits)); }

template <class T>
T rounded(float value) {
  if constexpr (std::is_same_v<T, cuda::F16>) {
    return {tensor::f32_to_f16(value)};
  } else if constexpr (std::is_same_v<T, cuda::BF16>) {
    return {tensor::f32_to_bf16(value)};
  } else {
    return value;
  }
}

/// Half a unit in the last place of 1: what rounding to T costs, relative.
template <class T>
constexpr double kRounding = std::is_same_v<T, cuda::F16>    ? 0x1p-11
                             : std::is_same_v<T, cuda::BF16> ? 0x1p-8
                                                             : 0x1p-24;

template <class T>
std::vector<T> random_values(std::mt19937& random, std::size_t count, float scale = 1.0f) {
  std::vector<T> values(count);
  for (T& value : values) {
    // Plain arithmetic: the distributions of the standard library differ from one to the next.
    const auto unit = static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f;
    value = rounded<T>(unit * scale);
  }
  return values;
}

/// True if `got` is within the bounds, relative and absolute; NaN never is.
inline bool is_near(double got, double wanted, double relative, double absolute) {
  return got == wanted || std::abs(got - wanted) <= relative * std::abs(wanted) + absolute;
}

/// The same for all elements; shows the first that is not.
template <class T>
void check_near(const std::vector<T>& got, const std::vector<double>& wanted, double relative,
                double absolute) {
  REQUIRE(got.size() == wanted.size());
  std::size_t i = 0;
  while (i < got.size() && is_near(value_of(got[i]), wanted[i], relative, absolute)) ++i;
  if (i == got.size()) return;
  CAPTURE(i, value_of(got[i]), wanted[i]);
  FAIL_CHECK("not near");
}

}  // namespace incipit::testing

#endif  // INCIPIT_TESTS_CUDA_KERNEL_TEST_H_
