// SPDX-License-Identifier: Apache-2.0
#include "cuda/runtime/error.h"

#include <string>

#include "base/check.h"

namespace incipit::cuda {
namespace {

constexpr const char* kOrTheCpu = "; or ask for DeviceKind::kAuto or kCpu";

std::string version_name(int version) {  // 13020: CUDA 13.2
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string driver_problem() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return "there is no NVIDIA driver, or it is hidden from this process; install one, or give the "
           "container access to the GPU";
  }
  return "the NVIDIA driver is for " + version_name(driver) + ", but this build needs " +
         version_name(CUDART_VERSION) + "; update the driver";
}

}  // namespace

void throw_cuda_error(cudaError_t error, const char* doing) {
  static_cast<void>(cudaGetLastError());  // or a later call would report it once more
  const std::string what = std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
  switch (error) {
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorInitializationError:
      base::throw_error(ErrorCode::kInvalidArgument, driver_problem() + kOrTheCpu);
    case cudaErrorNoDevice:
      base::throw_error(
          ErrorCode::kInvalidArgument,
          std::string("the NVIDIA driver shows no GPU; check CUDA_VISIBLE_DEVICES") + kOrTheCpu);
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorSystemNotReady:
      base::throw_error(ErrorCode::kInvalidArgument,
                        "the NVIDIA driver is not set up as it should "
                        "be (" +
                            what + "); reinstall it" + kOrTheCpu);
    case cudaErrorDevicesUnavailable:
      base::throw_error(ErrorCode::kInvalidArgument, "another process has the GPU for itself (" +
                                                         what + "); end it, or choose another GPU" +
                                                         kOrTheCpu);
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidKernelImage:
    case cudaErrorJitCompilerNotFound:
      base::throw_error(ErrorCode::kInvalidArgument,
                        "this build has no kernels for the GPU's architecture (" + what +
                            "); configure with CMAKE_CUDA_ARCHITECTURES=native" + kOrTheCpu);
    case cudaErrorMemoryAllocation:
      base::throw_error(ErrorCode::kOutOfMemory, std::string("the GPU could not ") + doing +
                                                     "; use a smaller EngineOptions::kv_pool_bytes "
                                                     "or a smaller model");
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorInvalidDevice:
      base::throw_error(ErrorCode::kInternal,
                        std::string("the GPU could not ") + doing + " (" + what + ")");
    default:  // an illegal access, a failed launch, ECC, a device that fell off the bus
      base::throw_error(ErrorCode::kDeviceLost,
                        std::string("the GPU failed and could not ") + doing + " (" + what +
                            "); make a new Engine, in a new process if that fails as well");
  }
}

}  // namespace incipit::cuda
