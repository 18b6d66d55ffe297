// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_COMPACTION_H_
#define INCIPIT_COMPRESS_COMPACTION_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::compress {

/// What counts as long, and how much of it stays. 0 for a limit: nothing is too long.
struct CompactionOptions {
  std::size_t array_items = 20;     // a JSON array with more keeps its first and last ones
  std::size_t string_bytes = 1000;  // a JSON string with more keeps its front and its end
  std::size_t log_lines = 8;        // a log with more shows lines of one template only a few times
  std::size_t table_rows = 24;      // a table with more keeps its first and last rows
  std::size_t total_bytes = 8000;   // a text that is still longer keeps its front and its end
};

/// A text in a shorter form.
struct Compacted {
  std::string text = {};
  std::string handle = {};  // handle_of() the text that was given; stands in `text` if `lossy`
  bool lossy = false;       // not only white space and the spelling of JSON strings changed
  std::vector<std::string_view> methods = {};  // "json", "log", "table", "head and tail"
};

/// A short name for a text, by its content: 16 hexadecimal digits.
std::string handle_of(std::string_view text);

/// Shortens JSON, logs, tables and long texts by their structure. What stays is verbatim, but for
/// white space in JSON and tables and needless escapes in JSON; numbers and keys are as they were.
/// A JSON object or array stays one, and a text that is one as a whole parses afterwards. The
/// result is never longer than `text`; if nothing can be gained it is `text`, with no methods.
/// O(length).
Compacted compact(std::string_view text, const CompactionOptions& options = {});

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_COMPACTION_H_
