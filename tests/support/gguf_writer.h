// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_GGUF_WRITER_H_
#define INCIPIT_TESTS_SUPPORT_GGUF_WRITER_H_

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tensor/dtype.h"

namespace incipit::test {

/// The value types of GGUF metadata.
enum class GgufType : std::uint32_t {
  kU8 = 0,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

/// What GGUF calls an element format.
std::uint32_t ggml_type(tensor::DType type);

template <class T>
requires std::is_trivially_copyable_v<T> std::string raw_bytes(const T& value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

/// Writes a GGUF file as told, a broken one too: nothing is checked, and whatever is set by hand
/// stays as it was set.
struct GgufWriter {
  struct Entry {
    std::string key;
    std::uint32_t type = 0;
    std::string payload;
  };
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> dims;  // innermost first, as in the file
    std::uint32_t type = 0;
    std::string data;
    std::optional<std::uint64_t> offset = {};  // none: behind the tensor before, aligned
  };

  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  // used for the layout; its metadata entry is the caller's business
  std::optional<std::uint64_t> claimed_tensors = {};
  std::optional<std::uint64_t> claimed_entries = {};
  std::vector<Entry> entries = {};
  std::vector<Tensor> tensors = {};
  std::string tail = {};  // behind everything

  // Each sets an entry's value, or appends the entry where there is none of that key.
  GgufWriter& set(const std::string& key, GgufType type, std::string payload);
  GgufWriter& set_u32(const std::string& key, std::uint32_t value);
  GgufWriter& set_f32(const std::string& key, float value);
  GgufWriter& set_bool(const std::string& key, bool value);
  GgufWriter& set_string(const std::string& key, std::string_view value);
  GgufWriter& set_strings(const std::string& key, const std::vector<std::string>& values);
  GgufWriter& set_i32s(const std::string& key, const std::vector<std::int32_t>& values);
  GgufWriter& erase(const std::string& key);

  /// The tensor of that name, which must exist.
  Tensor& tensor(std::string_view name);

  std::string bytes() const;
  void write(const std::filesystem::path& path) const;
};

std::string gguf_string(std::string_view text);
std::string gguf_array(GgufType type, std::uint64_t count, std::string_view elements);

/// Throws std::runtime_error where the file cannot be written.
void write_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_GGUF_WRITER_H_
