// SPDX-License-Identifier: Apache-2.0
#include "engine/make_device.h"

#include <string>

#include "base/check.h"
#include "base/log.h"
#include "cpu/cpu_device.h"
#include "cuda/cuda_device.h"

namespace incipit::engine {
namespace {

std::unique_ptr<device::Device> make_cpu(const EngineOptions& options) {
  return cpu::make_cpu_device({options.cpu_path, options.activations, options.threads});
}

std::unique_ptr<device::Device> make_gpu(const EngineOptions& options,
                                         const model::ModelConfig& config) {
  auto device =
      cuda::open_cuda_device({options.gpu, options.activations, options.gpu_math, options.threads});
  device->check_kv(kv_shape_of(options, config, device->info()));
  return device;
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

void say_why_not_gpu(const EngineOptions& options, const Error& error) {
  base::Log(options.log).info(std::string("computing on the CPU: ") + error.what());
}

/// What of the options a GPU cannot do; null: nothing.
const char* reason_against_gpu(const EngineOptions& options) {
  if (options.cpu_path != CpuPath::kAuto) return "EngineOptions::cpu_path names a path of the CPU";
  if (options.kv_type == KvType::kF32) return "a GPU keeps KV in 16 or 8 bits, not as KvType::kF32";
  return nullptr;
}

}  // namespace

std::unique_ptr<device::Device> make_device(const EngineOptions& options,
                                            const model::ModelConfig& config) {
  const char* const reason = reason_against_gpu(options);
  switch (options.device) {
    case DeviceKind::kCpu:
      return make_cpu(options);
    case DeviceKind::kCuda:
      if (reason == nullptr) return make_gpu(options, config);
      base::throw_error(ErrorCode::kInvalidArgument,
                        std::string(reason) + "; ask for DeviceKind::kCpu, or for another");
    case DeviceKind::kAuto:
      break;
  }
  if (reason == nullptr) {
    try {
      return make_gpu(options, config);
    } catch (const Error& error) {
      say_why_not_gpu(options, error);
    }
  }
  return make_cpu(options);
}

model::ModelWeights load_weights(const EngineOptions& options, const model::ModelFile& file,
                                 std::unique_ptr<device::Device>& device) {
  const auto load = [&] {
    return file.load_weights(*device, options.on_load, options.f16_as_bf16);
  };
  const bool may_change = options.device == DeviceKind::kAuto && !device->info().host_memory;
  try {
    return load();
  } catch (const Error& error) {
    if (!may_change || error.code() != ErrorCode::kOutOfMemory) throw;
    say_why_not_gpu(options, error);
  }
  device = make_cpu(options);
  return load();
}

device::KvShape kv_shape_of(const EngineOptions& options, const model::ModelConfig& config,
                            const device::DeviceInfo& device) {
  return {config.layers, config.kv_heads, config.head_dim, kv_format_of(options.kv_type, device)};
}

}  // namespace incipit::engine
