// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_CAUGHT_H_
#define INCIPIT_BASE_CAUGHT_H_

#include <exception>
#include <new>

#include "incipit/error.h"

// Exceptions on their way to another thread. The runtime counts the owners of an exception, of its
// message too, with atomics that ThreadSanitizer does not see; so whoever passes one on keeps none.

namespace incipit::base {

/// What `work` threw, or null. The handler, an owner as well, is over when this returns.
template <class Work>
std::exception_ptr caught(Work&& work) {
  try {
    work();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

/// Another exception that says the same, for one more receiver.
inline std::exception_ptr copy_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return std::make_exception_ptr(Error(e.code(), e.what()));
  } catch (const std::bad_alloc&) {
    return std::make_exception_ptr(std::bad_alloc());
  } catch (const std::exception& e) {
    return std::make_exception_ptr(Error(ErrorCode::kInternal, e.what()));
  } catch (...) {
    return std::make_exception_ptr(Error(ErrorCode::kInternal, "an unknown exception"));
  }
}

}  // namespace incipit::base

#endif  // INCIPIT_BASE_CAUGHT_H_
