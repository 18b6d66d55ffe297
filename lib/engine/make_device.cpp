// SPDX-License-Identifier: Apache-2.0
#include "engine/make_device.h"

#include "cpu/cpu_device.h"

namespace incipit::engine {

std::unique_ptr<device::Device> make_device(const EngineOptions& options) {
  return cpu::make_cpu_device({options.cpu_path, options.activations, options.threads});
}

}  // namespace incipit::engine
