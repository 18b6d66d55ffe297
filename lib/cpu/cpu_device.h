// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_CPU_DEVICE_H_
#define INCIPIT_CPU_CPU_DEVICE_H_

#include <memory>

#include "device/device.h"
#include "incipit/engine.h"

namespace incipit::cpu {

struct CpuDeviceOptions {
  CpuPath path = CpuPath::kAuto;
  Activations activations = Activations::kMixed;
  unsigned threads = 0;  // 0: the CPUs that this process may use
};

/// A device that computes on this machine's CPUs. Memory of the device is host memory. One thread
/// may call it at a time.
/// Throws Error{kInvalidArgument} where the machine lacks the asked path.
std::unique_ptr<device::Device> make_cpu_device(const CpuDeviceOptions& options = {});

}  // namespace incipit::cpu

#endif  // INCIPIT_CPU_CPU_DEVICE_H_
