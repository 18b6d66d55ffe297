// SPDX-License-Identifier: Apache-2.0
#include "simt/context.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#include "simt/sanitizers.h"

#if defined(INCIPIT_SIMT_BOOST)
#include <boost/context/detail/fcontext.hpp>
#endif

namespace incipit::simt {
namespace {

// The sanitizers' frames are several times larger.
#if defined(INCIPIT_SIMT_ASAN) || defined(INCIPIT_SIMT_TSAN)
constexpr std::size_t kStackBytes = 512 * 1024;
#else
constexpr std::size_t kStackBytes = 128 * 1024;
#endif

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Context::Context(void (*entry)(void*), void* argument, std::size_t number)
    : entry_(entry), argument_(argument), stagger_(number * 1344 % 32768 / 64 * 64) {
  const std::size_t page = page_bytes();
  void* const memory = mmap(nullptr, page + kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, page, PROT_NONE);  // a stack that overflows stops at once
  stack_ = static_cast<char*>(memory) + page;
  bottom_ = stack_;
  bytes_ = kStackBytes;
  restart();
}

Context::~Context() {
  if (stack_ == nullptr) return;
  end_race_identity();
  munmap(stack_ - page_bytes(), page_bytes() + kStackBytes);
}

void Context::end_race_identity() {
#if defined(INCIPIT_SIMT_TSAN)
  if (race_identity_ == nullptr) return;
  // What it did is over, wherever it stands.
  void* const me = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(race_identity_, 1);
  __tsan_release(this);
  __tsan_switch_to_fiber(me, 1);
  __tsan_acquire(this);
  __tsan_destroy_fiber(race_identity_);
  race_identity_ = nullptr;
#endif
}

void Context::forget_for_sanitizers() {
#if defined(INCIPIT_SIMT_ASAN)
  __asan_unpoison_memory_region(stack_, kStackBytes);
  fake_stack_ = nullptr;
#endif
#if defined(INCIPIT_SIMT_TSAN)
  end_race_identity();
  race_identity_ = __tsan_create_fiber(0);
#endif
}

void Context::run() {
  arrive(*came_from_, *this);
  entry_(argument_);
}

/// What each flow does last before it gives way.
void Context::leave(Context& from, Context& to) {
  to.came_from_ = &from;
#if defined(INCIPIT_SIMT_ASAN)
  __sanitizer_start_switch_fiber(&from.fake_stack_, to.bottom_, to.bytes_);
#endif
#if defined(INCIPIT_SIMT_TSAN)
  if (from.stack_ == nullptr) from.race_identity_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.race_identity_, 1);  // 1: that orders nothing
#endif
}

/// What each flow does first when it goes on.
void Context::arrive([[maybe_unused]] Context& from, [[maybe_unused]] Context& me) {
#if defined(INCIPIT_SIMT_ASAN)
  // Tells where the stack lies that was left: that of the host thread is known from nowhere else.
  __sanitizer_finish_switch_fiber(me.fake_stack_, &from.bottom_, &from.bytes_);
#endif
}

#if defined(INCIPIT_SIMT_BOOST)

void Context::restart() {
  forget_for_sanitizers();
  const auto start = [](boost::context::detail::transfer_t transfer) { enter(&transfer); };
  const std::size_t bytes = kStackBytes - stagger_;
  native_ = boost::context::detail::make_fcontext(stack_ + bytes, bytes, start);
}

void Context::enter(void* transfer) {
  const auto& arrived = *static_cast<boost::context::detail::transfer_t*>(transfer);
  auto& me = *static_cast<Context*>(arrived.data);
  me.came_from_->native_ = arrived.fctx;
  me.run();
}

void Context::switch_to(Context& from, Context& to) {
  leave(from, to);
  const auto arrived = boost::context::detail::jump_fcontext(to.native_, &to);
  from.came_from_->native_ = arrived.fctx;
  arrive(*from.came_from_, from);
}

#else

void Context::restart() {
  forget_for_sanitizers();
  getcontext(&native_);
  native_.uc_stack.ss_sp = stack_;
  native_.uc_stack.ss_size = kStackBytes - stagger_;
  native_.uc_link = nullptr;
  // makecontext passes ints only.
  const auto address = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&native_, reinterpret_cast<void (*)()>(&Context::enter), 2,
              static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
}

void Context::enter(unsigned high, unsigned low) {
  const auto address = std::uintptr_t{high} << 32 | low;
  reinterpret_cast<Context*>(address)->run();
}

void Context::switch_to(Context& from, Context& to) {
  leave(from, to);
  swapcontext(&from.native_, &to.native_);
  arrive(*from.came_from_, from);
}

#endif

}  // namespace incipit::simt
