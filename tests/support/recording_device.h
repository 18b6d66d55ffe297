// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_RECORDING_DEVICE_H_
#define INCIPIT_TESTS_SUPPORT_RECORDING_DEVICE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "support/fake_device.h"

namespace incipit::test {

/// Keeps each weight as it was given, and computes nothing.
class RecordingDevice final : public FakeDevice {
 public:
  struct Weight final : device::Weight {
    Weight(tensor::DType type_, std::size_t rows, std::size_t columns, base::Bytes given)
        : device::Weight(rows, columns),
          type(type_),
          bytes(reinterpret_cast<const char*>(given.data()), given.size()) {}

    tensor::DType type;
    std::string bytes;
  };

  std::unique_ptr<device::Weight> make_weight(tensor::DType type, std::size_t rows,
                                              std::size_t columns, base::Bytes bytes) override {
    return std::make_unique<Weight>(type, rows, columns, bytes);
  }

  static const Weight& recorded(const std::unique_ptr<device::Weight>& weight) {
    return dynamic_cast<const Weight&>(*weight);
  }
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_RECORDING_DEVICE_H_
