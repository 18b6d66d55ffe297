// SPDX-License-Identifier: Apache-2.0
#include "text/bpe.h"

#include <algorithm>
#include <functional>
#include <string>

#include "base/check.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;  // no symbol

char32_t last_code(std::string_view text) {
  return first_unit(text.substr(text.size() - last_character(text))).code;
}

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary, const TokenizerSpec& spec, std::uint64_t seed)
    : vocabulary_(vocabulary),
      of_characters_(spec.model == TokenizerModel::kCharacterBpe),
      ignore_merges_(spec.ignore_merges),
      fuse_unknown_(spec.fuse_unknown),
      unknown_(spec.unknown),
      merges_(0, seed),
      joined_(0) {
  const std::vector<MergeRule> rules = merges_of(spec, vocabulary);
  merges_ = MergeTable(rules.size(), seed);
  for (std::size_t rank = 0; rank < rules.size(); ++rank) {
    merges_.insert(rules[rank].left, rules[rank].right,
                   {static_cast<std::uint32_t>(rank), rules[rank].id});
  }
  const auto id_of = [&](unsigned byte) {
    const char text = static_cast<char>(byte);
    return vocabulary.find({&text, 1});
  };
  for (unsigned byte = 0; byte < bytes_.size(); ++byte) {
    bytes_[byte] = of_characters_ ? vocabulary.find_byte(static_cast<char>(byte)) : id_of(byte);
  }
  for (unsigned code = 0; code < ascii_.size(); ++code) ascii_[code] = id_of(code);
  if (of_characters_) learn_pairs(rules, spec);
}

void Bpe::learn_pairs(std::span<const MergeRule> rules, const TokenizerSpec& spec) {
  // A token of the whole pre-token, an unknown token that merges, and neighbours of what is left
  // out reach across any place.
  const bool all_known = unknown_ >= 0 || std::all_of(bytes_.begin(), bytes_.end(),
                                                      [](TokenId id) { return id >= 0; });
  falls_apart_ = !ignore_merges_ && all_known;
  joined_ = PairFilter(rules.size());
  for (const MergeRule& rule : rules) {
    if (rule.left == spec.unknown || rule.right == spec.unknown) falls_apart_ = false;
    const std::string_view left = vocabulary_.text_of(rule.left);
    const std::string_view right = vocabulary_.text_of(rule.right);
    if (left.empty() || right.empty()) continue;
    joined_.insert(last_code(left), first_unit(right).code);
  }
}

void Bpe::encode_byte(char byte, std::vector<TokenId>& out) const {
  const TokenId id = bytes_[static_cast<unsigned char>(byte)];
  if (id >= 0) {
    out.push_back(id);
  } else if (of_characters_ && unknown_ >= 0) {
    out.push_back(unknown_);
  }
}

void Bpe::encode(std::string_view pre_token, Scratch& scratch, std::vector<TokenId>& out) const {
  INCIPIT_CHECK(pre_token.size() <= kMaxBytes);
  if (!of_characters_ && pre_token.size() == 1) return encode_byte(pre_token.front(), out);
  if (ignore_merges_) {
    if (const TokenId id = vocabulary_.find(pre_token); id >= 0) return out.push_back(id);
  }
  if (of_characters_) {
    encode_characters(pre_token, /*open=*/false, scratch, out);
  } else {
    encode_bytes(pre_token, scratch, out);
  }
}

std::size_t Bpe::encode_open(std::string_view pre_token, Scratch& scratch,
                             std::vector<TokenId>& out) const {
  INCIPIT_CHECK(of_characters_ && pre_token.size() <= kMaxBytes);
  return falls_apart_ ? encode_characters(pre_token, /*open=*/true, scratch, out) : 0;
}

void Bpe::encode_bytes(std::string_view pre_token, Scratch& scratch,
                       std::vector<TokenId>& out) const {
  scratch.symbols_.clear();
  for (const char byte : pre_token) {
    const TokenId id = bytes_[static_cast<unsigned char>(byte)];
    if (id >= 0) add_symbol(id, scratch);
  }
  flush(scratch, out);
}

