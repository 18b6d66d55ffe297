// SPDX-License-Identifier: Apache-2.0
#include "engine/vocabulary_passes.h"

#include <bit>
#include <limits>

#include "base/machine.h"
#include "base/target.h"
#include "engine/exact_math.h"

namespace incipit::engine {
namespace plain {
namespace {
#include "engine/vocabulary_passes.inl.h"
}  // namespace
}  // namespace plain

#if INCIPIT_CPU_X86
namespace avx2 {
INCIPIT_TARGET_BEGIN(INCIPIT_ISA_AVX2)
namespace {
#include "engine/vocabulary_passes.inl.h"
}  // namespace
INCIPIT_TARGET_END
}  // namespace avx2
#endif

const VocabularyPasses& plain_vocabulary_passes() noexcept { return plain::kPasses; }

const VocabularyPasses& vocabulary_passes() noexcept {
#if INCIPIT_CPU_X86
  if (base::cpu_features().avx2) return avx2::kPasses;
#endif
  return plain::kPasses;
}

}  // namespace incipit::engine
