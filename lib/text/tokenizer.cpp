// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "text/bpe.h"
#include "text/pre_token_pattern.h"
#include "text/special_tokens.h"
#include "text/text_encoder.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace incipit::text {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;
static_assert(kMaxTextBytes <= Bpe::kMaxBytes / 3, "form C has at most three times the bytes");

/// Everything that decides which ids a text gets.
base::Digest128 digest_of(const TokenizerSpec& spec) {
  base::FieldWriter fields;
  fields.add("pre", static_cast<std::uint64_t>(spec.pre))
      .add("normalize_nfc", std::uint64_t{spec.normalize_nfc})
      .add("ignore_merges", std::uint64_t{spec.ignore_merges})
      .add("add_bos", std::uint64_t{spec.add_bos})
      .add("bos", static_cast<std::uint64_t>(spec.bos));
  for (const std::string& token : spec.tokens) fields.add("token", token);
  for (const TokenKind kind : spec.kinds) fields.add("kind", static_cast<std::uint64_t>(kind));
  for (const std::string& merge : spec.merges) fields.add("merge", merge);
  return base::xxh3_128(base::as_bytes(fields.str()));
}

std::uint64_t seed_from(const base::Digest128& digest) {
  std::uint64_t seed = 0;
  std::memcpy(&seed, digest.data(), sizeof seed);
  return seed;
}

std::string hex(const base::Digest128& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::byte byte : digest) {
    out += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    out += kDigits[std::to_integer<std::size_t>(byte & std::byte{0xF})];
  }
  return out;
}

std::vector<std::pair<std::string, TokenId>> specials_of(const TokenizerSpec& spec) {
  std::vector<std::pair<std::string, TokenId>> specials;
  for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
    const TokenKind kind = spec.kinds[i];
    if (kind != TokenKind::kControl && kind != TokenKind::kUserDefined) continue;
    specials.emplace_back(spec.tokens[i], static_cast<TokenId>(i));
  }
  return specials;
}

void check_size(std::size_t bytes) {
  if (bytes <= kMaxTextBytes) return;
  base::throw_error(ErrorCode::kInvalidArgument,
                    "a text of " + std::to_string(bytes) + " bytes is too long to tokenize");
}

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(const TokenizerSpec& spec) : Impl(spec, digest_of(spec)) {}

  Impl(const TokenizerSpec& spec, const base::Digest128& digest)
      : fingerprint(hex(digest)),
        vocabulary(spec, seed_from(digest)),
        specials(specials_of(spec)),
        pattern(spec.pre),
        bpe(vocabulary, spec.merges, spec.ignore_merges, seed_from(digest)),
        rules{specials, pattern, bpe, spec.normalize_nfc},
        add_bos(spec.add_bos),
        bos(spec.bos),
        ends(spec.ends) {
    std::vector<TokenId> named = ends;
    if (bos != -1 || add_bos) named.push_back(bos);
    for (const TokenId id : named) {
      if (vocabulary.contains(id)) continue;
      base::throw_error(ErrorCode::kModelUnreadable,
                        "the tokenizer begins or ends a text with token " + std::to_string(id) +
                            ", but has " + std::to_string(vocabulary.size()) + " tokens");
    }
  }

  std::string fingerprint;
  Vocabulary vocabulary;
  SpecialTokens specials;
  PreTokenPattern pattern;
  Bpe bpe;
  EncodingRules rules;
  bool add_bos;
  TokenId bos;
  std::vector<TokenId> ends;
};

Tokenizer::Tokenizer(TokenizerSpec spec) : impl_(std::make_unique<const Impl>(spec)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::size_t Tokenizer::vocabulary() const noexcept { return impl_->vocabulary.size(); }

TokenId Tokenizer::bos() const noexcept { return impl_->bos; }

bool Tokenizer::is_end(TokenId id) const noexcept {
  return std::find(impl_->ends.begin(), impl_->ends.end(), id) != impl_->ends.end();
}

std::string Tokenizer::fingerprint() const { return impl_->fingerprint; }

std::vector<TokenId> Tokenizer::encode(std::string_view text) const {
  check_size(text.size());
  std::vector<TokenId> ids;
  if (impl_->add_bos) ids.push_back(impl_->bos);
  TextEncoder(impl_->rules, ids).raw(text);
  return ids;
}

std::vector<TokenId> Tokenizer::encode(std::span<const TextPiece> pieces) const {
  std::size_t bytes = 0;
  for (const TextPiece& piece : pieces) bytes += piece.text.size();
  check_size(bytes);
  std::vector<TokenId> ids;
  TextEncoder(impl_->rules, ids).pieces(pieces);
  return ids;
}

Tokenizer::StablePrefix Tokenizer::encode_stable(std::string_view text) const {
  check_size(text.size());
  StablePrefix prefix;
  if (impl_->add_bos) prefix.ids.push_back(impl_->bos);
  prefix.bytes = TextEncoder(impl_->rules, prefix.ids).raw_stable(text);
  return prefix;
}

std::vector<TokenId> Tokenizer::encode_rest(std::string_view rest) const {
  check_size(rest.size());
  std::vector<TokenId> ids;
  TextEncoder(impl_->rules, ids).raw(rest);
  return ids;
}

std::string_view Tokenizer::bytes_of(TokenId id) const {
  if (!impl_->vocabulary.contains(id)) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "token " + std::to_string(id) + " is not in the vocabulary of " +
                          std::to_string(impl_->vocabulary.size()) + " tokens");
  }
  return impl_->vocabulary.bytes_of(id);
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string bytes;
  for (const TokenId id : ids) bytes += bytes_of(id);
  std::string text;
  if (append_replaced(text, bytes) < bytes.size()) text += kReplacementCharacter;
  return text;
}

}  // namespace incipit::text
