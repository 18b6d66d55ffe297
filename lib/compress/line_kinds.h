// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_LINE_KINDS_H_
#define INCIPIT_COMPRESS_LINE_KINDS_H_

#include <cstddef>
#include <string_view>

namespace incipit::compress {

/// Whether a line begins with a time stamp or names a log level in capitals near its front.
bool is_log_line(std::string_view line);

/// The end of the table whose first line is at `begin`, or `begin` where there is none: a Markdown
/// table, or two and more lines with frames of `|`, `+` and `-`.
std::size_t table_end(std::string_view text, std::size_t begin);

/// `|---|:-:|`, the second line of a Markdown table.
bool is_table_delimiter(std::string_view line);

/// A line of at least three of `- = * _ ~ #`, all the same but for spaces.
bool is_separator(std::string_view line);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_LINE_KINDS_H_
