// SPDX-License-Identifier: Apache-2.0
#include "compress/line_kinds.h"

#include <algorithm>
#include <array>

#include "text/ascii.h"

namespace incipit::compress {
namespace {

using text::is_blank;
using text::is_digit;
using text::is_letter;
using text::is_upper;
using text::line_end;
using text::trimmed;

/// Takes what fits `pattern` away from the front: 9 stands for a digit, a for a letter, _ for a
/// digit or a space, T for a T or a space, and other characters for themselves.
bool take(std::string_view& line, std::string_view pattern) {
  if (line.size() < pattern.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = line[i];
    bool fits = c == pattern[i];
    if (pattern[i] == '9') fits = is_digit(c);
    if (pattern[i] == 'a') fits = is_letter(c);
    if (pattern[i] == '_') fits = is_digit(c) || c == ' ';
    if (pattern[i] == 'T') fits = c == 'T' || c == ' ';
    if (!fits) return false;
  }
  line.remove_prefix(pattern.size());
  return true;
}

bool begins_with_time(std::string_view line) {
  if (!line.empty() && (line.front() == '[' || line.front() == '(')) line.remove_prefix(1);
  constexpr std::array<std::string_view, 6> kStamps = {
      "9999-99-99T99:99", "9999/99/99T99:99", "99/aaa/9999:99:99",
      "aaa _9 99:99:99",  "99:99:99",         "a9999 99:99:99"};  // the last: glog
  return std::any_of(kStamps.begin(), kStamps.end(), [&](std::string_view stamp) {
    std::string_view rest = line;
    return take(rest, stamp);
  });
}

bool is_level(std::string_view word) {
  constexpr std::array<std::string_view, 10> kLevels = {"TRACE",    "DEBUG",   "INFO",  "NOTICE",
                                                        "WARN",     "WARNING", "ERROR", "FATAL",
                                                        "CRITICAL", "SEVERE"};
  return std::find(kLevels.begin(), kLevels.end(), word) != kLevels.end();
}

/// A log level as the first word, bare or in brackets, with a mark or another word behind it.
bool begins_with_level(std::string_view line) {
  const bool in_bracket = !line.empty() && line.front() == '[';
  if (in_bracket) line.remove_prefix(1);
  const auto end = std::find_if_not(line.begin(), line.end(), is_upper);
  const auto size = static_cast<std::size_t>(end - line.begin());
  if (!is_level(line.substr(0, size)) || size == line.size()) return false;
  const char next = line[size];
  return in_bracket ? next == ']' : next == ':' || next == ' ' || next == '\t' || next == '[';
}

bool has_frame(std::string_view line) {
  line = trimmed(line);
  if (line.size() < 2) return false;
  if (line.front() == '|') return line.find('|', 1) != std::string_view::npos;
  return line.front() == '+' && (line[1] == '-' || line[1] == '=') &&
         line.find_first_not_of("+-=| ") == std::string_view::npos;
}

}  // namespace

bool is_log_line(std::string_view line) {
  line = trimmed(line);
  return begins_with_time(line) || begins_with_level(line);
}

bool is_table_delimiter(std::string_view line) {
  line = trimmed(line);
  return line.find_first_not_of("|-: \t") == std::string_view::npos &&
         line.find('-') != std::string_view::npos && line.find('|') != std::string_view::npos;
}

std::size_t table_end(std::string_view text, std::size_t begin) {
  const auto line_at = [&](std::size_t at) { return text.substr(at, line_end(text, at) - at); };
  const std::string_view first = line_at(begin);
  if (first.find('|') == std::string_view::npos && first.find('+') == std::string_view::npos) {
    return begin;
  }
  const std::size_t second_begin = begin + first.size();
  const std::string_view second = line_at(second_begin);
  const bool is_markdown = first.find('|') != std::string_view::npos && is_table_delimiter(second);
  if (!is_markdown && !(has_frame(first) && has_frame(second))) return begin;
  std::size_t end = second_begin + second.size();
  while (end < text.size()) {
    const std::string_view line = line_at(end);
    const bool belongs = is_markdown ? line.find('|') != std::string_view::npos : has_frame(line);
    if (!belongs) break;
    end += line.size();
  }
  return end;
}

bool is_separator(std::string_view line) {
  constexpr std::ptrdiff_t kMinMarks = 3;
  line = trimmed(line);
  if (line.empty() || std::string_view("-=*_~#").find(line.front()) == std::string_view::npos) {
    return false;
  }
  const char mark = line.front();
  return std::all_of(line.begin(), line.end(), [&](char c) { return c == mark || is_blank(c); }) &&
         std::count(line.begin(), line.end(), mark) >= kMinMarks;
}

}  // namespace incipit::compress
