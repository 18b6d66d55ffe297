// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_MAKE_DEVICE_H_
#define INCIPIT_ENGINE_MAKE_DEVICE_H_

#include <memory>

#include "device/device.h"
#include "incipit/engine.h"
#include "model/config.h"
#include "model/model_file.h"
#include "model/weights.h"

namespace incipit::engine {

/// The device that the options ask for, for a model; the only place that knows which devices there
/// are. Throws Error{kInvalidArgument} where this machine has none such.
std::unique_ptr<device::Device> make_device(const EngineOptions& options,
                                            const model::ModelConfig& config);

/// The weights of the file, in the memory of `device`, which make_device() has made.
/// DeviceKind::kAuto: where a GPU has no room for them, `device` becomes the CPU; on_load begins
/// again then. Throws what ModelFile::load_weights() throws, and Error{kOutOfMemory}.
model::ModelWeights load_weights(const EngineOptions& options, const model::ModelFile& file,
                                 std::unique_ptr<device::Device>& device);

/// What that device's pool keeps of a token; KvType::kAuto: as the device likes best.
device::KvShape kv_shape_of(const EngineOptions& options, const model::ModelConfig& config,
                            const device::DeviceInfo& device);

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_MAKE_DEVICE_H_
