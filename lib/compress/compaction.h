// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_COMPACTION_H_
#define INCIPIT_COMPRESS_COMPACTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compress/pieces.h"

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
  std::string handle = {};  // under which the whole text can be had; stands in `text` if `lossy`
  bool lossy = false;       // not only white space and the spelling of JSON strings changed
  std::vector<std::string_view> methods = {};  // "json", "log", "table", "head and tail"
};

/// A short name for a text, by its content: 16 hexadecimal digits. Other texts may have the same
/// name; then another `salt` gives another one.
std::string handle_of(std::string_view text, std::uint64_t salt = 0);

/// Shortens JSON, logs, tables and long texts by their structure. What stays is verbatim, but for
/// white space in JSON and tables and needless escapes in JSON; numbers and keys are as they were.
/// A JSON object or array stays one, and a text that is one as a whole parses afterwards. The
/// result is never longer than `text`; if nothing can be gained it is `text`, with no methods.
/// Markers name `handle`; empty: handle_of(text). O(length log lines).
Compacted compact(std::string_view text, const CompactionOptions& options = {},
                  std::string handle = {});
/// Whether that may give anything else than `text`, whose pieces() are known: most texts are prose
/// that is not too long. O(pieces).
bool may_compact(std::string_view text, std::span<const Piece> pieces,
                 const CompactionOptions& options);
/// The same of a text whose pieces() are known.
Compacted compact(std::string_view text, std::span<const Piece> pieces,
                  const CompactionOptions& options, std::string handle);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_COMPACTION_H_
