// SPDX-License-Identifier: Apache-2.0
#include "support/safetensors_writer.h"

#include <cstdint>
#include <stdexcept>

#include "support/gguf_writer.h"

namespace incipit::test {

void SafetensorsWriter::add(std::string_view name, std::string_view dtype,
                            const std::vector<std::size_t>& shape, std::string_view bytes) {
  std::string dims;
  for (const std::size_t dim : shape) {
    if (!dims.empty()) dims += ',';
    dims += std::to_string(dim);
  }
  if (!header_.empty()) header_ += ',';
  header_ += '"';
  header_ += name;
  header_ += "\":{\"dtype\":\"";
  header_ += dtype;
  header_ += "\",\"shape\":[" + dims + "],\"data_offsets\":[" + std::to_string(data_.size()) + ',' +
             std::to_string(data_.size() + bytes.size()) + "]}";
  data_ += bytes;
}

void SafetensorsWriter::write(const std::filesystem::path& path) const {
  write_file(path, bytes());
}

std::string SafetensorsWriter::join(std::string_view header, std::string_view data) {
  return raw_bytes(std::uint64_t{header.size()}).append(header).append(data);
}

std::string_view safetensors_type(tensor::DType type) {
  switch (type) {
    case tensor::DType::kF32:
      return "F32";
    case tensor::DType::kF16:
      return "F16";
    case tensor::DType::kBF16:
      return "BF16";
    default:
      throw std::runtime_error("safetensors has no such type");
  }
}

}  // namespace incipit::test
