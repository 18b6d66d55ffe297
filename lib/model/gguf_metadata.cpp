// SPDX-License-Identifier: Apache-2.0
#include "model/gguf_metadata.h"

#include <cmath>

#include "model/files.h"

namespace incipit::model {
namespace {

template <class T>
T scalar(const GgufValue& value) {
  return base::ByteReader(value.bytes, "a metadata value").read<T>();
}

/// Of a signed type; none for others.
std::optional<std::int64_t> signed_integer(const GgufValue& value) {
  switch (value.type) {
    case GgufType::kI8:
      return scalar<std::int8_t>(value);
    case GgufType::kI16:
      return scalar<std::int16_t>(value);
    case GgufType::kI32:
      return scalar<std::int32_t>(value);
    case GgufType::kI64:
      return scalar<std::int64_t>(value);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::size_t gguf_value_bytes(GgufType type) noexcept {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return 0;
}

void GgufMetadata::add(std::string_view key, const GgufValue& value) {
  if (!values_.emplace(key, value).second) {
    fail(file_, "there are two metadata entries '" + std::string(key) + "'; the file is damaged");
  }
}

std::optional<std::uint64_t> GgufMetadata::find_count(std::string_view key) const {
  const GgufValue* value = find_scalar(key);
  if (value == nullptr) return std::nullopt;
  switch (value->type) {
    case GgufType::kU8:
      return scalar<std::uint8_t>(*value);
    case GgufType::kU16:
      return scalar<std::uint16_t>(*value);
    case GgufType::kU32:
      return scalar<std::uint32_t>(*value);
    case GgufType::kU64:
      return scalar<std::uint64_t>(*value);
    default:
      break;
  }
  const auto number = signed_integer(*value);
  if (!number) wrong(key, "is no integer");
  if (*number < 0) wrong(key, "is negative");
  return static_cast<std::uint64_t>(*number);
}

std::optional<double> GgufMetadata::find_number(std::string_view key) const {
  const GgufValue* value = find_scalar(key);
  if (value == nullptr) return std::nullopt;
  double number = 0.0;
  switch (value->type) {
    case GgufType::kF32:
      number = static_cast<double>(scalar<float>(*value));
      break;
    case GgufType::kF64:
      number = scalar<double>(*value);
      break;
    case GgufType::kBool:
    case GgufType::kString:
      wrong(key, "is no number");
    default:
      const auto integer = signed_integer(*value);
      number = integer ? static_cast<double>(*integer) : static_cast<double>(*find_count(key));
  }
  if (!std::isfinite(number)) wrong(key, "is not finite");
  return number;
}

std::optional<bool> GgufMetadata::find_flag(std::string_view key) const {
  const GgufValue* value = find_scalar(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kBool) wrong(key, "is neither true nor false");
  const auto flag = scalar<std::uint8_t>(*value);
  if (flag > 1) wrong(key, "is neither true nor false");
  return flag == 1;
}

std::optional<std::string_view> GgufMetadata::find_text(std::string_view key) const {
  const GgufValue* value = find_scalar(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kString) wrong(key, "is no string");
  return base::ByteReader(value->bytes, "a string").read_string(value->bytes.size());
}

std::vector<std::string> GgufMetadata::get_texts(std::string_view key) const {
  const GgufValue& array = get_array(key, GgufType::kString);
  base::ByteReader reader(array.bytes, "an array of strings");
  std::vector<std::string> texts;
  texts.reserve(array.count);
  for (std::uint64_t i = 0; i < array.count; ++i) {
    texts.emplace_back(reader.read_string(array.bytes.size()));
  }
  return texts;
}

std::vector<std::int32_t> GgufMetadata::get_i32s(std::string_view key) const {
  const GgufValue& array = get_array(key, GgufType::kI32);
  base::ByteReader reader(array.bytes, "an array of integers");
  std::vector<std::int32_t> values(array.count);
  for (std::int32_t& value : values) value = reader.read<std::int32_t>();
  return values;
}

std::vector<float> GgufMetadata::get_f32s(std::string_view key) const {
  const GgufValue& array = get_array(key, GgufType::kF32);
  base::ByteReader reader(array.bytes, "an array of numbers");
  std::vector<float> values(array.count);
  for (float& value : values) value = reader.read<float>();
  return values;
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const GgufValue* GgufMetadata::find_scalar(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value != nullptr && value->array) wrong(key, "is a list where one value belongs");
  return value;
}

const GgufValue& GgufMetadata::get_array(std::string_view key, GgufType type) const {
  const GgufValue* value = find(key);
  if (value == nullptr) missing(key);
  if (!value->array || value->type != type) {
    wrong(key, type == GgufType::kString ? "is no list of strings"
               : type == GgufType::kI32  ? "is no list of i32"
                                         : "is no list of f32");
  }
  return *value;
}

void GgufMetadata::missing(std::string_view key) const {
  fail(file_, "metadata '" + std::string(key) +
                  "' is missing; the file is incomplete, make it again with a current converter");
}

void GgufMetadata::wrong(std::string_view key, std::string_view why) const {
  fail(file_, "metadata '" + std::string(key) + "' " + std::string(why) +
                  ", which incipit cannot use; the file is damaged or of an unsupported kind");
}

}  // namespace incipit::model
