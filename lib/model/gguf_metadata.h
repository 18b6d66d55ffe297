// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_GGUF_METADATA_H_
#define INCIPIT_MODEL_GGUF_METADATA_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace incipit::model {

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
inline constexpr std::uint32_t kGgufTypes = 13;

/// Bytes of one value; 0 for strings and arrays.
std::size_t gguf_value_bytes(GgufType type) noexcept;

/// A value in the bytes of the header, which its owner keeps.
struct GgufValue {
  GgufType type = GgufType::kU8;  // of the value, or of an array's elements
  bool array = false;
  std::uint64_t count = 1;  // elements
  base::Bytes bytes = {};   // of the value (a string with its length), or of all elements
};

/// The metadata of a GGUF file. A value's type is checked where it is used: find_*() gives nullopt
/// for a missing key, get_*() throws; both throw Error{kModelUnreadable} for a wrong type.
class GgufMetadata {
 public:
  explicit GgufMetadata(std::filesystem::path file) : file_(std::move(file)) {}

  /// Throws Error{kModelUnreadable} for a key that is there already.
  void add(std::string_view key, const GgufValue& value);

  bool has(std::string_view key) const { return find(key) != nullptr; }
  const std::filesystem::path& file() const noexcept { return file_; }

  std::optional<std::uint64_t> find_count(std::string_view key) const;  // any integer >= 0
  std::optional<double> find_number(std::string_view key) const;        // any number
  std::optional<bool> find_flag(std::string_view key) const;
  std::optional<std::string_view> find_text(std::string_view key) const;

  std::uint64_t get_count(std::string_view key) const { return require(find_count(key), key); }
  double get_number(std::string_view key) const { return require(find_number(key), key); }
  std::string_view get_text(std::string_view key) const { return require(find_text(key), key); }
  std::vector<std::string> get_texts(std::string_view key) const;
  std::vector<std::int32_t> get_i32s(std::string_view key) const;
  std::vector<float> get_f32s(std::string_view key) const;

 private:
  const GgufValue* find(std::string_view key) const;
  const GgufValue* find_scalar(std::string_view key) const;
  const GgufValue& get_array(std::string_view key, GgufType type) const;
  [[noreturn]] void missing(std::string_view key) const;
  [[noreturn]] void wrong(std::string_view key, std::string_view why) const;

  template <class T>
  T require(const std::optional<T>& value, std::string_view key) const {
    if (!value) missing(key);
    return *value;
  }

  std::filesystem::path file_;
  std::map<std::string, GgufValue, std::less<>> values_;
};

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_GGUF_METADATA_H_
