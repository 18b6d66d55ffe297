// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_KERNEL_H_
#define INCIPIT_TESTS_SIMT_KERNEL_H_

#include <functional>
#include <string>

#include "simt/device.h"
#include "support/catch.h"

namespace incipit::testing {

/// Runs `body` as a kernel; returns what it did.
inline simt::Counters run_kernel(unsigned threads, const std::function<void()>& body,
                                 const simt::Options& options = {}, std::size_t shared_bytes = 0,
                                 simt::Dim3 grid = {}) {
  simt::Machine machine{options, {}};
  simt::launch(machine, grid, {threads, 1, 1}, shared_bytes, body);
  return machine.counters;
}

/// What the emulator says against it; "" where nothing.
inline std::string failure_of(unsigned threads, const std::function<void()>& body,
                              const simt::Options& options = {}, std::size_t shared_bytes = 0) {
  try {
    run_kernel(threads, body, options, shared_bytes);
  } catch (const simt::Failure& failure) {
    return failure.what();
  }
  return "";
}

inline auto says(const std::string& text) { return Catch::Matchers::Contains(text); }

}  // namespace incipit::testing

#endif  // INCIPIT_TESTS_SIMT_KERNEL_H_
