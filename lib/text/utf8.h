// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_UTF8_H_
#define INCIPIT_TEXT_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace incipit::text {

/// What stands at the front of some bytes.
struct Utf8Unit {
  enum class Kind : std::uint8_t {
    kCharacter,
    kInvalid,     // can never become a character, whatever follows
    kIncomplete,  // a begun character at the end of the bytes
  };
  Kind kind = Kind::kInvalid;
  std::uint8_t bytes = 1;  // of the character, or of the maximal part of one (Unicode 15, 3.9)
  char32_t code = 0;       // of the character
};

/// The first unit of `bytes`, which must not be empty.
Utf8Unit first_unit(std::string_view bytes) noexcept;

bool is_one_character(std::string_view bytes) noexcept;

/// Length of the longest front of `bytes` that is valid UTF-8.
std::size_t valid_front(std::string_view bytes) noexcept;

/// `code` must be a Unicode scalar value.
void append_utf8(std::string& out, char32_t code);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

/// Appends `bytes` with one U+FFFD for each maximal invalid part. Returns how many bytes that were:
/// all but a begun character at the end.
std::size_t append_replaced(std::string& out, std::string_view bytes);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_UTF8_H_
