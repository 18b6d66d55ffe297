// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_JSON_SCAN_H_
#define INCIPIT_COMPRESS_JSON_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace incipit::compress {

/// One value, or the name of a member, of a JSON text (RFC 8259), in the order of the text.
struct JsonNode {
  enum class Kind : std::uint8_t { kObject, kArray, kName, kString, kOther };
  Kind kind = Kind::kOther;
  std::size_t begin = 0, end = 0;  // in the text
  std::size_t next = 0;            // the node behind this one and what it holds
  std::size_t children = 0;        // values in an array, members of an object
};

/// Finds JSON values in a text that holds other things, too. Values that are nested deeper than
/// kMaxDepth, or that hold bytes that are no UTF-8, do not count.
class JsonScanner {
 public:
  static constexpr std::size_t kMaxDepth = 256;

  explicit JsonScanner(std::string_view text) : text_(text) {}

  /// Whether an object or array that parses begins at `at`; nodes() are then its, the first one
  /// itself. Where `at` only increases from call to call and moves behind each value that was
  /// found, all calls together take O(length).
  bool scan(std::size_t at);
  const std::vector<JsonNode>& nodes() const noexcept { return nodes_; }

 private:
  void remember_failure(std::size_t at);
  bool value();
  bool open(JsonNode::Kind kind);
  bool close(char bracket);
  bool after_value();
  bool name();
  bool string(JsonNode::Kind kind);
  bool escape();
  bool number();
  bool word(std::string_view literal);
  void skip_space();
  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  std::size_t add(JsonNode::Kind kind, std::size_t begin);

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<JsonNode> nodes_;
  std::vector<std::size_t> open_;  // nodes
  // Where values begin that were open as an earlier scan failed: they fail, too. Ascending.
  std::vector<std::size_t> hopeless_;
};

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_JSON_SCAN_H_
