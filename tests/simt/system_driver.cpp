// SPDX-License-Identifier: Apache-2.0
// Programs that link the twin have two emulated GPUs, with little memory.
#include "simt/runtime.h"

namespace incipit::cuda {

std::unique_ptr<Driver> system_driver() {
  simt::RuntimeOptions options;
  options.order = simt::StreamOrder::kRandom;
  options.memory_bytes = std::size_t{64} << 20;
  return std::make_unique<simt::EmulatedDriver>(
      std::vector<DeviceProperties>(2, simt::EmulatedRuntime::emulated_device()),
      simt::DriverState::kFine, options);
}

}  // namespace incipit::cuda
