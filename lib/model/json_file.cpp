// SPDX-License-Identifier: Apache-2.0
#include "model/json_file.h"

#include <cmath>

#include "base/file.h"
#include "model/files.h"

namespace incipit::model {
namespace {

using nlohmann::json;

// A document takes up to about twenty times the memory of its text. The largest files of this kind
// (indices of hundreds of shards) have a few hundred kilobytes.
constexpr std::uint64_t kMaxBytes = std::uint64_t{8} << 20;
constexpr int kMaxDepth = 32;

json parse(const std::filesystem::path& path) {
  const std::string text = base::read_text_file(path, kMaxBytes);
  const auto check_depth = [&](int depth, json::parse_event_t, json&) {
    if (depth > kMaxDepth) fail(path, "its JSON is nested too deeply; the file is damaged");
    return true;
  };
  json value = json::parse(text, check_depth, /*allow_exceptions=*/false);
  if (!value.is_object()) fail(path, "it holds no valid JSON object; the file is damaged");
  return value;
}

}  // namespace

JsonFile::JsonFile(const std::filesystem::path& path) : path_(path), value_(parse(path)) {}

std::optional<std::uint64_t> JsonObject::find_count(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_unsigned()) wrong(key, "is no integer from 0 on");
  return value->get<std::uint64_t>();
}

std::optional<double> JsonObject::find_number(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) wrong(key, "is no number");
  return value->get<double>();
}

std::optional<bool> JsonObject::find_flag(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) wrong(key, "is neither true nor false");
  return value->get<bool>();
}

std::optional<std::string> JsonObject::find_text(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) wrong(key, "is no text");
  return value->get<std::string>();
}

std::optional<JsonObject> JsonObject::find_object(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) wrong(key, "is no object");
  return JsonObject(*value, *file_);
}

std::vector<std::uint64_t> JsonObject::find_counts(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) return {*find_count(key)};
  std::vector<std::uint64_t> counts;
  for (const json& element : *value) {
    if (!element.is_number_unsigned()) wrong(key, "holds something else than integers from 0 on");
    counts.push_back(element.get<std::uint64_t>());
  }
  return counts;
}

std::vector<std::string> JsonObject::find_texts(std::string_view key) const {
  const json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) wrong(key, "is no list");
  std::vector<std::string> texts;
  for (const json& element : *value) {
    if (!element.is_string()) wrong(key, "holds something else than texts");
    texts.push_back(element.get<std::string>());
  }
  return texts;
}

std::uint64_t JsonObject::get_count(std::string_view key) const {
  const auto value = find_count(key);
  if (!value) missing(key);
  return *value;
}

double JsonObject::get_number(std::string_view key) const {
  const auto value = find_number(key);
  if (!value) missing(key);
  return *value;
}

void JsonObject::missing(std::string_view key) const {
  fail(*file_, "'" + std::string(key) + "' is missing; the model is incomplete");
}

void JsonObject::wrong(std::string_view key, std::string_view why) const {
  fail(*file_, "'" + std::string(key) + "' " + std::string(why) + "; the file is damaged");
}

const json* JsonObject::find(std::string_view key) const {
  const auto found = value_->find(key);
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

}  // namespace incipit::model
