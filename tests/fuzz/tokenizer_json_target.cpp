// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "fuzz/small_tokenizers.h"
#include "fuzz/target.h"
#include "incipit/error.h"
#include "support/temporary_directory.h"
#include "support/tiny_model.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

namespace incipit::fuzz {
namespace {

using nlohmann::json;

void run(std::string_view bytes) {
  try {
    const text::Tokenizer tokenizer(text::parse_tokenizer_json(bytes));
    tokenizer.decode(tokenizer.encode("The other one is here: <|im_end|> 1 + 2\r\n\t <b>\xff"));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kModelUnreadable) throw;
  }
}

/// As SentencePiece's models are written, with as many parts as there are.
json sentence_piece(bool unigram) {
  const text::TokenizerSpec spec = small_sentence_piece(text::TokenizerModel::kUnigram);
  json added = json::array(), scored = json::array(), vocabulary = json::object();
  for (std::size_t id = 0; id < spec.tokens.size(); ++id) {
    const std::string& token = spec.tokens[id];
    scored.push_back({token, spec.scores[id]});
    vocabulary[token] = id;
    const bool special = spec.kinds[id] == text::TokenKind::kControl;
    if (!special && spec.kinds[id] != text::TokenKind::kUserDefined) continue;
    added.push_back({{"id", id},
                     {"content", token},
                     {"special", special},
                     {"normalized", id == 1},
                     {"lstrip", id == 2},
                     {"rstrip", id == 3},
                     {"single_word", id == 3}});
  }
  json model = {{"type", "BPE"},       {"unk_token", "<unk>"},
                {"fuse_unk", true},    {"byte_fallback", true},
                {"vocab", vocabulary}, {"merges", {"t h", "th e", {"a", "b"}, {"ab", "a"}}}};
  if (unigram) {
    model = {{"type", "Unigram"}, {"unk_id", 0}, {"byte_fallback", true}, {"vocab", scored}};
  }
  return {{"added_tokens", added},
          {"normalizer", json::parse(R"({"type": "Sequence", "normalizers": [
              {"type": "NFKC"}, {"type": "Lowercase"}, {"type": "StripAccents"},
              {"type": "Prepend", "prepend": "_"}, {"type": "Strip"},
              {"type": "Replace", "pattern": {"String": "_"}, "content": "\u2581"},
              {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]})")},
          {"pre_tokenizer",
           {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "first"}}},
          {"post_processor", json::parse(R"({"type": "TemplateProcessing", "single": [
              {"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
              "special_tokens": {"<s>": {"ids": [1]}}})")},
          {"decoder", json::parse(R"({"type": "Sequence", "decoders": [
              {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
              {"type": "ByteFallback"}, {"type": "Fuse"},
              {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})")},
          {"model", model}};
}

std::vector<std::string> seeds() {
  const auto json_of = [](const test::TinyModel& model) {
    const test::TemporaryDirectory directory;
    model.write_hugging_face(directory.path());
    return base::read_text_file(directory.path() / "tokenizer.json", 1 << 20);
  };
  return {json_of(test::make_smallest_model(tensor::DType::kF32)),
          json_of(test::make_tiny_model({.family = test::Family::kQwen2, .layers = 1})),
          sentence_piece(/*unigram=*/false).dump(), sentence_piece(/*unigram=*/true).dump()};
}

}  // namespace

constexpr Target kTokenizerJson = {run, seeds};

}  // namespace incipit::fuzz
