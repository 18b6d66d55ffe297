// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_REQUEST_H_
#define INCIPIT_COMPRESS_REQUEST_H_

#include <string_view>

namespace incipit::compress {

/// Whether a turn asks for something that was said before, as far as English and Chinese show it: a
/// question mark of any script, a sentence that begins as orders and questions do ("Remind me...",
/// "Which..."), or a phrase that points back ("I forgot", 帮我). What it misses asks by its content
/// alone. O(length).
bool is_request(std::string_view text);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_REQUEST_H_
