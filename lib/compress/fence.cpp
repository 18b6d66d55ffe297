// SPDX-License-Identifier: Apache-2.0
#include "compress/fence.h"

#include <algorithm>

#include "text/ascii.h"

namespace incipit::compress {
namespace {

using text::is_blank;
using text::is_digit;
using text::line_end;
using text::trimmed;

constexpr std::size_t kMaxIndent = 3;  // more makes an indented code block of a line

/// Takes the white space at the front away and returns how many columns that was.
std::size_t take_indent(std::string_view& line) {
  constexpr std::size_t kTab = 4;
  std::size_t columns = 0;
  while (!line.empty() && is_blank(line.front())) {
    columns = line.front() == '\t' ? (columns / kTab + 1) * kTab : columns + 1;
    line.remove_prefix(1);
  }
  return columns;
}

/// Takes up to `most` marks of block quotes away and returns how many that were.
std::size_t take_quotes(std::string_view& line, std::size_t most) {
  std::size_t quotes = 0;
  while (quotes < most) {
    std::string_view rest = line;
    if (take_indent(rest) > kMaxIndent || rest.empty() || rest.front() != '>') break;
    rest.remove_prefix(1);
    if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    line = rest;
    ++quotes;
  }
  return quotes;
}

/// Columns of the mark of a list item and of the space behind it; 0 where there is none.
std::size_t item_mark(std::string_view line) {
  constexpr std::size_t kMaxDigits = 9, kMaxSpace = 4;
  std::size_t size = 0;
  while (size < line.size() && size < kMaxDigits && is_digit(line[size])) ++size;
  if (size == line.size()) return 0;
  const bool is_mark = size > 0 ? line[size] == '.' || line[size] == ')'
                                : line[0] == '-' || line[0] == '*' || line[0] == '+';
  if (!is_mark) return 0;
  line.remove_prefix(++size);
  const std::size_t space = take_indent(line);
  if (space == 0) return 0;
  return size + (space <= kMaxSpace ? space : 1);
}

std::size_t run_of(std::string_view line, char mark) {
  return std::min(line.find_first_not_of(mark), line.size());
}

}  // namespace

std::optional<FenceFinder::Fence> FenceFinder::opened_by(std::string_view line) {
  Fence fence;
  fence.quotes = take_quotes(line, std::string_view::npos);
  std::size_t column = take_indent(line);
  if (trimmed(line).empty()) return std::nullopt;
  while (!items_.empty() && items_.back() > column) items_.pop_back();
  while (const std::size_t mark = item_mark(line)) {
    line.remove_prefix(std::min(mark, line.size()));
    column += mark;
    items_.push_back(column);
    column += take_indent(line);
  }
  fence.column = items_.empty() ? 0 : items_.back();
  if (column - fence.column > kMaxIndent || line.empty()) return std::nullopt;

  constexpr std::size_t kMinLength = 3;
  fence.mark = line.front();
  if (fence.mark != '`' && fence.mark != '~') return std::nullopt;
  fence.length = run_of(line, fence.mark);
  if (fence.length < kMinLength) return std::nullopt;
  const bool is_inline_code =
      fence.mark == '`' && line.find('`', fence.length) != std::string_view::npos;
  if (is_inline_code) return std::nullopt;
  return fence;
}

std::optional<std::size_t> FenceFinder::block_end(std::size_t begin) {
  std::size_t at = line_end(text_, begin);
  const auto fence = opened_by(text_.substr(begin, at - begin));
  if (!fence) return std::nullopt;
  while (at < text_.size()) {
    const std::size_t end = line_end(text_, at);
    std::string_view line = text_.substr(at, end - at);
    if (take_quotes(line, fence->quotes) < fence->quotes) return at;
    const std::size_t column = take_indent(line);
    line = trimmed(line);
    if (column < fence->column && !line.empty()) return at;
    const std::size_t run = run_of(line, fence->mark);
    if (run == line.size() && run >= fence->length && column <= fence->column + kMaxIndent) {
      return end;
    }
    at = end;
  }
  return at;
}

}  // namespace incipit::compress
