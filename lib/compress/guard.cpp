// SPDX-License-Identifier: Apache-2.0
#include "compress/guard.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "compress/guard_words.h"
#include "text/ascii.h"
#include "text/utf8.h"

namespace incipit::compress {
namespace {

using text::is_ascii;
using text::is_digit;
using text::is_letter;
using text::is_lower;
using text::is_upper;
using text::is_word;
using text::to_lower;

// Filters that let most words and characters pass by the tables.

constexpr std::size_t kWordMarks = 4096;
/// By its length, the first two letters and the last one, for a word of at least two.
constexpr std::size_t mark_of(std::string_view word) {
  std::size_t mark = word.size();
  for (const char c : {word[0], word[1], word.back()})
    mark = mark * 31 + static_cast<unsigned char>(c);
  return mark % kWordMarks;
}
/// Whether a word in tables has such a mark.
constexpr auto kTableMarks = [] {
  std::array<bool, kWordMarks> marks = {};
  for (const std::string_view word : kLogicWords) marks[mark_of(word)] = true;
  for (const std::string_view word : kNumberWords) marks[mark_of(word)] = true;
  return marks;
}();

bool may_be_in_tables(std::string_view lower) {
  return lower.size() >= 2 && kTableMarks[mark_of(lower)];
}

constexpr std::size_t kFronts = 4096;
constexpr std::size_t front_of(char second, char third) {
  return (static_cast<std::size_t>(static_cast<unsigned char>(second) & 0x3F) << 6) |
         (static_cast<std::size_t>(static_cast<unsigned char>(third) & 0x3F));
}
/// By the second and third byte of a character: whether entries of the tables begin with such.
constexpr auto kTableFronts = [] {
  std::array<bool, kFronts> fronts = {};
  for (const std::string_view word : kHarmlessChinese) fronts[front_of(word[1], word[2])] = true;
  for (const std::string_view word : kLogicChinese) fronts[front_of(word[1], word[2])] = true;
  return fronts;
}();

template <class Table>
bool holds(const Table& table, std::string_view word) {
  return std::binary_search(table.begin(), table.end(), word);
}

/// Length of the longest entry of `table` that `text` begins with; 0: none.
template <class Table>
std::size_t longest_front(const Table& table, std::string_view text, std::size_t first_bytes) {
  const std::string_view first = text.substr(0, first_bytes);
  std::size_t longest = 0;
  for (auto entry = std::lower_bound(table.begin(), table.end(), first);
       entry != table.end() && entry->substr(0, first_bytes) == first; ++entry) {
    if (text.substr(0, entry->size()) == *entry) longest = std::max(longest, entry->size());
  }
  return longest;
}

/// The digit that a character beyond ASCII stands for: full-width, Arabic, Devanagari; or -1.
int digit_value(char32_t code) {
  for (const char32_t zero : {U'\xFF10', U'\x0660', U'\x06F0', U'\x0966'}) {
    if (code >= zero && code < zero + 10) return static_cast<int>(code - zero);
  }
  return -1;
}

constexpr std::u32string_view kHanNumerals =
    U"〇一七三两九二五亿仟佰億兆八六兩十千半四壹伍贰叁肆陆柒捌玖拾百零萬万点";
constexpr auto kNumeralLowBits = [] {
  std::array<bool, 256> bits = {};
  for (const char32_t numeral : kHanNumerals) bits[numeral & 0xFF] = true;
  return bits;
}();

bool is_han_numeral(char32_t code) {
  return kNumeralLowBits[code & 0xFF] && kHanNumerals.find(code) != std::u32string_view::npos;
}

/// What may stand in a stretch that is looked at as a whole: a word, a number, a path.
constexpr auto kChunkBytes = [] {
  std::array<bool, 256> bytes = {};
  for (std::size_t c = '!'; c < 0x7F; ++c) bytes[c] = true;
  for (const char c : std::string_view("\"()[]{}<>;!|*`,"))
    bytes[static_cast<std::size_t>(c)] = false;
  return bytes;
}();
bool is_chunk(char c) { return kChunkBytes[static_cast<unsigned char>(c)]; }

/// Letters of which at most the first is a capital: most chunks are such words.
bool is_plain_word(std::string_view chunk) {
  return is_letter(chunk[0]) && std::all_of(chunk.begin() + 1, chunk.end(), is_lower);
}

class Reader {
 public:
  using Visit = base::FunctionRef<void(CriticalKind, std::string_view, std::size_t)>;
  Reader(std::string_view text, Visit visit) : text_(text), visit_(visit) {}

  void read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (!is_ascii(c)) {
        read_beyond_ascii();
      } else if (is_chunk(c)) {
        read_chunk();
      } else {
        begins_sentence_ = begins_sentence_ || c == '\n' || c == '!' || c == '*' || c == '"';
        ++at_;
      }
    }
  }

 private:
  void visit(CriticalKind kind, std::string_view token, std::size_t position) {
    visit_(kind, token, position);
    begins_sentence_ = false;
  }

  // ASCII ------------------------------------------------------------------------------------

