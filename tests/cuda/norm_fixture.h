// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CUDA_NORM_FIXTURE_H_
#define INCIPIT_TESTS_CUDA_NORM_FIXTURE_H_

#include "cuda/gapped.h"
#include "cuda/kernels/row_norm.cuh"

namespace incipit::testing {

template <class T>
using Norm = void (*)(cuda::Stream, const cuda::NormParams<T>&);

struct NormRun {
  bool residual = false;
  bool in_place = false;
  bool bias = false;
};

/// Rows to normalise.
template <class T>
struct NormProblem {
  NormProblem(unsigned rows, unsigned columns, unsigned gap)
      : x(rows, columns, gap, 31 * columns + gap, 3.0f),
        residual(rows, columns, gap, 37 * columns + gap, 2.0f) {
    std::mt19937 random(columns);
    weight = random_values<float>(random, columns);
    bias = random_values<float>(random, columns);
  }

  /// The norm, and behind it the residual as it is left.
  std::vector<T> run_on(cuda::Stream stream, Norm<T> norm, const NormRun& how) const {
    DeviceArray<T> device_x(x.values), device_residual(residual.values);
    DeviceArray<T> out(x.values.size(), rounded<T>(Gapped<T>::kGarbage));
    DeviceArray<float> device_weight(weight), device_bias(bias);
    cuda::NormParams<T> params;
    params.x = device_x.data();
    params.x_stride = params.residual_stride = params.out_stride = x.stride;
    if (how.residual) params.residual = device_residual.data();
    params.weight = device_weight.data();
    if (how.bias) params.bias = device_bias.data();
    params.out = how.in_place ? device_x.data() : out.data();
    params.rows = x.rows;
    params.columns = x.columns;
    params.epsilon = 1e-5f;
    norm(stream, params);
    return joined(how.in_place ? device_x.read() : out.read(), device_residual.read());
  }
  std::vector<T> run_with(Norm<T> norm, const NormRun& how) const {
    return run([&](cuda::Stream stream) { return run_on(stream, norm, how); });
  }

  /// What run_on must give, where normalise(h) is the norm of a row.
  template <class Normalise>
  std::vector<double> wanted(bool with_residual, const Normalise& normalise) const {
    std::vector<std::vector<double>> rows, sums;
    for (std::size_t r = 0; r < x.rows; ++r) {
      std::vector<double> h(x.columns);
      for (std::size_t i = 0; i < h.size(); ++i) {
        const auto sum = static_cast<float>(x.at(r, i) + residual.at(r, i));
        h[i] = with_residual ? value_of(rounded<T>(sum)) : x.at(r, i);
      }
      rows.push_back(normalise(h));
      sums.push_back(h);
    }
    return joined(x.with([&](std::size_t r, std::size_t i) { return rows[r][i]; }),
                  residual.with([&](std::size_t r, std::size_t i) {
                    return with_residual ? sums[r][i] : residual.at(r, i);
                  }));
  }

  Gapped<T> x, residual;
  std::vector<float> weight, bias;
};

/// Rows alone and elsewhere have the bits that they have together.
inline void check_rows_alone(Norm<cuda::BF16> norm) {
  constexpr unsigned kRows = 4, kColumns = 520, kGap = 3;
  const NormProblem<cuda::BF16> together(kRows, kColumns, 0);
  NormProblem<cuda::BF16> apart(kRows, kColumns, kGap);
  apart.weight = together.weight;
  apart.bias = together.bias;
  const NormRun how = {.residual = true};
  const auto all = together.run_with(norm, how);
  for (unsigned r = 0; r < kRows; ++r) {
    NormProblem<cuda::BF16> one(1, kColumns, 0);
    one.weight = together.weight;
    one.bias = together.bias;
    for (unsigned i = 0; i < kColumns; ++i) {
      one.x.values[i] = together.x.values[r * kColumns + i];
      one.residual.values[i] = together.residual.values[r * kColumns + i];
      apart.x.values[r * apart.x.stride + i] = one.x.values[i];
      apart.residual.values[r * apart.x.stride + i] = one.residual.values[i];
    }
    const auto alone = one.run_with(norm, how);
    CHECK(std::memcmp(alone.data(), all.data() + r * kColumns, kColumns * 2) == 0);
  }
  const auto elsewhere = apart.run_with(norm, how);
  for (unsigned r = 0; r < kRows; ++r) {
    CHECK(std::memcmp(elsewhere.data() + r * apart.x.stride, all.data() + r * kColumns,
                      kColumns * 2) == 0);
  }
}

}  // namespace incipit::testing

#endif  // INCIPIT_TESTS_CUDA_NORM_FIXTURE_H_
