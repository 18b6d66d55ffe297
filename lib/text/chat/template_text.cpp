// SPDX-License-Identifier: Apache-2.0
#include "text/chat/template_text.h"

#include <algorithm>
#include <cstddef>

#include "text/ascii.h"

namespace incipit::text {
namespace {

/// Reads a template front to back: code in {{ }} and {% %}, comments in {# #}, and text between.
class Scanner {
 public:
  Scanner(std::string_view in, std::string& code, std::vector<std::string>& literals)
      : in_(in), code_(code), literals_(literals) {}

  void scan() {
    while (at_ < in_.size()) {
      if (starts("{#")) {
        const std::size_t end = in_.find("#}", at_ + 2);
        at_ = end == std::string_view::npos ? in_.size() : end + 2;
      } else if (starts("{{") || starts("{%")) {
        scan_code();
      } else {
        add_outside(in_[at_++]);
      }
    }
  }

 private:
  bool starts(std::string_view part) const { return in_.substr(at_).starts_with(part); }

  // To the end of the tag; a tag's end within a literal is none.
  void scan_code() {
    while (at_ < in_.size()) {
      if (in_[at_] == '\'' || in_[at_] == '"') {
        scan_literal(in_[at_++]);
      } else if (starts("}}") || starts("%}")) {
        code_ += in_.substr(at_, 2);
        at_ += 2;
        return;
      } else {
        add_outside(in_[at_++]);
      }
    }
  }

  void scan_literal(char quote) {
    std::string value;
    code_ += '\'';
    while (at_ < in_.size() && in_[at_] != quote) {
      char c = in_[at_++];
      if (c == '\\' && at_ < in_.size()) c = unescaped(in_[at_++], value);
      value += c;
    }
    ++at_;  // beyond the end where the literal has none
    code_ += replace_all(value, "\n", "\\n") + '\'';
    literals_.push_back(std::move(value));
  }

  // The character that an escape stands for. One that is none keeps its backslash.
  static char unescaped(char c, std::string& value) {
    switch (c) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case '\\':
      case '\'':
      case '"':
        return c;
      default:
        value += '\\';
        return c;
    }
  }

  void add_outside(char c) {
    if (!is_space(c)) code_ += c;
  }

  std::string_view in_;
  std::string& code_;
  std::vector<std::string>& literals_;
  std::size_t at_ = 0;
};

}  // namespace

TemplateText::TemplateText(std::string_view chat_template) {
  Scanner(chat_template, code_, literals_).scan();
  code_ = replace_all(code_, "['role']", ".role");
  code_ = replace_all(code_, "['content']", ".content");
}

std::string TemplateText::literal(std::string_view part) const {
  const auto found = std::find_if(literals_.begin(), literals_.end(), [&](const std::string& text) {
    return text.find(part) != std::string::npos;
  });
  return found == literals_.end() ? std::string() : *found;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t done = 0; done < text.size();) {
    const std::size_t at = std::min(text.find(from, done), text.size());
    out += text.substr(done, at - done);
    if (at < text.size()) out += to;
    done = at + from.size();
  }
  return out;
}

}  // namespace incipit::text
