// SPDX-License-Identifier: Apache-2.0
// Programs that link the twin have two emulated GPUs with little memory, and one with hardly any.
#include "simt/runtime.h"

namespace incipit::cuda {

std::unique_ptr<Driver> system_driver() {
  simt::RuntimeOptions options;
  options.order = simt::StreamOrder::kRandom;
  options.memory_bytes = std::size_t{64} << 20;
  std::vector<DeviceProperties> devices(3, simt::EmulatedRuntime::emulated_device());
  devices[2].memory_bytes = std::size_t{96} << 10;
  return std::make_unique<simt::EmulatedDriver>(devices, simt::DriverState::kFine, options);
}

}  // namespace incipit::cuda
