// SPDX-License-Identifier: Apache-2.0
#include "sampler/number.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "sampler/invisible.h"
#include "text/ascii.h"
#include "text/utf8.h"

namespace incipit::sampler {
namespace {

using text::is_digit;
using text::is_letter;
using text::is_space;
using text::to_lower;
using text::trimmed;

__extension__ using Wide = unsigned __int128;

constexpr char kGroup = '\'';    // stands for each separator but the comma
constexpr char kCurrency = '$';  // stands for each currency sign
constexpr char kStop = '\n';     // stands for full stops that are no decimal points
constexpr int kMaxExponent = 38;

/// The ASCII character that means the same in a number; 0: none.
char ascii_of(char32_t code) {
  if (code < 0x80) return static_cast<char>(code);
  if (code >= 0xFF01 && code <= 0xFF5E) return static_cast<char>(code - 0xFEE0);  // full width
  switch (code) {
    case 0x2010:  // hyphens, en dash, minus signs
    case 0x2011:
    case 0x2012:
    case 0x2013:
    case 0x2212:
    case 0xFE63:
      return '-';
    case 0x00A0:  // no-break space, thin spaces, apostrophe
    case 0x2009:
    case 0x202F:
    case 0x2019:
      return kGroup;
    case 0x2026:  // ellipsis, ideographic full stops
    case 0x3002:
    case 0xFF61:
      return kStop;
    case 0x2044:  // fraction slash
    case 0x2215:
      return '/';
    case 0x00A2:  // cent, pound, yen
    case 0x00A3:
    case 0x00A5:
      return kCurrency;
    default:
      return code >= 0x20A0 && code <= 0x20C0 ? kCurrency : '\0';
  }
}

/// What a text looks like to the parsers below: one byte per character, 0 for those that have
/// nothing to do with numbers. Invisible ones, LaTeX's spaces and escapes are gone.
std::string simplified(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    constexpr std::array<std::string_view, 4> kLatexSpaces = {"\\,", "\\!", "\\;", "\\ "};
    if (text.substr(0, 3) == "{,}") {
      out += ',';
      text.remove_prefix(3);
      continue;
    }
    if (text[0] == '\\' && std::find(kLatexSpaces.begin(), kLatexSpaces.end(), text.substr(0, 2)) !=
                               kLatexSpaces.end()) {
      text.remove_prefix(2);
      continue;
    }
    if (text.substr(0, 2) == "\\$" || text.substr(0, 2) == "\\%") text.remove_prefix(1);
    const text::Utf8Unit unit = text::first_unit(text);
    text.remove_prefix(unit.bytes);
    const bool whole = unit.kind == text::Utf8Unit::Kind::kCharacter;
    if (whole && is_invisible(unit.code)) continue;
    out += whole ? ascii_of(unit.code) : '\0';
  }
  return out;
}

bool is_separator(char c) { return c == ',' || c == kGroup || c == '_'; }

char at(std::string_view text, std::size_t i) { return i < text.size() ? text[i] : '\0'; }

std::size_t end_of_digits(std::string_view text, std::size_t begin) {
  while (is_digit(at(text, begin))) ++begin;
  return begin;
}

/// End of the whole part that begins with a digit at `begin`: 1234, 1,234, 12'345, 1,00,000.
std::size_t end_of_whole(std::string_view text, std::size_t begin) {
  std::size_t end = end_of_digits(text, begin);
  if (end - begin > 3) return end;
  const char separator = at(text, end);
  // Groups of three, or as India writes them: of two with three at the end.
  std::size_t accepted = end;
  while (is_separator(separator) && at(text, end) == separator) {
    const std::size_t next = end_of_digits(text, end + 1);
    const std::size_t digits = next - end - 1;
    if (digits != 2 && digits != 3) break;
    end = next;
    if (digits == 3) accepted = end;
  }
  return accepted;
}

/// End of the decimal number at `begin`; `begin` where there is none.
std::size_t end_of_decimal(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  if (is_digit(at(text, begin))) end = end_of_whole(text, begin);
  if (at(text, end) == '.' && is_digit(at(text, end + 1))) end = end_of_digits(text, end + 1);
  if (end == begin) return begin;
  if (to_lower(at(text, end)) == 'e') {
    const std::size_t digits = end + (at(text, end + 1) == '-' || at(text, end + 1) == '+' ? 2 : 1);
    const std::size_t behind = end_of_digits(text, digits);
    if (behind > digits && !is_letter(at(text, behind))) end = behind;
  }
  return end;
}

struct Fraction {
  Wide numerator = 0, denominator = 1;
};

bool multiply(Wide& value, Wide factor) { return !__builtin_mul_overflow(value, factor, &value); }

Wide gcd(Wide a, Wide b) {
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

void reduce(Fraction& value) {
  const Wide divisor = gcd(value.numerator, value.denominator);  // the denominator is not 0
  value.numerator /= divisor;
  value.denominator /= divisor;
}

/// The value of a text that end_of_decimal() has found.
std::optional<Fraction> decimal_value(std::string_view text) {
  Fraction value;
  bool decimals = false;
  // Zeros that end the decimals change nothing, and would only take room.
  std::size_t mantissa = text.size();
  for (std::size_t j = 0; j < text.size() && mantissa == text.size(); ++j) {
    if (is_letter(text[j])) mantissa = j;
  }
  std::size_t used = mantissa;
  if (text.substr(0, mantissa).find('.') != std::string_view::npos) {
    while (text[used - 1] == '0') --used;
  }
  for (std::size_t i = 0; i < used; ++i) {
    if (text[i] == '.') decimals = true;
    if (!is_digit(text[i])) continue;
    if (!multiply(value.numerator, 10) ||
        __builtin_add_overflow(value.numerator, static_cast<Wide>(text[i] - '0'),
                               &value.numerator) ||
        (decimals && !multiply(value.denominator, 10))) {
      return std::nullopt;
    }
  }
  if (mantissa == text.size()) return value;
  const bool negative = text[mantissa + 1] == '-';
  int exponent = 0;
  for (const char c : text.substr(mantissa + 1)) {
    if (is_digit(c)) exponent = std::min(exponent * 10 + (c - '0'), kMaxExponent + 1);
  }
  if (exponent > kMaxExponent) return std::nullopt;
  reduce(value);
  for (; exponent > 0; --exponent) {
    // One common factor less leaves room for the next power.
    if (!multiply(negative ? value.denominator : value.numerator, 10)) return std::nullopt;
    reduce(value);
  }
  return value;
}

/// Takes a decimal number off the front.
std::optional<Fraction> take_decimal(std::string_view& text) {
  const std::size_t end = end_of_decimal(text, 0);
  if (end == 0) return std::nullopt;
  const auto value = decimal_value(text.substr(0, end));
  text.remove_prefix(end);
  return value;
}

/// Takes \frac's argument, {12} or 3, off the front.
std::optional<Fraction> take_argument(std::string_view& text) {
  if (at(text, 0) != '{') {
    std::string_view digit = text.substr(0, 1);
    text.remove_prefix(digit.size());
    return take_decimal(digit);
  }
  text.remove_prefix(1);
  const auto value = take_decimal(text);
  if (at(text, 0) != '}') return std::nullopt;
  text.remove_prefix(1);
  return value;
}

bool take(std::string_view& text, std::string_view front) {
  if (text.substr(0, front.size()) != front) return false;
  text.remove_prefix(front.size());
  return true;
}

/// The quotient of two decimals in their lowest terms.
std::optional<Fraction> quotient(std::optional<Fraction> a, std::optional<Fraction> b) {
  if (!a || !b || b->numerator == 0) return std::nullopt;
  reduce(*a);
  reduce(*b);
  // Crosswise, so that 2.5/1.5 needs no more room than its result.
  Fraction left{a->numerator, b->numerator}, right{b->denominator, a->denominator};
  reduce(left);
  reduce(right);
  if (!multiply(left.numerator, right.numerator) ||
      !multiply(left.denominator, right.denominator)) {
    return std::nullopt;
  }
  return left;
}

std::optional<Fraction> take_value(std::string_view& text) {
  if (take(text, "\\frac") || take(text, "\\dfrac") || take(text, "\\tfrac")) {
    const auto numerator = take_argument(text);
    const auto denominator = take_argument(text);
    return quotient(numerator, denominator);
  }
  auto value = take_decimal(text);
  if (value && take(text, "/")) value = quotient(value, take_decimal(text));
  return value;
}

std::string digits_of(Wide value) {
  std::string out;
  do {
    out += static_cast<char>('0' + static_cast<int>(value % 10));
    value /= 10;
  } while (value != 0);
  std::reverse(out.begin(), out.end());
  return out;
}

/// Where the sign of a number at `begin` is, or `begin`: a minus behind an operand subtracts.
std::size_t sign_before(std::string_view text, std::size_t begin) {
  std::size_t sign = begin;
  if (sign > 0 && text[sign - 1] == kCurrency) --sign;
  if (sign == 0 || (text[sign - 1] != '-' && text[sign - 1] != '+')) return begin;
  --sign;
  const char before = sign == 0 ? '\0' : text[sign - 1];
  return is_digit(before) || is_letter(before) || before == ')' || before == '-' ? begin : sign;
}

/// One of the characters by which numbers are joined to something that is none: 1.2.3, 1/2/2030.
bool goes_on(std::string_view text, std::size_t end) {
  return (at(text, end) == '.' || at(text, end) == '/') && is_digit(at(text, end + 1));
}

}  // namespace

std::optional<std::string> fraction_of(std::string_view answer) {
  const std::string simple = simplified(answer);
  const auto is_around = [](char c) {
    return is_space(c) || c == kCurrency || c == '*' || c == '`' || c == '"' || c == kGroup;
  };
  std::string_view text = trimmed(simple, is_around);
  while (!text.empty() && (text.back() == '.' || text.back() == '%' || is_around(text.back()))) {
    text.remove_suffix(1);
  }
  const bool negative = at(text, 0) == '-';
  if (negative || at(text, 0) == '+') text.remove_prefix(1);
  text = trimmed(text, [](char c) { return is_space(c) || c == kCurrency; });
  auto value = take_value(text);
  if (!value || !text.empty()) return std::nullopt;
  reduce(*value);
  std::string out = negative && value->numerator != 0 ? "-" : "";
  out += digits_of(value->numerator);
  if (value->denominator != 1) out += '/' + digits_of(value->denominator);
  return out;
}

std::optional<std::string> last_number_of(std::string_view source) {
  const std::string text = simplified(source);
  std::optional<std::string> found;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = end_of_decimal(text, i);
    if (end == i) {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    bool is_number = begin == 0 || (!is_letter(text[begin - 1]) && text[begin - 1] != '_');
    if (at(text, end) == '/' && is_digit(at(text, end + 1))) end = end_of_decimal(text, end + 1);
    while (goes_on(text, end)) {
      is_number = false;
      end = end_of_digits(text, end + 1);
    }
    i = end;
    if (!is_number) continue;
    const std::size_t sign = sign_before(text, begin);
    found = sign < begin ? text.substr(sign, 1) : std::string();
    found->append(text, begin, end - begin);
    if (at(text, end) == '%') *found += '%';
  }
  return found;
}

}  // namespace incipit::sampler
