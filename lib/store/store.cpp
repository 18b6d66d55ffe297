// SPDX-License-Identifier: Apache-2.0
#include "incipit/store.h"

namespace incipit::inline v0 {

Store::~Store() = default;

std::string_view to_string(StoreStatus status) noexcept {
  switch (status) {
    case StoreStatus::kOk:
      return "ok";
    case StoreStatus::kMiss:
      return "miss";
    case StoreStatus::kTooLarge:
      return "too_large";
    case StoreStatus::kUnavailable:
      return "unavailable";
  }
  return "unknown";
}

}  // namespace incipit::inline v0
