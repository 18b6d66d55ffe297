// SPDX-License-Identifier: Apache-2.0
#include "engine/make_device.h"

#include "cpu/cpu_device.h"

namespace incipit::engine {

std::unique_ptr<device::Device> make_device(const EngineOptions& options) {
  return cpu::make_cpu_device({options.cpu_path, options.activations, options.threads});
}

device::KvFormat kv_format_of(KvType type, const device::DeviceInfo& device) {
  switch (type) {
    case KvType::kF32:
      return device::KvFormat::kF32;
    case KvType::kF16:
      return device::KvFormat::kF16;
    case KvType::kBF16:
      return device::KvFormat::kBF16;
    case KvType::kInt8:
      return device::KvFormat::kInt8;
    case KvType::kAuto:
      break;
  }
  return device.default_kv_type;
}

}  // namespace incipit::engine
