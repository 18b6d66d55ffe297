// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_MAKE_DEVICE_H_
#define INCIPIT_ENGINE_MAKE_DEVICE_H_

#include <memory>

#include "device/device.h"
#include "incipit/engine.h"

namespace incipit::engine {

/// The device that the options ask for; the only place that knows which devices there are.
/// Throws Error{kInvalidArgument} where this machine has none such.
std::unique_ptr<device::Device> make_device(const EngineOptions& options);

/// How that device's pool stores KV for the option; kAuto: as the device likes best.
device::KvFormat kv_format_of(KvType type, const device::DeviceInfo& device);

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_MAKE_DEVICE_H_
