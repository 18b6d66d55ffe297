// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_SALIENCE_H_
#define INCIPIT_COMPRESS_SALIENCE_H_

#include <cstdint>
#include <string_view>

#include "retrieve/bm25.h"

namespace incipit::compress {

/// How much a piece of text tells, whatever will be asked: the sum of its terms' idf by the root of
/// their number, a quarter more per name, three tenths more per number, half of it for a question.
/// In 1/65536. `index` holds the conversation. O(length).
std::uint64_t salience(std::string_view piece, const retrieve::Bm25& index);

/// The last character but white space and closing marks is a question mark of any script.
bool ends_in_question(std::string_view text) noexcept;

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_SALIENCE_H_
