// SPDX-License-Identifier: Apache-2.0
#include "text/vocabulary.h"

#include <bit>
#include <limits>
#include <optional>

#include "base/check.h"
#include "base/hash.h"
#include "text/byte_alphabet.h"

namespace incipit::text {

Vocabulary::Vocabulary(const TokenizerSpec& spec, std::uint64_t seed) : seed_(seed) {
  const std::size_t count = spec.tokens.size();
  if (count == 0 || count > static_cast<std::size_t>(std::numeric_limits<TokenId>::max())) {
    base::throw_error(ErrorCode::kModelUnreadable,
                      "the tokenizer has " + std::to_string(count) + " tokens");
  }
  if (spec.kinds.size() != count) {
    base::throw_error(ErrorCode::kModelUnreadable, "the tokenizer has " + std::to_string(count) +
                                                       " tokens, but kinds for " +
                                                       std::to_string(spec.kinds.size()));
  }
  ends_.reserve(count);
  slots_.assign(std::bit_ceil(2 * count), -1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& text = spec.tokens[i];
    std::optional<std::string> bytes;
    if (spec.kinds[i] == TokenKind::kNormal) bytes = from_byte_alphabet(text);
    if (bytes.has_value()) {
      bytes_ += *bytes;
    } else if (spec.kinds[i] == TokenKind::kNormal || spec.kinds[i] == TokenKind::kUserDefined) {
      bytes_ += text;
    }
    ends_.push_back(bytes_.size());
    // A text outside the byte alphabet can never come out of encoding.
    if (bytes.has_value() && !bytes->empty()) insert(static_cast<TokenId>(i));
  }
}

std::string_view Vocabulary::bytes_of(TokenId id) const noexcept {
  const auto index = static_cast<std::size_t>(id);
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(bytes_).substr(begin, ends_[index] - begin);
}

TokenId Vocabulary::find(std::string_view bytes) const noexcept { return slots_[slot_of(bytes)]; }

void Vocabulary::insert(TokenId id) {
  TokenId& slot = slots_[slot_of(bytes_of(id))];
  if (slot >= 0) {
    base::throw_error(ErrorCode::kModelUnreadable, "tokens " + std::to_string(slot) + " and " +
                                                       std::to_string(id) + " have the same text");
  }
  slot = id;
}

std::size_t Vocabulary::slot_of(std::string_view bytes) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = base::xxh3_64(base::as_bytes(bytes), seed_) & mask;
  while (slots_[slot] >= 0 && bytes_of(slots_[slot]) != bytes) slot = (slot + 1) & mask;
  return slot;
}

}  // namespace incipit::text
