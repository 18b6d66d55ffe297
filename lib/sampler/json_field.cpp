// SPDX-License-Identifier: Apache-2.0
#include "sampler/json_field.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace incipit::sampler {
namespace {

constexpr int kMaxDepth = 32;
// Bounds the work on a text of nothing but braces: each is read to its end at most.
constexpr int kMaxObjects = 256;

/// Reads one object as a stream of events, and writes down the member that is asked for: numbers
/// keep their digits that way. The last of equal names counts, as in other parsers.
class FieldReader {
 public:
  explicit FieldReader(std::string_view field) : field_(field) {}

  /// The member of the object that was read.
  std::optional<std::string>& found() { return found_; }

  bool null() { return take("null", Kind::kNull); }
  bool boolean(bool value) { return take(value ? "true" : "false", Kind::kOther); }
  bool number_integer(std::int64_t value) { return take(std::to_string(value), Kind::kOther); }
  bool number_unsigned(std::uint64_t value) { return take(std::to_string(value), Kind::kOther); }
  bool number_float(double, const std::string& digits) { return take(digits, Kind::kOther); }
  bool string(std::string& value) { return take(value, Kind::kText); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // JSON has none

  bool start_object(std::size_t) { return open('{'); }
  bool end_object() { return close('}'); }
  bool start_array(std::size_t) { return open('['); }
  bool end_array() { return close(']'); }
  bool key(std::string& name) {
    if (depth_ == 1) {
      wanted_ = name == field_;
    } else if (wanted_) {
      separate();
      compound_ += quoted(name) + ':';
      fresh_ = true;
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
    return false;
  }

 private:
  enum class Kind { kNull, kText, kOther };

  static std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  bool take(const std::string& value, Kind kind) {
    if (depth_ == 0) return false;
    if (!wanted_) return true;
    if (depth_ > 1) {
      separate();
      compound_ += kind == Kind::kText ? quoted(value) : value;
    } else if (kind == Kind::kNull) {
      found_.reset();
    } else {
      found_ = value;
    }
    return true;
  }

  bool open(char bracket) {
    if (depth_ >= 1 && wanted_) {
      separate();
      compound_ += bracket;
      fresh_ = true;
    }
    return ++depth_ <= kMaxDepth;
  }

  bool close(char bracket) {
    --depth_;
    if (depth_ == 0 || !wanted_) return true;
    compound_ += bracket;
    fresh_ = false;
    if (depth_ == 1) {
      found_ = std::move(compound_);
      compound_.clear();
    }
    return true;
  }

  /// A comma, but for what comes first in its brackets or behind its name.
  void separate() {
    if (!fresh_ && !compound_.empty()) compound_ += ',';
    fresh_ = false;
  }

  const std::string_view field_;
  std::optional<std::string> found_;
  std::string compound_;  // the member so far, where it is an object or a list
  bool wanted_ = false;   // within the member that is asked for
  bool fresh_ = false;
  int depth_ = 0;
};

}  // namespace

std::optional<std::string> last_json_field(std::string_view text, std::string_view field) {
  std::size_t end = text.size();
  for (int objects = 0; objects < kMaxObjects && end > 0; ++objects) {
    const std::size_t begin = text.rfind('{', end - 1);
    if (begin == std::string_view::npos) return std::nullopt;
    FieldReader reader(field);
    // Not strict: whatever follows the object is not looked at.
    const std::string_view rest = text.substr(begin);
    const bool whole = nlohmann::json::sax_parse(rest.begin(), rest.end(), &reader,
                                                 nlohmann::json::input_format_t::json, false);
    if (whole && reader.found()) return std::move(reader.found());
    end = begin;
  }
  return std::nullopt;
}

}  // namespace incipit::sampler
