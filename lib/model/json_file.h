// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_JSON_FILE_H_
#define INCIPIT_MODEL_JSON_FILE_H_

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::model {

/// A view of a JSON object of a model directory. A member's type is checked where it is used:
/// find_*() gives nullopt (an empty list) for one that is missing or null, get_*() throws; both
/// throw Error{kModelUnreadable} for a wrong type.
class JsonObject {
 public:
  /// `value` is an object; it and `file` must outlive the view.
  JsonObject(const nlohmann::json& value, const std::filesystem::path& file)
      : value_(&value), file_(&file) {}

  const nlohmann::json& members() const noexcept { return *value_; }
  const std::filesystem::path& file() const noexcept { return *file_; }

  std::optional<std::uint64_t> find_count(std::string_view key) const;  // an integer >= 0
  std::optional<double> find_number(std::string_view key) const;
  std::optional<bool> find_flag(std::string_view key) const;
  std::optional<std::string> find_text(std::string_view key) const;
  std::optional<JsonObject> find_object(std::string_view key) const;
  std::vector<std::uint64_t> find_counts(std::string_view key) const;  // one count or a list
  std::vector<std::string> find_texts(std::string_view key) const;

  std::uint64_t get_count(std::string_view key) const;
  double get_number(std::string_view key) const;

  [[noreturn]] void missing(std::string_view key) const;
  [[noreturn]] void wrong(std::string_view key, std::string_view why) const;

 private:
  const nlohmann::json* find(std::string_view key) const;  // null: missing or JSON's null

  const nlohmann::json* value_;
  const std::filesystem::path* file_;
};

/// A small JSON file that holds an object.
class JsonFile {
 public:
  /// Throws Error{kModelUnreadable} for more than 8 MiB, nesting beyond 32 levels, or no object.
  explicit JsonFile(const std::filesystem::path& path);

  JsonObject root() const noexcept { return JsonObject(value_, path_); }

 private:
  std::filesystem::path path_;
  nlohmann::json value_;
};

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_JSON_FILE_H_
