// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_MAKE_DEVICE_H_
#define INCIPIT_ENGINE_MAKE_DEVICE_H_

#include <memory>

#include "device/device.h"
#include "incipit/engine.h"
#include "model/config.h"

namespace incipit::engine {

/// The device that the options ask for, for a model; the only place that knows which devices there
/// are. Throws Error{kInvalidArgument} where this machine has none such.
std::unique_ptr<device::Device> make_device(const EngineOptions& options,
                                            const model::ModelConfig& config);

/// What that device's pool keeps of a token; KvType::kAuto: as the device likes best.
device::KvShape kv_shape_of(const EngineOptions& options, const model::ModelConfig& config,
                            const device::DeviceInfo& device);

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_MAKE_DEVICE_H_