  void read_chunk() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_chunk(text_[at_]) || is_comma_in_number(at_))) ++at_;
    std::string_view chunk = text_.substr(begin, at_ - begin);
    if (is_plain_word(chunk)) return read_word(chunk, begin);
    if (chunk.find("://") != std::string_view::npos || chunk.substr(0, 4) == "www.") {
      constexpr std::string_view kMore = "()[]{}!;,*|";
      while (at_ < text_.size() &&
             (is_chunk(text_[at_]) || kMore.find(text_[at_]) != std::string_view::npos)) {
        ++at_;
      }
      chunk = text_.substr(begin, at_ - begin);
    }
    const std::size_t last = chunk.find_last_not_of(".,:;!?'-&=+)]}*|");
    const bool ends_sentence =
        chunk.find_first_of(".:?!", last == std::string_view::npos ? 0 : last + 1) !=
        std::string_view::npos;
    chunk = chunk.substr(0, last == std::string_view::npos ? 0 : last + 1);
    const std::size_t front = std::min(chunk.find_first_not_of("':=&?"), chunk.size());
    classify(chunk.substr(front), begin + front);
    begins_sentence_ = begins_sentence_ || ends_sentence;
  }

  bool is_comma_in_number(std::size_t at) const {
    return text_[at] == ',' && at > 0 && is_digit(text_[at - 1]) && at + 1 < text_.size() &&
           is_digit(text_[at + 1]);
  }

  void classify(std::string_view chunk, std::size_t position) {
    if (chunk.empty()) return;
    if (is_plain_word(chunk)) return read_word(chunk, position);
    if (is_path(chunk)) return visit(CriticalKind::kPath, chunk, position);
    if (is_number(chunk)) return visit_number(chunk, position);
    if (is_identifier(chunk)) return visit(CriticalKind::kIdentifier, chunk, position);
    // Words, some of them joined by hyphens.
    for (std::size_t begin = 0; begin < chunk.size();) {
      if (!is_letter(chunk[begin])) {
        ++begin;
        continue;
      }
      std::size_t end = begin;
      while (end < chunk.size() && (is_letter(chunk[end]) || chunk[end] == '\'')) ++end;
      read_word(chunk.substr(begin, end - begin), position + begin);
      begin = end;
    }
  }

  static bool is_path(std::string_view chunk) {
    const auto joins_words = [&](char mark) {
      const std::size_t at = chunk.find(mark, 1);
      return at != std::string_view::npos && at + 1 < chunk.size() && is_word(chunk[at - 1]) &&
             is_word(chunk[at + 1]) && !is_digit(chunk[at - 1]);
    };
    const bool rooted =
        chunk.size() > 1 && (chunk[0] == '/' || chunk[0] == '~' || chunk[0] == '\\');
    return rooted || chunk.substr(0, 2) == "./" || chunk.substr(0, 3) == "../" ||
           chunk.find(":\\") != std::string_view::npos ||
           chunk.find("://") != std::string_view::npos || joins_words('/') || joins_words('\\') ||
           joins_words('@');
  }

  static bool is_number(std::string_view chunk) {
    const std::size_t first = chunk.find_first_not_of("+-$#~.");
    return first != std::string_view::npos && is_digit(chunk[first]);
  }

  /// Digit grouping does not count: 1,234 is 1234.
  void visit_number(std::string_view chunk, std::size_t position) {
    number_.clear();
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const bool groups = chunk[i] == ',' && i > 0 && i + 3 < chunk.size() &&
                          is_digit(chunk[i + 1]) && is_digit(chunk[i + 2]) &&
                          is_digit(chunk[i + 3]);
      if (!groups) number_ += chunk[i];
    }
    visit(CriticalKind::kNumber, number_, position);
  }

  static bool is_identifier(std::string_view chunk) {
    const bool is_flag = chunk.size() > 1 && chunk[0] == '-' &&
                         (is_letter(chunk[1]) || (chunk.size() > 2 && chunk[1] == '-'));
    if (is_flag) return true;
    std::size_t capitals = 0;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const char c = chunk[i];
      if (is_digit(c) || std::string_view("_=&%$#@+^\\/~").find(c) != std::string_view::npos) {
        return true;
      }
      if (i > 0 && (c == '.' || c == ':')) return true;
      if (i > 0 && is_upper(c) && is_lower(chunk[i - 1])) return true;
      if (is_upper(c)) ++capitals;
    }
    if (capitals < 2 || capitals != chunk.size()) return false;
    std::string word(chunk);
    std::transform(word.begin(), word.end(), word.begin(), to_lower);
    return !holds(kLogicWords, word) && !holds(kNumberWords, word);
  }

  void read_word(std::string_view word, std::size_t position) {
    while (!word.empty() && word.back() == '\'') word.remove_suffix(1);
    const bool is_capital = !word.empty() && is_upper(word[0]);
    lower_.assign(word);
    std::transform(lower_.begin(), lower_.end(), lower_.begin(), to_lower);
    if (lower_ == "cannot") {
      visit(CriticalKind::kLogic, "can", position);
      return visit(CriticalKind::kLogic, "not", position);
    }
    const bool negated = lower_.size() > 3 && lower_.compare(lower_.size() - 3, 3, "n't") == 0;
    if (negated) {
      lower_.resize(lower_.size() - 3);
      if (lower_ == "ca") lower_ = "can";
      if (lower_ == "wo") lower_ = "will";
      if (lower_ == "sha") lower_ = "shall";
    }
    const bool may_be_known = may_be_in_tables(lower_);
    if (may_be_known && holds(kLogicWords, lower_)) {
      visit(CriticalKind::kLogic, lower_, position);
    } else if (may_be_known && holds(kNumberWords, lower_)) {
      visit(CriticalKind::kNumber, lower_, position);
    } else if (is_capital && !negated && is_name(word)) {
      visit(CriticalKind::kName, word, position);
    }
    if (negated) visit(CriticalKind::kLogic, "not", position);
    begins_sentence_ = false;
  }

  /// Of a capitalised word that is also in lower_.
  bool is_name(std::string_view word) const {
    const std::size_t quote = word.find('\'');
    const std::string_view stem = std::string_view(lower_).substr(0, quote);
    if (stem == "i") return false;  // and I'm, I'll
    return !begins_sentence_ || !holds(kStarters, stem);
  }

  // Beyond ASCII -------------------------------------------------------------------------------

  void read_beyond_ascii() {
    const std::string_view rest = text_.substr(at_);
    const text::Utf8Unit unit = text::first_unit(rest);
    if (unit.kind != text::Utf8Unit::Kind::kCharacter) {
      at_ += unit.bytes;
      return;
    }
    if (digit_value(unit.code) >= 0) return read_digits();
    constexpr std::size_t kHanBytes = 3;
    const bool may_be_in_table =
        unit.bytes == kHanBytes && kTableFronts[front_of(rest[1], rest[2])];
    if (!may_be_in_table && unit.bytes == kHanBytes && !is_han_numeral(unit.code)) {
      return pass(unit);
    }
    if (const std::size_t size = longest_front(kHarmlessChinese, rest, unit.bytes)) {
      at_ += size;
      return;
    }
    // A numeral may continue where 点 or 半 alone are none.
    if (is_han_numeral(unit.code) && unit.code != U'点' && unit.code != U'半') {
      return read_han_numeral();
    }
    if (const std::size_t size = longest_front(kLogicChinese, rest, unit.bytes)) {
      visit(CriticalKind::kLogic, rest.substr(0, size), at_);
      at_ += size;
      return;
    }
    pass(unit);
  }

  void pass(const text::Utf8Unit& unit) {
    begins_sentence_ = begins_sentence_ || unit.code == U'。' || unit.code == U'！' ||
                       unit.code == U'？' || unit.code == U'“';
    at_ += unit.bytes;
  }

  void read_digits() {
    const std::size_t begin = at_;
    number_.clear();
    while (at_ < text_.size()) {
      const text::Utf8Unit unit = text::first_unit(text_.substr(at_));
      const int digit = digit_value(unit.code);
      if (digit >= 0) {
        number_ += static_cast<char>('0' + digit);
      } else if (unit.bytes == 1 && is_digit(text_[at_])) {
        number_ += text_[at_];
      } else if (unit.code == U'．' || unit.code == U'.' || unit.code == U'：' ||
                 unit.code == U'％') {
        number_ += unit.code == U'：' ? ':' : unit.code == U'％' ? '%' : '.';
      } else if (unit.code != U'，' || !is_digit_at(at_ + unit.bytes)) {
        break;
      }
      at_ += unit.bytes;
    }
    while (number_.back() == '.' || number_.back() == ':') number_.pop_back();
    visit(CriticalKind::kNumber, number_, begin);
  }

  bool is_digit_at(std::size_t at) const {
    return at < text_.size() && digit_value(text::first_unit(text_.substr(at)).code) >= 0;
  }

  void read_han_numeral() {
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      const text::Utf8Unit unit = text::first_unit(text_.substr(at_));
      if (unit.kind != text::Utf8Unit::Kind::kCharacter || !is_han_numeral(unit.code)) break;
      at_ += unit.bytes;
    }
    visit(CriticalKind::kNumber, text_.substr(begin, at_ - begin), begin);
  }

  std::string_view text_;
  Visit visit_;
  std::size_t at_ = 0;
  bool begins_sentence_ = true;
  std::string number_, lower_;
};

}  // namespace

void for_each_critical(
    std::string_view text,
    base::FunctionRef<void(CriticalKind kind, std::string_view token, std::size_t position)>
        visit) {
  Reader(text, visit).read();
}

std::string critical_tokens(std::string_view text) {
  std::string tokens;
  const auto append = [&](CriticalKind kind, std::string_view token, std::size_t) {
    tokens += static_cast<char>(kind);
    tokens += token;
    tokens += '\n';  // in no token
  };
  for_each_critical(text, append);
  return tokens;
}

}  // namespace incipit::compress
