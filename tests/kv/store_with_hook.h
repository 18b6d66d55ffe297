// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_KV_STORE_WITH_HOOK_H_
#define INCIPIT_TESTS_KV_STORE_WITH_HOOK_H_

#include <functional>
#include <utility>

#include "store/store_wrapper.h"

namespace incipit::test {

/// Another store, with something that happens once behind a get(), while its caller still waits.
/// For one thread at a time that gets anything until it has happened.
class StoreWithHook final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;

  std::function<void()> after_get = {};
  int gets_before = 0;  // that are let through

  StoreStatus get(const StoreKey& key, Deadline deadline, StoreBuffer& value) override {
    const StoreStatus status = StoreWrapper::get(key, deadline, value);
    if (after_get && gets_before-- == 0) std::exchange(after_get, nullptr)();
    return status;
  }
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_KV_STORE_WITH_HOOK_H_
