// SPDX-License-Identifier: Apache-2.0
#include "text/vocabulary.h"

#include <bit>
#include <limits>

#include "base/check.h"
#include "base/hash.h"
#include "text/byte_alphabet.h"
#include "text/replace.h"

namespace incipit::text {
namespace {

[[noreturn]] void fail_twins(TokenId first, TokenId second) {
  base::throw_error(
      ErrorCode::kModelUnreadable,
      "tokens " + std::to_string(first) + " and " + std::to_string(second) + " have the same text");
}

}  // namespace

std::optional<char> byte_of_token(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
  const std::size_t high = kDigits.find(text[3]), low = kDigits.find(text[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<char>(16 * high + low);
}

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
  slots_.assign(std::bit_ceil(2 * count), -1);
  byte_tokens_.fill(-1);
  for (std::size_t i = 0; i < count; ++i) {
    if (spec.model == TokenizerModel::kByteLevelBpe) {
      add_byte_level(spec.tokens[i], spec.kinds[i]);
    } else {
      add_characters(spec.tokens[i], spec.kinds[i], spec);
    }
  }
}

void Vocabulary::add_byte_level(const std::string& text, TokenKind kind) {
  std::optional<std::string> bytes;
  if (kind == TokenKind::kNormal) bytes = from_byte_alphabet(text);
  const bool kept = kind == TokenKind::kNormal || kind == TokenKind::kUserDefined;
  bytes_.add(bytes.has_value() ? *bytes : kept ? text : std::string());
  // A text outside the byte alphabet can never come out of encoding.
  if (bytes.has_value() && !bytes->empty()) insert(static_cast<TokenId>(size() - 1));
}

void Vocabulary::add_characters(const std::string& text, TokenKind kind,
                                const TokenizerSpec& spec) {
  const auto id = static_cast<TokenId>(size());
  if (kind == TokenKind::kByte) {
    const std::optional<char> byte = byte_of_token(text);
    if (!byte) {
      base::throw_error(ErrorCode::kModelUnreadable, "token " + std::to_string(id) +
                                                         " stands for a byte, but is \"" + text +
                                                         "\" and not like \"<0x0A>\"");
    }
    TokenId& known = byte_tokens_[static_cast<unsigned char>(*byte)];
    if (known >= 0) fail_twins(known, id);
    known = id;
    bytes_.add({&*byte, 1});
    return texts_.add({});
  }
  if (kind != TokenKind::kNormal && kind != TokenKind::kUserDefined) {
    bytes_.add({});
    return texts_.add({});
  }
  bytes_.add(spec.space.empty() ? text : replaced_all(text, spec.space, " "));
  texts_.add(text);
  if (!text.empty()) insert(id);
}

TokenId Vocabulary::find(std::string_view text) const noexcept { return slots_[slot_of(text)]; }

void Vocabulary::insert(TokenId id) {
  TokenId& slot = slots_[slot_of(text_of(id))];
  if (slot >= 0) fail_twins(slot, id);
  slot = id;
}

std::size_t Vocabulary::slot_of(std::string_view text) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = base::xxh3_64(base::as_bytes(text), seed_) & mask;
  while (slots_[slot] >= 0 && text_of(slots_[slot]) != text) slot = (slot + 1) & mask;
  return slot;
}

}  // namespace incipit::text
