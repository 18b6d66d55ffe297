// SPDX-License-Identifier: Apache-2.0
#include "compress/guard.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "compress/chains.h"
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

constexpr std::string_view kCannot = "cannot";

// What is known of a word of English.
constexpr std::uint8_t kIsLogic = 1, kIsNumber = 2;
struct KnownWord {
  std::string_view text = {};
  std::uint8_t is = 0;
};
constexpr auto kKnownWords = [] {
  std::array<KnownWord, kLogicWords.size() + kNumberWords.size() + 1> words = {};
  std::size_t count = 0;
  for (const std::string_view word : kLogicWords) words[count++] = {word, kIsLogic};
  for (const std::string_view word : kNumberWords) words[count++] = {word, kIsNumber};
  words[count] = {kCannot, 0};  // is looked at more closely
  return words;
}();

/// By its length, the first two letters and the last one, for a word of at least one.
constexpr std::size_t mark_of(std::string_view word) {
  std::size_t mark = word.size();
  for (const char c : {word[0], word[word.size() > 1 ? 1 : 0], word.back()}) {
    mark = mark * 31 + static_cast<unsigned char>(c);
  }
  return mark;
}
constexpr auto kWordChains =
    chains_of<4096>(kKnownWords, [](const KnownWord& word) { return mark_of(word.text); });
constexpr auto kStarterChains = chains_of<4096>(kStarters, mark_of);

/// All that is known of a word in lower case.
std::uint8_t known(std::string_view lower) {
  std::uint8_t is = 0;
  if (lower.empty()) return is;
  kWordChains.for_each(mark_of(lower), [&](std::size_t i) {
    if (kKnownWords[i].text == lower) is |= kKnownWords[i].is;
  });
  return is;
}

bool is_starter(std::string_view lower) {
  bool is = false;
  if (lower.empty()) return is;
  kStarterChains.for_each(mark_of(lower), [&](std::size_t i) { is = is || kStarters[i] == lower; });
  return is;
}

/// By the second and third byte of a character.
constexpr std::size_t front_of(char second, char third) {
  return (static_cast<std::size_t>(static_cast<unsigned char>(second) & 0x3F) << 6) |
         (static_cast<std::size_t>(static_cast<unsigned char>(third) & 0x3F));
}
constexpr std::size_t kFronts = 4096;
constexpr auto front_of_word = [](std::string_view word) { return front_of(word[1], word[2]); };
constexpr auto kHarmlessChains = chains_of<kFronts>(kHarmlessChinese, front_of_word);
constexpr auto kLogicChains = chains_of<kFronts>(kLogicChinese, front_of_word);

/// Length of the longest entry of `table` that `text` begins with; 0: none.
template <class Table, class TableChains>
std::size_t longest_front(const Table& table, const TableChains& chains, std::string_view text) {
  std::size_t longest = 0;
  chains.for_each(front_of(text[1], text[2]), [&](std::size_t i) {
    if (text.starts_with(table[i])) longest = std::max(longest, table[i].size());
  });
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

/// The end of the letters at `begin` of which at most the first is a capital; `begin`: there are
/// none.
std::size_t plain_word_end(std::string_view text, std::size_t begin) {
  if (!is_letter(text[begin])) return begin;
  std::size_t end = begin + 1;
  while (end < text.size() && is_lower(text[end])) ++end;
  return end;
}
bool is_plain_word(std::string_view chunk) { return plain_word_end(chunk, 0) == chunk.size(); }

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
    if (take_plain_word()) return;
    while (at_ < text_.size() && (is_chunk(text_[at_]) || is_comma_in_number(at_))) ++at_;
    std::string_view chunk = text_.substr(begin, at_ - begin);
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

  /// Most chunks are a word of letters, or one at the end of a sentence.
  bool take_plain_word() {
    const std::size_t begin = at_, end = plain_word_end(text_, begin);
    const auto ends_chunk = [&](std::size_t at) {
      return at == text_.size() || !is_chunk(text_[at]);
    };
    if (end == begin) return false;
    const std::string_view word = text_.substr(begin, end - begin);
    if (ends_chunk(end)) {
      at_ = end;
      read_plain_word(word, begin);
      return true;
    }
    const char mark = text_[end];
    const bool is_end = (mark == '.' || mark == ':' || mark == '?') && ends_chunk(end + 1);
    if (!is_end || word == "www") return false;
    at_ = end + 1;
    read_plain_word(word, begin);
    begins_sentence_ = true;
    return true;
  }

  bool is_comma_in_number(std::size_t at) const {
    return text_[at] == ',' && at > 0 && is_digit(text_[at - 1]) && at + 1 < text_.size() &&
           is_digit(text_[at + 1]);
  }

  void classify(std::string_view chunk, std::size_t position) {
    if (chunk.empty()) return;
    if (is_plain_word(chunk)) return read_plain_word(chunk, position);
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
    return (known(word) & (kIsLogic | kIsNumber)) == 0;
  }

  /// Most words are no names and in no table.
  void read_plain_word(std::string_view word, std::size_t position) {
    if (is_upper(word[0]) || kWordChains.has(mark_of(word))) return read_word(word, position);
    begins_sentence_ = false;
  }

  void read_word(std::string_view word, std::size_t position) {
    while (!word.empty() && word.back() == '\'') word.remove_suffix(1);
    const bool is_capital = !word.empty() && is_upper(word[0]);
    lower_.assign(word);
    std::transform(lower_.begin(), lower_.end(), lower_.begin(), to_lower);
    if (lower_ == kCannot) {
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
    const std::uint8_t is = known(lower_);
    if ((is & kIsLogic) != 0) {
      visit(CriticalKind::kLogic, lower_, position);
    } else if ((is & kIsNumber) != 0) {
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
    return !begins_sentence_ || !is_starter(stem);
  }

  // Beyond ASCII -------------------------------------------------------------------------------

  void read_beyond_ascii() {
    const std::string_view rest = text_.substr(at_);
    const text::Utf8Unit unit = text::first_unit(rest);
    if (unit.kind != text::Utf8Unit::Kind::kCharacter) {
      at_ += unit.bytes;
      return;
    }
    const bool is_cjk = unit.code >= 0x3000 && unit.code < 0xFF00;  // and no digit
    if (!is_cjk && digit_value(unit.code) >= 0) return read_digits();
    constexpr std::size_t kHanBytes = 3;  // and of the kana in tables
    if (unit.bytes != kHanBytes) return pass(unit);
    if (const std::size_t size = longest_front(kHarmlessChinese, kHarmlessChains, rest)) {
      at_ += size;
      return;
    }
    // A numeral may continue where 点 or 半 alone are none.
    if (is_han_numeral(unit.code) && unit.code != U'点' && unit.code != U'半') {
      return read_han_numeral();
    }
    if (const std::size_t size = longest_front(kLogicChinese, kLogicChains, rest)) {
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
