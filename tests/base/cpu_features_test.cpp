// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "support/catch.h"

namespace incipit::base {
namespace {

TEST_CASE("cpu features are those that the compiler's runtime finds") {
  const CpuFeatures features = cpu_features();
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512vnni");
  CHECK(features.avx2 == avx2);
  CHECK(features.avx512 == avx512);
#if !defined(__clang__)  // clang 14's runtime does not know it
  CHECK(features.avx512_bf16 == (avx512 && __builtin_cpu_supports("avx512bf16")));
#endif
#else
  CHECK(!features.avx2);
#endif
  CHECK((!features.avx512 || features.avx2));
  CHECK((!features.avx512_bf16 || features.avx512));
  CHECK((!features.slow_bf16 || features.avx512_bf16));
#if defined(__x86_64__)
  CHECK(features.slow_bf16 == (features.avx512_bf16 && __builtin_cpu_is("intel")));
#endif
}

}  // namespace
}  // namespace incipit::base
