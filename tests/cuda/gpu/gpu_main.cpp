// SPDX-License-Identifier: Apache-2.0
#define CATCH_CONFIG_RUNNER
#include <cuda_runtime_api.h>

#include <cstdio>

#include "support/catch.h"

int main(int count, char** arguments) {
  int devices = 0;
  const cudaError_t result = cudaGetDeviceCount(&devices);
  if (result != cudaSuccess || devices == 0) {
    std::printf("skipped: there is no GPU that CUDA can use (%s)\n", cudaGetErrorString(result));
    return 0;
  }
  return Catch::Session().run(count, arguments);
}
