// SPDX-License-Identifier: Apache-2.0
#include "support/gguf_writer.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace incipit::test {
namespace {

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return alignment == 0 ? value : (value + alignment - 1) / alignment * alignment;
}

}  // namespace

std::uint32_t ggml_type(tensor::DType type) {
  switch (type) {
    case tensor::DType::kF32:
      return 0;
    case tensor::DType::kF16:
      return 1;
    case tensor::DType::kQ4_0:
      return 2;
    case tensor::DType::kQ4_1:
      return 3;
    case tensor::DType::kQ5_0:
      return 6;
    case tensor::DType::kQ5_1:
      return 7;
    case tensor::DType::kQ8_0:
      return 8;
    case tensor::DType::kQ4_K:
      return 12;
    case tensor::DType::kQ5_K:
      return 13;
    case tensor::DType::kQ6_K:
      return 14;
    case tensor::DType::kBF16:
      return 30;
  }
  throw std::runtime_error("no such dtype");
}

std::string gguf_string(std::string_view text) {
  return raw_bytes(std::uint64_t{text.size()}).append(text);
}

std::string gguf_array(GgufType type, std::uint64_t count, std::string_view elements) {
  return raw_bytes(type).append(raw_bytes(count)).append(elements);
}

GgufWriter& GgufWriter::set(const std::string& key, GgufType type, std::string payload) {
  Entry entry{key, static_cast<std::uint32_t>(type), std::move(payload)};
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& other) { return other.key == key; });
  if (found == entries.end()) {
    entries.push_back(std::move(entry));
  } else {
    *found = std::move(entry);
  }
  return *this;
}

GgufWriter& GgufWriter::set_u32(const std::string& key, std::uint32_t value) {
  return set(key, GgufType::kU32, raw_bytes(value));
}

GgufWriter& GgufWriter::set_f32(const std::string& key, float value) {
  return set(key, GgufType::kF32, raw_bytes(value));
}

GgufWriter& GgufWriter::set_bool(const std::string& key, bool value) {
  return set(key, GgufType::kBool, std::string(1, value ? '\1' : '\0'));
}

GgufWriter& GgufWriter::set_string(const std::string& key, std::string_view value) {
  return set(key, GgufType::kString, gguf_string(value));
}

GgufWriter& GgufWriter::set_strings(const std::string& key,
                                    const std::vector<std::string>& values) {
  std::string elements;
  for (const std::string& value : values) elements += gguf_string(value);
  return set(key, GgufType::kArray, gguf_array(GgufType::kString, values.size(), elements));
}

GgufWriter& GgufWriter::set_i32s(const std::string& key, const std::vector<std::int32_t>& values) {
  std::string elements;
  for (const std::int32_t value : values) elements += raw_bytes(value);
  return set(key, GgufType::kArray, gguf_array(GgufType::kI32, values.size(), elements));
}

GgufWriter& GgufWriter::erase(const std::string& key) {
  std::erase_if(entries, [&](const Entry& entry) { return entry.key == key; });
  return *this;
}

GgufWriter::Tensor& GgufWriter::tensor(std::string_view name) {
  for (Tensor& candidate : tensors) {
    if (candidate.name == name) return candidate;
  }
  throw std::runtime_error("no tensor " + std::string(name));
}

std::string GgufWriter::bytes() const {
  std::string file = magic + raw_bytes(version);
  file += raw_bytes(claimed_tensors.value_or(tensors.size()));
  file += raw_bytes(claimed_entries.value_or(entries.size()));
  for (const Entry& entry : entries) {
    file += gguf_string(entry.key) + raw_bytes(entry.type) + entry.payload;
  }
  std::uint64_t next = 0;
  std::string data;
  for (const Tensor& tensor : tensors) {
    file += gguf_string(tensor.name);
    file += raw_bytes(static_cast<std::uint32_t>(tensor.dims.size()));
    for (const std::uint64_t dim : tensor.dims) file += raw_bytes(dim);
    file += raw_bytes(tensor.type) + raw_bytes(tensor.offset.value_or(next));
    data.resize(next);
    data += tensor.data;
    next = align_up(data.size(), alignment);
  }
  file.resize(align_up(file.size(), alignment));
  return file + data + tail;
}

void GgufWriter::write(const std::filesystem::path& path) const { write_file(path, bytes()); }

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace incipit::test
