// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_SANITIZERS_H_
#define INCIPIT_TESTS_SIMT_SANITIZERS_H_

// What the emulator tells the sanitizers. INCIPIT_SIMT_TSAN comes from the build: the emulator
// itself is compiled without ThreadSanitizer, as its own state is no state of the kernels.

#if defined(__SANITIZE_ADDRESS__)
#define INCIPIT_SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define INCIPIT_SIMT_ASAN 1
#endif
#endif

#if defined(INCIPIT_SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(INCIPIT_SIMT_TSAN)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* key);
void __tsan_release(void* key);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace incipit::simt {

/// What a thread did before release(key) is ordered before what follows acquire(key).
inline void release([[maybe_unused]] void* key) {
#if defined(INCIPIT_SIMT_TSAN)
  __tsan_release(key);
#endif
}
inline void acquire([[maybe_unused]] void* key) {
#if defined(INCIPIT_SIMT_TSAN)
  __tsan_acquire(key);
#endif
}

/// While it lives, ThreadSanitizer overlooks what allocation and the C library do for the emulator.
/// Must not live across a switch of fibers.
class OverlookRaces {
 public:
  OverlookRaces() {
#if defined(INCIPIT_SIMT_TSAN)
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
  }
  ~OverlookRaces() {
#if defined(INCIPIT_SIMT_TSAN)
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
  }
  OverlookRaces(const OverlookRaces&) = delete;
  OverlookRaces& operator=(const OverlookRaces&) = delete;
};

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_SANITIZERS_H_
