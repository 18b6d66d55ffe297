// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/pre_token_pattern.h"
#include "text/special_tokens.h"
#include "text/stream_decoder.h"
#include "text/text_encoder.h"
#include "text/vocabulary.h"

namespace incipit::text {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;
static_assert(kMaxTextBytes <= Bpe::kMaxBytes / 3, "form C has at most three times the bytes");

void add_steps(base::FieldWriter& fields, std::string_view name,
               const std::vector<NormalizerStep>& steps) {
  for (const NormalizerStep& step : steps) {
    fields.add(name, static_cast<std::uint64_t>(step.kind))
        .add("text", step.text)
        .add("by", step.by);
  }
}

/// What only some tokenizers have; nothing for those that lack it all.
void add_more(base::FieldWriter& fields, const TokenizerSpec& spec) {
  const auto add = [&](std::string_view name, std::uint64_t value) {
    if (value != 0) fields.add(name, value);
  };
  add("model", static_cast<std::uint64_t>(spec.model));
  add("unknown", static_cast<std::uint64_t>(spec.unknown) + 1);
  add("fuse_unknown", std::uint64_t{spec.fuse_unknown});
  if (spec.add_eos) add("eos", static_cast<std::uint64_t>(spec.eos) + 1);
  add("spacing_at_begin_only", std::uint64_t{spec.spacing_at_begin_only});
  add_steps(fields, "normalizer", spec.normalizer);
  add_steps(fields, "spacing", spec.spacing);
  if (!spec.split_before.empty()) fields.add("split_before", spec.split_before);
  for (const auto& [id, rule] : spec.rules) {
    fields.add("rule", static_cast<std::uint64_t>(id))
        .add("strip_left", std::uint64_t{rule.strip_left})
        .add("strip_right", std::uint64_t{rule.strip_right})
        .add("whole_word", std::uint64_t{rule.whole_word})
        .add("normalized", std::uint64_t{rule.normalized});
  }
  for (const double score : spec.scores) fields.add("score", std::bit_cast<std::uint64_t>(score));
}

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
  add_more(fields, spec);
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

std::vector<NormalizerStep> normalizer_of(const TokenizerSpec& spec) {
  std::vector<NormalizerStep> steps = spec.normalizer;
  if (spec.normalize_nfc) steps.insert(steps.begin(), {NormalizerStep::Kind::kNfc, {}, {}});
  return steps;
}

enum class Where { kRaw, kNormalized, kControl, kContents };

SpecialTokens specials_of(const TokenizerSpec& spec, Where where, const Normalizer& normalizer) {
  std::vector<SpecialToken> specials;
  for (std::size_t i = 0; i < std::min(spec.tokens.size(), spec.kinds.size()); ++i) {
    const auto id = static_cast<TokenId>(i);
    const TokenKind kind = spec.kinds[i];
    if (kind != TokenKind::kControl && kind != TokenKind::kUserDefined) continue;
    const auto known = spec.rules.find(id);
    const AddedTokenRule rule = known == spec.rules.end() ? AddedTokenRule{} : known->second;
    const bool raw = where == Where::kRaw;
    if ((raw || where == Where::kNormalized) && rule.normalized == raw) continue;
    if (where == Where::kContents &&
        (kind == TokenKind::kControl || spec.model == TokenizerModel::kByteLevelBpe)) {
      continue;
    }
    // One that is too long is refused as it is.
    const std::string& text = spec.tokens[i];
    const bool normalize = where == Where::kNormalized && text.size() <= SpecialTokens::kMaxBytes;
    specials.push_back(
        {normalize ? std::string(NormalizedText(normalizer, text, true).text()) : text, id, rule});
  }
  return SpecialTokens(std::move(specials));
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
        rules(rules_of(spec, seed_from(digest))),
        add_bos(spec.add_bos),
        add_eos(spec.add_eos),
        strip_space(spec.strip_space),
        bos(spec.bos),
        eos(spec.eos),
        ends(spec.ends) {
    check_named(spec);
  }

  EncodingRules rules_of(const TokenizerSpec& spec, std::uint64_t seed) const {
    Normalizer normalizer(normalizer_of(spec));
    EncodingRules made = {specials_of(spec, Where::kRaw, normalizer),
                          specials_of(spec, Where::kNormalized, normalizer),
                          specials_of(spec, Where::kControl, normalizer),
                          specials_of(spec, Where::kContents, normalizer),
                          normalizer,
                          Normalizer(spec.spacing),
                          spec.spacing_at_begin_only};
    if (spec.model == TokenizerModel::kByteLevelBpe) made.pattern.emplace(spec.pre);
    made.split_before = spec.split_before;
    if (spec.model == TokenizerModel::kUnigram) {
      made.unigram.emplace(vocabulary, spec, seed);
    } else {
      made.bpe.emplace(vocabulary, spec, seed);
    }
    return made;
  }

  void check_named(const TokenizerSpec& spec) const {
    std::vector<TokenId> named = ends;
    if (bos != -1 || add_bos) named.push_back(bos);
    if (eos != -1 || add_eos) named.push_back(eos);
    if (spec.unknown != -1) named.push_back(spec.unknown);
    for (const TokenId id : named) {
      if (vocabulary.contains(id)) continue;
      base::throw_error(ErrorCode::kModelUnreadable,
                        "the tokenizer begins or ends a text with token " + std::to_string(id) +
                            ", but has " + std::to_string(vocabulary.size()) + " tokens");
    }
  }

  std::string fingerprint;
  Vocabulary vocabulary;
  EncodingRules rules;
  bool add_bos;
  bool add_eos;
  bool strip_space;
  TokenId bos;
  TokenId eos;
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
  if (impl_->add_eos) ids.push_back(impl_->eos);
  return ids;
}

std::vector<TokenId> Tokenizer::encode(std::span<const TextPiece> pieces) const {
  StablePrefix::End end = StablePrefix::End::kNothing;
  return encode(pieces, end);
}

std::vector<TokenId> Tokenizer::encode(std::span<const TextPiece> pieces,
                                       StablePrefix::End& end) const {
  std::size_t bytes = 0;
  for (const TextPiece& piece : pieces) bytes += piece.text.size();
  check_size(bytes);
  std::vector<TokenId> ids;
  TextEncoder encoder(impl_->rules, ids, {.end = end});
  encoder.pieces(pieces);
  end = encoder.seam().end;
  return ids;
}

Tokenizer::StablePrefix Tokenizer::encode_stable(std::string_view text) const {
  check_size(text.size());
  StablePrefix prefix;
  if (impl_->add_bos) prefix.ids.push_back(impl_->bos);
  TextEncoder encoder(impl_->rules, prefix.ids);
  prefix.bytes = encoder.raw_stable(text);
  prefix.seam = encoder.seam();
  return prefix;
}

std::vector<TokenId> Tokenizer::encode_rest(std::string_view rest,
                                            const StablePrefix::Seam& seam) const {
  check_size(rest.size());
  std::vector<TokenId> ids;
  TextEncoder(impl_->rules, ids, seam).raw(rest);
  if (impl_->add_eos) ids.push_back(impl_->eos);
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

bool Tokenizer::strips_space() const noexcept { return impl_->strip_space; }

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string bytes;
  for (const TokenId id : ids) bytes += bytes_of(id);
  StreamDecoder decoder(impl_->strip_space);
  std::string text = decoder.push(bytes);
  return text += decoder.finish();
}

}  // namespace incipit::text
