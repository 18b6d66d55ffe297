// SPDX-License-Identifier: Apache-2.0
#include "compress/json_scan.h"

#include <algorithm>

#include "text/ascii.h"
#include "text/utf8.h"

namespace incipit::compress {

using text::is_ascii;
using text::is_blank;
using text::is_digit;
using text::is_hex_digit;

bool JsonScanner::scan(std::size_t at) {
  if (std::binary_search(hopeless_.begin(), hopeless_.end(), at)) return false;
  nodes_.clear();
  open_.clear();
  at_ = at;
  if (!next_is('{') && !next_is('[')) return false;
  do {
    if (!value() || !after_value()) {
      remember_failure(at);
      return false;
    }
  } while (!open_.empty());
  return true;
}

/// What was open fails at the same place if it is tried by itself. (Not so the inner ones of an
/// overlong nesting; they do not count, either.)
void JsonScanner::remember_failure(std::size_t at) {
  std::erase_if(hopeless_, [&](std::size_t begin) { return begin <= at; });
  for (const std::size_t node : open_) hopeless_.push_back(nodes_[node].begin);
  std::sort(hopeless_.begin(), hopeless_.end());
}

/// A value: of an object or array that is not empty, only up to its first value.
bool JsonScanner::value() {
  for (;;) {
    skip_space();
    if (at_ == text_.size()) return false;
    switch (text_[at_]) {
      case '{':
        if (!open(JsonNode::Kind::kObject)) return false;
        skip_space();
        if (next_is('}')) return close('}');
        if (!name()) return false;
        break;
      case '[':
        if (!open(JsonNode::Kind::kArray)) return false;
        skip_space();
        if (next_is(']')) return close(']');
        ++nodes_[open_.back()].children;
        break;
      case '"':
        return string(JsonNode::Kind::kString);
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }
}

bool JsonScanner::open(JsonNode::Kind kind) {
  if (open_.size() == kMaxDepth) return false;
  open_.push_back(add(kind, at_));
  ++at_;
  return true;
}

bool JsonScanner::close(char bracket) {
  if (!next_is(bracket)) return false;
  JsonNode& node = nodes_[open_.back()];
  node.end = ++at_;
  node.next = nodes_.size();
  open_.pop_back();
  return true;
}

/// What follows a value: ends of what holds it, then the way to the next value if there is one.
bool JsonScanner::after_value() {
  while (!open_.empty()) {
    skip_space();
    JsonNode& holder = nodes_[open_.back()];
    const bool in_array = holder.kind == JsonNode::Kind::kArray;
    if (next_is(',')) {
      ++at_;
      if (in_array) {
        ++holder.children;
        return true;
      }
      skip_space();
      return name();
    }
    if (!close(in_array ? ']' : '}')) return false;
  }
  return true;
}

bool JsonScanner::name() {
  ++nodes_[open_.back()].children;
  if (!next_is('"') || !string(JsonNode::Kind::kName)) return false;
  skip_space();
  if (!next_is(':')) return false;
  ++at_;
  return true;
}

bool JsonScanner::string(JsonNode::Kind kind) {
  const std::size_t node = add(kind, at_);
  for (++at_; at_ < text_.size();) {
    const char c = text_[at_];
    if (c == '"') {
      nodes_[node].end = ++at_;
      return true;
    }
    if (c == '\\') {
      if (!escape()) return false;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      return false;
    } else if (is_ascii(c)) {
      ++at_;
    } else {
      const text::Utf8Unit unit = text::first_unit(text_.substr(at_));
      if (unit.kind != text::Utf8Unit::Kind::kCharacter) return false;
      at_ += unit.bytes;
    }
  }
  return false;
}

bool JsonScanner::escape() {
  const std::string_view rest = text_.substr(at_);
  if (rest.size() < 2) return false;
  if (rest[1] == 'u') {
    if (rest.size() < 6 || !std::all_of(rest.begin() + 2, rest.begin() + 6, is_hex_digit)) {
      return false;
    }
    at_ += 6;
    return true;
  }
  if (std::string_view("\"\\/bfnrt").find(rest[1]) == std::string_view::npos) return false;
  at_ += 2;
  return true;
}

bool JsonScanner::number() {
  const std::size_t node = add(JsonNode::Kind::kOther, at_);
  const auto digits = [&] {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ > begin;
  };
  if (next_is('-')) ++at_;
  if (next_is('0')) {
    ++at_;
  } else if (!digits()) {
    return false;
  }
  if (next_is('.')) {
    ++at_;
    if (!digits()) return false;
  }
  if (next_is('e') || next_is('E')) {
    ++at_;
    if (next_is('+') || next_is('-')) ++at_;
    if (!digits()) return false;
  }
  nodes_[node].end = at_;
  return true;
}

bool JsonScanner::word(std::string_view literal) {
  if (text_.substr(at_, literal.size()) != literal) return false;
  const std::size_t node = add(JsonNode::Kind::kOther, at_);
  nodes_[node].end = at_ += literal.size();
  return true;
}

void JsonScanner::skip_space() {
  while (at_ < text_.size() && (is_blank(text_[at_]) || text_[at_] == '\n' || text_[at_] == '\r')) {
    ++at_;
  }
}

std::size_t JsonScanner::add(JsonNode::Kind kind, std::size_t begin) {
  nodes_.push_back({.kind = kind, .begin = begin, .end = begin, .next = nodes_.size() + 1});
  return nodes_.size() - 1;
}

}  // namespace incipit::compress
