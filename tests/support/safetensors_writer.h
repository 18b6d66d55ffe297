// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_SAFETENSORS_WRITER_H_
#define INCIPIT_TESTS_SUPPORT_SAFETENSORS_WRITER_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace incipit::test {

/// Writes a .safetensors file of the tensors in the order of the calls.
class SafetensorsWriter {
 public:
  void add(std::string_view name, std::string_view dtype, const std::vector<std::size_t>& shape,
           std::string_view bytes);

  std::string header() const { return "{" + header_ + "}"; }
  const std::string& data() const noexcept { return data_; }
  std::string bytes() const { return join(header(), data_); }
  void write(const std::filesystem::path& path) const;

  /// A file of any header, a broken one too.
  static std::string join(std::string_view header, std::string_view data);

 private:
  std::string header_;  // the members of the JSON object
  std::string data_;
};

/// "F32", "F16" or "BF16".
std::string_view safetensors_type(tensor::DType type);

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_SAFETENSORS_WRITER_H_
