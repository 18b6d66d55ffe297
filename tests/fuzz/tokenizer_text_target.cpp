// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <stdexcept>

#include "fuzz/small_tokenizers.h"
#include "fuzz/target.h"
#include "support/tiny_model.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

// Texts from strangers, through one tokenizer of each kind. The first byte chooses it, the second
// where the text is cut in two.

namespace incipit::fuzz {
namespace {

using text::NormalizerStep;
using text::Tokenizer;
using text::TokenizerSpec;

constexpr const char* kMark = "\u2581";

std::vector<TokenizerSpec> specs() {
  using Kind = NormalizerStep::Kind;
  std::vector<TokenizerSpec> specs(5);
  specs[0] = test::make_tiny_model({.family = test::Family::kQwen2, .layers = 1}).tokenizer;
  specs[1] = small_sentence_piece(text::TokenizerModel::kCharacterBpe);
  specs[1].normalizer = {{Kind::kPrepend, {}, kMark}, {Kind::kReplace, " ", kMark}};
  specs[1].strip_space = true;
  specs[1].rules[3] = {.strip_left = true, .strip_right = true};
  specs[2] = specs[1];
  specs[2].normalizer = {{Kind::kReplace, " ", kMark}};
  specs[2].strip_space = false;
  specs[2].rules[1] = {.normalized = true};
  specs[2].rules[3] = {.whole_word = true, .normalized = true};
  specs[3] = small_sentence_piece(text::TokenizerModel::kUnigram);
  specs[3].spacing = {{Kind::kReplace, " ", kMark}, {Kind::kPrependMissing, {}, kMark}};
  specs[3].split_before = kMark;
  specs[4] = specs[3];
  specs[4].split_before.clear();
  specs[4].spacing_at_begin_only = true;
  specs[4].normalizer = {{Kind::kNfkc, {}, {}}, {Kind::kLowerCase, {}, {}}};
  return specs;
}

const std::vector<Tokenizer>& tokenizers() {
  static const std::vector<Tokenizer> all = [] {
    std::vector<Tokenizer> made;
    for (TokenizerSpec& spec : specs()) made.emplace_back(std::move(spec));
    return made;
  }();
  return all;
}

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

void run(std::string_view bytes) {
  if (bytes.size() < 2) return;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const Tokenizer& tokenizer = tokenizers()[byte(0) % tokenizers().size()];
  const std::string_view text = bytes.substr(2);
  const std::size_t cut = byte(1) * text.size() / 255;

  const std::vector<TokenId> ids = tokenizer.encode(text);
  const Tokenizer::StablePrefix stable = tokenizer.encode_stable(text.substr(0, cut));
  require(stable.bytes <= cut, "a stable front goes beyond the text");
  std::vector<TokenId> joined = stable.ids;
  const auto rest = tokenizer.encode_rest(text.substr(stable.bytes), stable.seam);
  joined.insert(joined.end(), rest.begin(), rest.end());
  require(joined == ids, "a stable front and the rest are other tokens than the whole");

  text::StreamDecoder decoder(tokenizer.strips_space());
  std::string decoded;
  for (const TokenId id : ids) decoded += decoder.push(tokenizer.bytes_of(id));
  decoded += decoder.finish();
  require(decoded == tokenizer.decode(ids), "token by token, the text is another one");

  const text::TextPiece content = {std::string(text), false};
  const TokenId last_control = &tokenizer == &tokenizers()[0] ? 2 : 3;
  for (const TokenId id : tokenizer.encode(std::span(&content, 1))) {
    const bool unknown = id == 0 && last_control == 3;
    require(id > last_control || unknown, "the content of a message yields a special token");
  }
}

std::vector<std::string> seeds() {
  std::vector<std::string> seeds;
  for (std::size_t i = 0; i < tokenizers().size(); ++i) {
    seeds.push_back(std::string(1, static_cast<char>(i)) +
                    "\x80the  the\n\n <|user|> aba <b>\u4eba\u4ebae\u0301 <s>\xff\xe4\xb8</s> ");
  }
  return seeds;
}

}  // namespace

constexpr Target kTokenizerText = {run, seeds};

}  // namespace incipit::fuzz
