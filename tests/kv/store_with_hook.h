// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_KV_STORE_WITH_HOOK_H_
#define INCIPIT_TESTS_KV_STORE_WITH_HOOK_H_

#include <functional>
#include <memory>
#include <utility>

#include "incipit/store.h"

namespace incipit::test {

/// Another store, with something that happens once behind a get(), while its caller still waits.
/// For one thread at a time that gets anything until it has happened.
class StoreWithHook final : public Store {
 public:
  explicit StoreWithHook(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  std::function<void()> after_get = {};
  int gets_before = 0;  // that are let through

  StoreStatus get(const StoreKey& key, Deadline deadline, StoreBuffer& value) override {
    const StoreStatus status = store_->get(key, deadline, value);
    if (after_get && gets_before-- == 0) std::exchange(after_get, nullptr)();
    return status;
  }
  StoreStatus put(const StoreKey& key, std::span<const std::byte> value, std::chrono::seconds life,
                  Deadline deadline) override {
    return store_->put(key, value, life, deadline);
  }
  StoreStatus erase(const StoreKey& key, Deadline deadline) override {
    return store_->erase(key, deadline);
  }
  std::string_view name() const noexcept override { return "hook"; }

 private:
  const std::shared_ptr<Store> store_;
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_KV_STORE_WITH_HOOK_H_
