// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/files.h"
#include "model/gguf_model.h"
#include "model/vocabulary_rules.h"

namespace incipit::model {
namespace {

using text::NormalizerStep;
using text::PreTokenizer;
using text::TokenizerModel;

struct PreName {
  std::string_view name;  // of tokenizer.ggml.pre
  PreTokenizer pre;
  bool ignore_merges = false;
  bool add_bos = false;  // where the file leaves it open
};
constexpr auto kPreNames = std::to_array<PreName>({
    {"gpt-2", PreTokenizer::kGpt2},
    {"phi-2", PreTokenizer::kGpt2},
    {"mpt", PreTokenizer::kGpt2},
    {"olmo", PreTokenizer::kGpt2},
    {"smollm", PreTokenizer::kSmolLm},
    {"starcoder", PreTokenizer::kSmolLm},
    {"refact", PreTokenizer::kSmolLm},
    {"command-r", PreTokenizer::kSmolLm},
    {"codeshell", PreTokenizer::kSmolLm},
    {"llama-bpe", PreTokenizer::kLlama3, true, true},
    {"llama3", PreTokenizer::kLlama3, true, true},
    {"llama-v3", PreTokenizer::kLlama3, true, true},
    {"falcon3", PreTokenizer::kLlama3, true, true},
    {"pixtral", PreTokenizer::kLlama3, true, true},
    {"dbrx", PreTokenizer::kLlama3},
    {"smaug-bpe", PreTokenizer::kLlama3},
    {"qwen2", PreTokenizer::kQwen2},
    {"deepseek-r1-qwen", PreTokenizer::kQwen2},
    {"stablelm2", PreTokenizer::kQwen2},
    {"megrez", PreTokenizer::kQwen2},
    {"bloom", PreTokenizer::kBloom},
    {"poro-chat", PreTokenizer::kBloom},
    {"gpt3-finnish", PreTokenizer::kBloom},
    {"tekken", PreTokenizer::kTekken, true},
});

constexpr std::string_view kMark = "\u2581";  // what SentencePiece writes for a space

// "default" is refused with the rest: it stands for a file whose converter did not know the rules,
// and prompts would be cut in a way that the model was not trained with.
const PreName& read_pre(const GgufMetadata& metadata) {
  const std::string_view name = metadata.get_text("tokenizer.ggml.pre");
  std::string names;
  for (const PreName& known : kPreNames) {
    if (known.name == name) return known;
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  fail(metadata.file(), "tokenizer.ggml.pre is '" + std::string(name) +
                            "', a pre-tokenizer that incipit does not know; it knows " + names);
}

text::TokenKind to_kind(std::int32_t type, TokenizerModel model, const GgufMetadata& metadata) {
  switch (type) {
    case 1:
      return text::TokenKind::kNormal;
    case 2:  // the unknown token, special to Hugging Face's tokenizers as well
    case 3:
      return text::TokenKind::kControl;
    case 4:
      return text::TokenKind::kUserDefined;
    case 5:
      return text::TokenKind::kUnused;
    case 6:
      if (model != TokenizerModel::kByteLevelBpe) return text::TokenKind::kByte;
      [[fallthrough]];
    default:
      fail(metadata.file(), "tokenizer.ggml.token_type holds " + std::to_string(type) +
                                ", which no token of this kind of tokenizer is; the file is "
                                "damaged");
  }
}

void read_vocabulary(const GgufMetadata& metadata, text::TokenizerSpec& spec) {
  spec.tokens = metadata.get_texts("tokenizer.ggml.tokens");
  const std::vector<std::int32_t> types = metadata.get_i32s("tokenizer.ggml.token_type");
  if (types.size() != spec.tokens.size()) {
    fail(metadata.file(), "there are " + std::to_string(spec.tokens.size()) + " tokens, but " +
                              std::to_string(types.size()) + " token types; the file is damaged");
  }
  spec.kinds.reserve(types.size());
  for (const std::int32_t type : types) spec.kinds.push_back(to_kind(type, spec.model, metadata));
}

void read_scores(const GgufMetadata& metadata, text::TokenizerSpec& spec) {
  for (const float score : metadata.get_f32s("tokenizer.ggml.scores")) {
    spec.scores.push_back(static_cast<double>(score));
  }
  if (spec.scores.size() != spec.tokens.size()) {
    fail(metadata.file(), "there are " + std::to_string(spec.tokens.size()) + " tokens, but " +
                              std::to_string(spec.scores.size()) + " scores; the file is damaged");
  }
}

void read_special_ids(const GgufMetadata& metadata, text::TokenizerSpec& spec) {
  const auto token = [&](std::string_view key) -> TokenId {
    const auto id = metadata.find_count(key);
    return id ? checked_token(*id, spec, std::string(key), metadata.file()) : TokenId{-1};
  };
  spec.bos = token("tokenizer.ggml.bos_token_id");
  spec.eos = token("tokenizer.ggml.eos_token_id");
  if (spec.model != TokenizerModel::kByteLevelBpe) {
    spec.unknown = token("tokenizer.ggml.unknown_token_id");
    for (std::size_t id = 0; id < spec.tokens.size() && spec.unknown < 0; ++id) {
      if (spec.tokens[id] == "<unk>") spec.unknown = static_cast<TokenId>(id);
    }
  }
  if (spec.eos >= 0) add_end(spec, spec.eos);
  for (const std::string_view key :
       {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    if (const TokenId id = token(key); id >= 0) add_end(spec, id);
  }
  add_known_ends(spec);
}

void read_affixes(const GgufMetadata& metadata, bool bos, bool eos, text::TokenizerSpec& spec) {
  spec.add_bos = metadata.find_flag("tokenizer.ggml.add_bos_token").value_or(bos);
  spec.add_eos = metadata.find_flag("tokenizer.ggml.add_eos_token").value_or(eos);
  if (spec.add_bos && spec.bos < 0) {
    fail(metadata.file(), "texts get a BOS token, but none is named; the file is damaged");
  }
  if (spec.add_eos && spec.eos < 0) {
    fail(metadata.file(), "texts get an EOS token, but none is named; the file is damaged");
  }
}

void read_byte_level(const GgufMetadata& metadata, text::TokenizerSpec& spec) {
  const PreName& pre = read_pre(metadata);
  spec.pre = pre.pre;
  spec.normalize_nfc = pre.pre == PreTokenizer::kQwen2;
  spec.ignore_merges = pre.ignore_merges;
  if (metadata.find_flag("tokenizer.ggml.add_space_prefix").value_or(false)) {
    spec.spacing.push_back({NormalizerStep::Kind::kPrependMissing, {}, " "});
  }
  read_vocabulary(metadata, spec);
  spec.merges = metadata.get_texts("tokenizer.ggml.merges");
  read_special_ids(metadata, spec);
  read_affixes(metadata, pre.add_bos, /*eos=*/false, spec);
}

// A run of spaces that a converter wrote out again, as the text sees it.
void restore_marks(text::TokenizerSpec& spec) {
  for (std::string& token : spec.tokens) {
    if (token.empty() || token.find_first_not_of(' ') != std::string::npos) continue;
    std::string marks;
    for (std::size_t i = 0; i < token.size(); ++i) marks += kMark;
    token = marks;
  }
}

// SentencePiece's BPE, whose merges follow from the scores where a file lists none.
void read_sentence_piece(const GgufMetadata& metadata, text::TokenizerSpec& spec) {
  spec.model = TokenizerModel::kCharacterBpe;
  read_vocabulary(metadata, spec);
  restore_marks(spec);
  if (metadata.has("tokenizer.ggml.merges")) {
    spec.merges = metadata.get_texts("tokenizer.ggml.merges");
  } else {
    read_scores(metadata, spec);
  }
  read_special_ids(metadata, spec);
  read_affixes(metadata, /*bos=*/true, /*eos=*/false, spec);
  spec.fuse_unknown = true;
  spec.space = kMark;
  spec.strip_space = metadata.find_flag("tokenizer.ggml.add_space_prefix").value_or(true);
  if (spec.strip_space) spec.normalizer.push_back({NormalizerStep::Kind::kPrepend, {}, " "});
  spec.normalizer.push_back({NormalizerStep::Kind::kReplace, " ", std::string(kMark)});
}

// SentencePiece's unigram model, as T5 has it.
void read_unigram(const GgufMetadata& metadata, text::TokenizerSpec& spec) {
  spec.model = TokenizerModel::kUnigram;
  if (metadata.has("tokenizer.ggml.precompiled_charsmap")) {
    fail(metadata.file(),
         "tokenizer.ggml.precompiled_charsmap holds a compiled normaliser, which incipit does not "
         "apply; use a model whose tokenizer has none");
  }
  read_vocabulary(metadata, spec);
  read_scores(metadata, spec);
  read_special_ids(metadata, spec);
  read_affixes(metadata, /*bos=*/false, /*eos=*/true, spec);
  spec.fuse_unknown = true;
  spec.space = spec.split_before = kMark;
  spec.strip_space = metadata.find_flag("tokenizer.ggml.add_space_prefix").value_or(true);
  if (metadata.find_flag("tokenizer.ggml.remove_extra_whitespaces").value_or(false)) {
    spec.normalizer.push_back({NormalizerStep::Kind::kStripLeft, {}, {}});
    spec.normalizer.push_back({NormalizerStep::Kind::kStripRight, {}, {}});
    spec.normalizer.push_back({NormalizerStep::Kind::kReplaceSpaceRuns, {}, " "});
  }
  spec.spacing.push_back({NormalizerStep::Kind::kReplace, " ", std::string(kMark)});
  if (spec.strip_space) {
    spec.spacing.push_back({NormalizerStep::Kind::kPrependMissing, {}, std::string(kMark)});
  }
}

}  // namespace

text::TokenizerSpec read_gguf_tokenizer(const GgufMetadata& metadata) {
  const std::string_view model = metadata.get_text("tokenizer.ggml.model");
  text::TokenizerSpec spec;
  if (model == "gpt2") {
    read_byte_level(metadata, spec);
  } else if (model == "llama") {
    read_sentence_piece(metadata, spec);
  } else if (model == "t5") {
    read_unigram(metadata, spec);
  } else {
    fail(metadata.file(), "the tokenizer is of the kind '" + std::string(model) +
                              "'; incipit knows byte-level BPE ('gpt2'), SentencePiece's BPE "
                              "('llama') and unigram ('t5') only");
  }
  return spec;
}

}  // namespace incipit::model
