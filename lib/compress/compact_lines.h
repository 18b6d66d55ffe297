// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_COMPACT_LINES_H_
#define INCIPIT_COMPRESS_COMPACT_LINES_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "compress/cut.h"

namespace incipit::compress {

/// Lines of a log: of those that are alike but for words with digits, the first ones and the last
/// stay, more of those that tell of errors. A log of up to `most` lines stays as it is.
std::string compact_log(std::string_view text, std::size_t most, Markers& markers);

/// A table without padding, with the first and the last ones of more than `most` rows (0: all).
std::string compact_table(std::string_view text, std::size_t most, Markers& markers);

/// Whether a line says that something went wrong.
bool tells_of_error(std::string_view line);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_COMPACT_LINES_H_
