// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_CONTEXT_H_
#define INCIPIT_TESTS_SIMT_CONTEXT_H_

#include <cstddef>

#if !defined(INCIPIT_SIMT_BOOST)
#include <ucontext.h>
#endif

namespace incipit::simt {

/// A flow of control with a stack of its own (Boost.Context where it is there, else ucontext),
/// known to AddressSanitizer and ThreadSanitizer (as a thread). Belongs to the host thread that
/// made it.
class Context {
 public:
  /// The flow of control that is running.
  Context() = default;
  /// One that will run `entry(argument)` when it is first switched to; entry must not return.
  /// `number` staggers the stacks, which would else meet in the same lines of the cache.
  Context(void (*entry)(void*), void* argument, std::size_t number);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Starts over; what was on the stack is forgotten without destructors.
  void restart();
  /// Goes on there; returns when somebody switches back.
  static void switch_to(Context& from, Context& to);

 private:
  static void leave(Context& from, Context& to);
  static void arrive(Context& from, Context& me);
  void end_race_identity();
  void forget_for_sanitizers();
#if defined(INCIPIT_SIMT_BOOST)
  static void enter(void* transfer);
#endif
  void run();

  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  std::size_t stagger_ = 0;
  char* stack_ = nullptr;  // lowest byte; behind a page that must not be touched
#if defined(INCIPIT_SIMT_BOOST)
  void* native_ = nullptr;
#else
  static void enter(unsigned high, unsigned low);
  ucontext_t native_ = {};
#endif
  // For the sanitizers.
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
  void* race_identity_ = nullptr;
  Context* came_from_ = nullptr;
};

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_CONTEXT_H_
