// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_COMPRESS_EDITED_TEXTS_H_
#define INCIPIT_TESTS_COMPRESS_EDITED_TEXTS_H_

#include <random>
#include <string>

namespace incipit::compress {

// Generated messages, as people send them to an assistant, each with a number and an order in it,
// and what becomes of them when they are sent again.

std::string chinese_text(std::mt19937& random);
std::string english_text(std::mt19937& random);

/// Other punctuation, a filler, another word for the same, full-width digits.
std::string harmless_chinese_edit(const std::string& text, std::mt19937& random);
std::string harmless_english_edit(const std::string& text, std::mt19937& random);

/// One digit differs.
std::string changed_number(const std::string& text, std::mt19937& random);
/// A negation, a quantifier or a comparative is another one or missing.
std::string changed_chinese_logic(const std::string& text, std::mt19937& random);
std::string changed_english_logic(const std::string& text, std::mt19937& random);

}  // namespace incipit::compress

#endif  // INCIPIT_TESTS_COMPRESS_EDITED_TEXTS_H_
