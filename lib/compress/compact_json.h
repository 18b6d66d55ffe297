// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_COMPACT_JSON_H_
#define INCIPIT_COMPRESS_COMPACT_JSON_H_

#include <string>
#include <string_view>

#include "compress/compaction.h"
#include "compress/cut.h"
#include "compress/json_scan.h"

namespace incipit::compress {

/// Writes a value that `scanner` has found in `text` without white space, with characters in the
/// place of \u escapes, and with a marker, a string, for what long arrays and strings lose. Keeps
/// the spelling of numbers. The result is JSON.
std::string compact_json(std::string_view text, const JsonScanner& scanner,
                         const CompactionOptions& options, Markers& markers);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_COMPACT_JSON_H_
