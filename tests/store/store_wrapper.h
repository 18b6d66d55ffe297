// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_STORE_STORE_WRAPPER_H_
#define INCIPIT_TESTS_STORE_STORE_WRAPPER_H_

#include <memory>
#include <utility>

#include "incipit/store.h"

namespace incipit::test {

/// Another store as it is; for stores that do one thing otherwise.
class StoreWrapper : public Store {
 public:
  explicit StoreWrapper(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  StoreStatus get(const StoreKey& key, Deadline deadline, StoreBuffer& value) override {
    return store_->get(key, deadline, value);
  }
  StoreStatus put(const StoreKey& key, std::span<const std::byte> value, std::chrono::seconds life,
                  Deadline deadline) override {
    return store_->put(key, value, life, deadline);
  }
  StoreStatus erase(const StoreKey& key, Deadline deadline) override {
    return store_->erase(key, deadline);
  }
  std::string_view name() const noexcept override { return "wrapper"; }

 private:
  const std::shared_ptr<Store> store_;
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_STORE_STORE_WRAPPER_H_
