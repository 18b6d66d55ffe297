// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_BYTE_ALPHABET_H_
#define INCIPIT_TEXT_BYTE_ALPHABET_H_

#include <optional>
#include <string>
#include <string_view>

namespace incipit::text {

/// Vocabulary files write bytes as printable characters: GPT-2's alphabet, where a visible Latin-1
/// character stands for its own code and U+0100, U+0101... for the other bytes in order.
/// Returns the bytes that `text` stands for; nullopt where a character is not of the alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view text);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_BYTE_ALPHABET_H_
