// SPDX-License-Identifier: Apache-2.0
#include "compress/compact_lines.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "compress/line_kinds.h"
#include "text/ascii.h"

namespace incipit::compress {
namespace {

using text::is_digit;
using text::is_word;
using text::line_end;
using text::trimmed;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = line_end(text, begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return lines;
}

/// Equal for lines that are alike but for words with digits and white space at their ends.
std::string template_of(std::string_view line) {
  line = trimmed(line);
  std::string masked;
  for (std::size_t at = 0; at < line.size();) {
    std::size_t end = at;
    while (end < line.size() && is_word(line[end])) ++end;
    const std::string_view word = line.substr(at, end - at);
    if (word.empty()) {
      masked += line[at++];
    } else {
      const bool varies = std::any_of(word.begin(), word.end(), is_digit);
      masked.append(varies ? std::string_view("0") : word);
      at = end;
    }
  }
  return masked;
}

/// Appends the lines that stay. Each run of others becomes a marker, where that is shorter.
void append_kept(std::string& out, const std::vector<std::string_view>& lines,
                 const std::vector<bool>& stays, std::string_view what, std::string_view frame,
                 Markers& markers) {
  for (std::size_t i = 0; i < lines.size();) {
    std::size_t end = i, bytes = 0;
    while (end < lines.size() && stays[end] == stays[i]) bytes += lines[end++].size();
    if (!stays[i] && bytes > Markers::kBytes) {
      const std::string marker = markers.next(end - i, what);
      out.append(frame).append(marker).append(frame.empty() ? "" : " |").append("\n");
    } else {
      for (std::size_t line = i; line < end; ++line) out.append(lines[line]);
    }
    i = end;
  }
}

/// A row of a table with runs of spaces as one and short rules.
std::string squeezed(std::string_view row) {
  constexpr std::size_t kRule = 3;
  const bool has_code = row.find('`') != std::string_view::npos;
  if (has_code) return std::string(row);
  const bool is_rule = row.find_first_not_of("|+-=: \t\r\n") == std::string_view::npos;
  std::string out;
  std::size_t run = 0;  // of the same character
  for (std::size_t i = 0; i < row.size(); ++i) {
    run = i > 0 && row[i] == row[i - 1] ? run + 1 : 1;
    const bool is_padding = row[i] == ' ' && run > 1;
    const bool is_long_rule = is_rule && (row[i] == '-' || row[i] == '=') && run > kRule;
    if (!is_padding && !is_long_rule) out += row[i];
  }
  return out;
}

}  // namespace

bool tells_of_error(std::string_view line) {
  constexpr std::array<std::string_view, 9> kSigns = {
      "rror", "ERROR", "xception", "Traceback", "FATAL", "atal:", "FAIL", "ailed", "panic"};
  return std::any_of(kSigns.begin(), kSigns.end(), [&](std::string_view sign) {
    return line.find(sign) != std::string_view::npos;
  });
}

std::string compact_log(std::string_view text, std::size_t most, Markers& markers) {
  constexpr std::size_t kFirst = 2, kFirstErrors = 6;
  const std::vector<std::string_view> lines = lines_of(text);
  if (most == 0 || lines.size() <= most) return std::string(text);
  struct Template {
    std::size_t seen = 0, last = 0;
  };
  std::map<std::string, Template> templates;
  std::vector<const Template*> of_lines(lines.size());
  std::vector<bool> stays(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Template& of_line = templates[template_of(lines[i])];
    of_lines[i] = &of_line;
    stays[i] = of_line.seen < (tells_of_error(lines[i]) ? kFirstErrors : kFirst);
    ++of_line.seen;
    of_line.last = i;
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (of_lines[i]->last == i) stays[i] = true;
  }
  std::string out;
  append_kept(out, lines, stays, "similar lines", "", markers);
  return out;
}

std::string compact_table(std::string_view text, std::size_t most, Markers& markers) {
  const std::size_t end = line_end(text, text.find_last_not_of(" \t\r\n"));
  std::vector<std::string> rows;
  for (const std::string_view line : lines_of(text.substr(0, end))) rows.push_back(squeezed(line));
  const std::vector<std::string_view> lines(rows.begin(), rows.end());
  const std::size_t head_lines = 2;  // names of columns and the rule below, or a rule and names
  std::vector<bool> stays(lines.size(), true);
  if (most > 0 && lines.size() > most + head_lines) {
    const std::size_t tail = most / 3, head = head_lines + most - tail;
    for (std::size_t i = head; i < lines.size() - tail; ++i) stays[i] = false;
  }
  const bool is_framed = lines.front().front() == '|' || lines.front().front() == '+';
  std::string out;
  append_kept(out, lines, stays, "rows", is_framed ? "| " : "", markers);
  return out.append(text.substr(end));
}

}  // namespace incipit::compress
