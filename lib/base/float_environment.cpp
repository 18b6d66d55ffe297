// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

#include <new>

namespace incipit::base {

#if defined(__x86_64__)
namespace {

// By hand, for fesetenv() costs more than many a parallel region: it reloads the whole x87 state.
struct Saved {
  unsigned mxcsr;
  unsigned short x87_control;
};

constexpr unsigned kDefaultMxcsr = 0x1F80;  // all exceptions masked, nearest, no FTZ, DAZ
constexpr unsigned short kDefaultX87Control = 0x037F;  // all exceptions masked, nearest, 64 bits

unsigned short x87_control() noexcept {
  unsigned short control;
  asm volatile("fnstcw %0" : "=m"(control));
  return control;
}

void set_x87_control(unsigned short control) noexcept { asm volatile("fldcw %0" : : "m"(control)); }

}  // namespace

ScopedFloatEnvironment::ScopedFloatEnvironment() noexcept {
  const Saved saved = {_mm_getcsr(), x87_control()};
  static_assert(sizeof(Saved) <= sizeof saved_ && alignof(Saved) <= 16);
  ::new (static_cast<void*>(saved_)) Saved(saved);
  _mm_setcsr(kDefaultMxcsr);
  if (saved.x87_control != kDefaultX87Control) set_x87_control(kDefaultX87Control);
}

ScopedFloatEnvironment::~ScopedFloatEnvironment() {
  const Saved& saved = *std::launder(reinterpret_cast<const Saved*>(saved_));
  _mm_setcsr(saved.mxcsr);
  if (saved.x87_control != kDefaultX87Control) set_x87_control(saved.x87_control);
}

#else

ScopedFloatEnvironment::ScopedFloatEnvironment() noexcept {
  static_assert(sizeof(std::fenv_t) <= sizeof saved_ && alignof(std::fenv_t) <= 16);
  auto* saved = ::new (static_cast<void*>(saved_)) std::fenv_t;
  std::fegetenv(saved);
  std::fesetenv(FE_DFL_ENV);
}

ScopedFloatEnvironment::~ScopedFloatEnvironment() {
  std::fesetenv(std::launder(reinterpret_cast<const std::fenv_t*>(saved_)));
}

#endif

}  // namespace incipit::base
