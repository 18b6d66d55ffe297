// SPDX-License-Identifier: Apache-2.0
#include "compress/compact_json.h"

#include <algorithm>
#include <utility>

#include "text/ascii.h"
#include "text/utf8.h"

namespace incipit::compress {
namespace {

using text::is_digit;
using text::to_lower;

char32_t hex_value(std::string_view digits) {
  char32_t value = 0;
  for (const char c : digits) {
    const int digit = is_digit(c) ? c - '0' : to_lower(c) - 'a' + 10;
    value = value * 16 + static_cast<char32_t>(digit);
  }
  return value;
}

/// The code unit of an escape \uXXXX at the front of `text`, or 0.
char32_t escaped_unit(std::string_view text) {
  constexpr std::size_t kSize = 6;
  const bool is_escape = text.size() >= kSize && text[0] == '\\' && text[1] == 'u';
  return is_escape ? hex_value(text.substr(2, 4)) : 0;
}

/// Whether a character may stand in a text for itself without anybody taking it for another one:
/// no controls, white space beyond ASCII, format characters (joiners, directions) or
/// non-characters.
bool is_plain(char32_t code) {
  if (code < 0xA1 || code == 0xAD || code == 0x061C || code == 0x180E || code == 0x3000)
    return false;
  if (code >= 0x2000 && code <= 0x200F) return false;
  if (code >= 0x2028 && code <= 0x202F) return false;
  if (code >= 0x205F && code <= 0x206F) return false;
  if (code >= 0xD800 && code <= 0xF8FF) return false;  // surrogates and private use
  if (code == 0xFEFF || (code >= 0xFFF0 && code <= 0xFFFF)) return false;
  return code < 0xE0000 && (code & 0xFFFE) != 0xFFFE;
}

/// What stands between the quotes of a string, without needless escapes.
std::string unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find('\\'), text.size());
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    std::size_t size = text[1] == 'u' ? 6 : 2;
    char32_t code = escaped_unit(text);
    const char32_t low = escaped_unit(text.substr(size));
    const bool is_pair = code >= 0xD800 && code < 0xDC00 && low >= 0xDC00 && low < 0xE000;
    if (is_pair) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      size = 12;
    }
    if (is_plain(code)) {
      text::append_utf8(out, code);
    } else if (text.substr(0, 2) == "\\/") {
      out += '/';
    } else {
      out.append(text.substr(0, size));
    }
    text.remove_prefix(size);
  }
  return out;
}

class Writer {
 public:
  Writer(std::string_view text, const std::vector<JsonNode>& nodes,
         const CompactionOptions& options, Markers& markers)
      : text_(text), nodes_(nodes), options_(options), markers_(markers) {}

  std::string write() {
    value(0);
    return std::move(out_);
  }

 private:
  void value(std::size_t node) {  // no deeper than JsonScanner::kMaxDepth
    switch (nodes_[node].kind) {
      case JsonNode::Kind::kObject:
        return object(node);
      case JsonNode::Kind::kArray:
        return array(node);
      case JsonNode::Kind::kName:
      case JsonNode::Kind::kString:
        return string(node);
      case JsonNode::Kind::kOther:
        out_.append(source(node));
    }
  }

  void object(std::size_t node) {
    out_ += '{';
    for (std::size_t name = node + 1; name < nodes_[node].next; name = nodes_[name + 1].next) {
      if (name > node + 1) out_ += ',';
      string(name);
      out_ += ':';
      value(name + 1);
    }
    out_ += '}';
  }

  void array(std::size_t node) {
    const std::size_t count = nodes_[node].children, most = options_.array_items;
    const bool is_long = most > 0 && count > most;
    const std::size_t tail = is_long ? most / 3 : 0;
    std::size_t head = is_long ? most - tail : count;
    if (is_long && bytes_between(node, head, count - tail) < Markers::kBytes) head = count - tail;
    out_ += '[';
    std::size_t item = node + 1;
    for (std::size_t i = 0; i < count; ++i, item = nodes_[item].next) {
      if (i >= head && i < count - tail) {
        if (i == head) separate_and_mark(i, count - head - tail);
        continue;
      }
      if (i > 0) out_ += ',';
      value(item);
    }
    out_ += ']';
  }

  /// Bytes in the source of the items [first, last) of an array.
  std::size_t bytes_between(std::size_t node, std::size_t first, std::size_t last) const {
    std::size_t bytes = 0, item = node + 1;
    for (std::size_t i = 0; i < last; ++i, item = nodes_[item].next) {
      if (i >= first) bytes += nodes_[item].end - nodes_[item].begin;
    }
    return bytes;
  }

  void separate_and_mark(std::size_t position, std::size_t left_out) {
    if (position > 0) out_ += ',';
    out_ += '"' + markers_.next(left_out, "items") + '"';
  }

  void string(std::size_t node) {
    const std::string_view quoted = source(node);
    const std::string content = unescaped(quoted.substr(1, quoted.size() - 2));
    const bool is_name = nodes_[node].kind == JsonNode::Kind::kName;
    // Escapes that are left may be of parts of a grapheme: such strings stay whole.
    const bool is_long = !is_name && options_.string_bytes > 0 &&
                         content.size() > options_.string_bytes &&
                         content.find("\\u") == std::string::npos;
    out_ += '"' + (is_long ? cut_middle(content, options_.string_bytes, markers_) : content) + '"';
  }

  std::string_view source(std::size_t node) const {
    return text_.substr(nodes_[node].begin, nodes_[node].end - nodes_[node].begin);
  }

  std::string_view text_;
  const std::vector<JsonNode>& nodes_;
  const CompactionOptions& options_;
  Markers& markers_;
  std::string out_;
};

}  // namespace

std::string compact_json(std::string_view text, const JsonScanner& scanner,
                         const CompactionOptions& options, Markers& markers) {
  return Writer(text, scanner.nodes(), options, markers).write();
}

}  // namespace incipit::compress