std::size_t Bpe::encode_characters(std::string_view text, bool open, Scratch& scratch,
                                   std::vector<TokenId>& out) const {
  scratch.symbols_.clear();
  scratch.unknown_ = false;
  std::size_t done = 0;
  char32_t before = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = first_unit(text.substr(at));
    // An unknown character may still become one token with the next.
    if (falls_apart_ && at > done && !scratch.unknown_ && !joined_.may_hold(before, unit.code)) {
      flush(scratch, out);
      done = at;
    }
    add_character(text.substr(at, unit.bytes), scratch);
    before = unit.code;
    at += unit.bytes;
  }
  if (open) return done;
  if (scratch.unknown_) add_symbol(unknown_, scratch);
  flush(scratch, out);
  return text.size();
}

void Bpe::add_character(std::string_view character, Scratch& scratch) const {
  const auto first = static_cast<unsigned char>(character.front());
  const TokenId id = character.size() == 1 ? ascii_[first] : vocabulary_.find(character);
  if (id >= 0) {
    if (scratch.unknown_) add_symbol(unknown_, scratch);
    scratch.unknown_ = false;
    return add_symbol(id, scratch);
  }
  const auto byte_id = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
  if (std::all_of(character.begin(), character.end(),
                  [&](char byte) { return byte_id(byte) >= 0; })) {
    for (const char byte : character) add_symbol(byte_id(byte), scratch);
    return;
  }
  if (unknown_ < 0) return;
  if (scratch.unknown_ && !fuse_unknown_) add_symbol(unknown_, scratch);
  scratch.unknown_ = true;
}

void Bpe::add_symbol(TokenId id, Scratch& scratch) const {
  const auto index = static_cast<std::uint32_t>(scratch.symbols_.size());
  scratch.symbols_.push_back({id, index - 1, index + 1, {}});
}

void Bpe::flush(Scratch& scratch, std::vector<TokenId>& out) const {
  auto& symbols = scratch.symbols_;
  if (symbols.empty()) return;
  symbols.front().previous = kNone;
  symbols.back().next = kNone;
  merge_all(scratch);
  for (std::uint32_t i = 0; i != kNone; i = symbols[i].next) out.push_back(symbols[i].id);
  symbols.clear();
}

void Bpe::merge_all(Scratch& scratch) const {
  auto& symbols = scratch.symbols_;
  auto& queue = scratch.queue_;
  const auto entry = [&](std::uint32_t index) {
    return std::uint64_t{symbols[index].merge.rank} << 32 | index;
  };
  queue.clear();
  for (std::uint32_t i = 0; i + 1 < symbols.size(); ++i) {
    symbols[i].merge = merges_.find(symbols[i].id, symbols[i + 1].id);
    if (symbols[i].merge.rank != MergeTable::kNever) queue.push_back(entry(i));
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());

  const auto update = [&](std::uint32_t index) {
    Scratch::Symbol& symbol = symbols[index];
    symbol.merge = {};
    if (symbol.next == kNone) return;
    symbol.merge = merges_.find(symbol.id, symbols[symbol.next].id);
    if (symbol.merge.rank == MergeTable::kNever) return;
    queue.push_back(entry(index));
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  while (!queue.empty()) {
    const std::uint64_t best = queue.front();
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    queue.pop_back();
    const auto index = static_cast<std::uint32_t>(best);
    if (entry(index) != best) continue;  // one of the two has merged with another since

    Scratch::Symbol& symbol = symbols[index];
    Scratch::Symbol& absorbed = symbols[symbol.next];
    symbol.id = symbol.merge.id;
    symbol.next = absorbed.next;
    absorbed.merge = {};
    if (symbol.next != kNone) symbols[symbol.next].previous = index;
    update(index);
    if (symbol.previous != kNone) update(symbol.previous);
  }
}

}  // namespace incipit::text
