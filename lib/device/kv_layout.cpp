// SPDX-License-Identifier: Apache-2.0
#include "device/kv_layout.h"

namespace incipit::device {

std::string_view name(KvFormat format) noexcept {
  switch (format) {
    case KvFormat::kF32:
      return "F32";
    case KvFormat::kF16:
      return "F16";
    case KvFormat::kBF16:
      return "BF16";
    case KvFormat::kInt8:
      return "INT8";
  }
  return "?";
}

std::size_t value_bytes(KvFormat format) noexcept {
  switch (format) {
    case KvFormat::kF32:
      return 4;
    case KvFormat::kF16:
    case KvFormat::kBF16:
      return 2;
    case KvFormat::kInt8:
      return 1;
  }
  return 0;
}

}  // namespace incipit::device
