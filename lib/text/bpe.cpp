// SPDX-License-Identifier: Apache-2.0
#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>

#include "base/check.h"
#include "text/byte_alphabet.h"

namespace incipit::text {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;  // no symbol

std::uint64_t pair_of(TokenId left, TokenId right) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

std::uint64_t scatter(std::uint64_t bits) noexcept {
  bits = (bits ^ (bits >> 32)) * 0x9E3779B97F4A7C15;
  bits = (bits ^ (bits >> 29)) * 0xBF58476D1CE4E5B9;
  return bits ^ (bits >> 32);
}

[[noreturn]] void fail_merge(std::size_t rank, const std::string& merge, const char* why) {
  base::throw_error(
      ErrorCode::kModelUnreadable,
      "merge " + std::to_string(rank) + " of the tokenizer, \"" + merge + "\", " + why);
}

}  // namespace

MergeTable::MergeTable(std::size_t count, std::uint64_t seed)
    : slots_(std::bit_ceil(2 * count + 1)), seed_(seed) {}

void MergeTable::insert(TokenId left, TokenId right, Merge merge) {
  const std::uint64_t pair = pair_of(left, right);
  slots_[slot_of(pair)] = {pair, merge};
}

MergeTable::Merge MergeTable::find(TokenId left, TokenId right) const noexcept {
  return slots_[slot_of(pair_of(left, right))].merge;
}

std::size_t MergeTable::slot_of(std::uint64_t pair) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = scatter(pair ^ seed_) & mask;
  while (slots_[slot].merge.rank != kNever && slots_[slot].pair != pair) slot = (slot + 1) & mask;
  return slot;
}

Bpe::Bpe(const Vocabulary& vocabulary, std::span<const std::string> merges, bool ignore_merges,
         std::uint64_t seed)
    : vocabulary_(vocabulary), ignore_merges_(ignore_merges), merges_(merges.size(), seed) {
  if (merges.size() >= MergeTable::kNever) {
    base::throw_error(ErrorCode::kModelUnreadable, "the tokenizer has too many merges");
  }
  for (unsigned byte = 0; byte < bytes_.size(); ++byte) {
    const char text = static_cast<char>(byte);
    bytes_[byte] = vocabulary.find({&text, 1});
  }
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string& merge = merges[rank];
    const std::size_t space = merge.find(' ');
    if (space == std::string::npos) fail_merge(rank, merge, "is not two tokens");
    const auto left = from_byte_alphabet(std::string_view(merge).substr(0, space));
    const auto right = from_byte_alphabet(std::string_view(merge).substr(space + 1));
    if (!left || !right) fail_merge(rank, merge, "has a character outside the byte alphabet");
    const TokenId left_id = vocabulary.find(*left);
    const TokenId right_id = vocabulary.find(*right);
    const TokenId id = vocabulary.find(*left + *right);
    if (left_id < 0 || right_id < 0 || id < 0) {
      fail_merge(rank, merge, "names a token that is not in the vocabulary");
    }
    merges_.insert(left_id, right_id, {static_cast<std::uint32_t>(rank), id});
  }
}

void Bpe::encode_byte(char byte, std::vector<TokenId>& out) const {
  const TokenId id = bytes_[static_cast<unsigned char>(byte)];
  if (id >= 0) out.push_back(id);
}

void Bpe::encode(std::string_view pre_token, Scratch& scratch, std::vector<TokenId>& out) const {
  if (pre_token.size() == 1) return encode_byte(pre_token.front(), out);
  if (ignore_merges_) {
    if (const TokenId id = vocabulary_.find(pre_token); id >= 0) return out.push_back(id);
  }
  INCIPIT_CHECK(pre_token.size() <= kMaxBytes);
  auto& symbols = scratch.symbols_;
  symbols.clear();
  for (const char byte : pre_token) {
    const TokenId id = bytes_[static_cast<unsigned char>(byte)];
    if (id < 0) continue;
    const auto index = static_cast<std::uint32_t>(symbols.size());
    symbols.push_back({id, index - 1, index + 1, {}});
  }
  if (symbols.empty()) return;
  symbols.front().previous = kNone;
  symbols.back().next = kNone;
  merge_all(scratch);
  for (std::uint32_t i = 0; i != kNone; i = symbols[i].next) out.push_back(symbols[i].id);
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
