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
    Weight(tensor::DType type_, std::size_t rows, std::size_t columns, ReadRows read)
        : device::Weight(rows, columns), type(type_) {
      const std::size_t row_bytes = tensor::row_bytes(type, columns);
      bytes.resize(rows * row_bytes);
      // In two parts, as a device may.
      const auto all = std::as_writable_bytes(std::span(bytes));
      read(all.first(rows / 2 * row_bytes));
      read(all.subspan(rows / 2 * row_bytes));
    }

    tensor::DType type;
    std::string bytes;
  };

  std::unique_ptr<device::Weight> make_weight(tensor::DType type, std::size_t rows,
                                              std::size_t columns, ReadRows read) override {
    return std::make_unique<Weight>(type, rows, columns, read);
  }

  static const Weight& recorded(const std::unique_ptr<device::Weight>& weight) {
    return dynamic_cast<const Weight&>(*weight);
  }
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_RECORDING_DEVICE_H_
