// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_FUZZ_SMALL_TOKENIZERS_H_
#define INCIPIT_TESTS_FUZZ_SMALL_TOKENIZERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "support/gguf_writer.h"
#include "text/tokenizer.h"

namespace incipit::fuzz {

/// A vocabulary of characters: special tokens, all bytes, letters and some of what they make.
inline text::TokenizerSpec small_sentence_piece(text::TokenizerModel model) {
  text::TokenizerSpec spec;
  spec.model = model;
  const auto add = [&](const std::string& token, text::TokenKind kind) {
    spec.tokens.push_back(token);
    spec.kinds.push_back(kind);
    spec.scores.push_back(-static_cast<double>(spec.tokens.size()));
  };
  for (const char* token : {"<unk>", "<s>", "</s>", "<|user|>"}) {
    add(token, text::TokenKind::kControl);
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    std::string token = "<0x00>";
    token[3] = kDigits[byte / 16];
    token[4] = kDigits[byte % 16];
    add(token, text::TokenKind::kByte);
  }
  for (const char* token : {"\n\n", "<b>", "\u2581\u2581"}) {
    add(token, text::TokenKind::kUserDefined);
  }
  for (const char* token : {"\u2581",    "\n",
                            "<",         ">",
                            "a",         "b",
                            "e",         "h",
                            "t",         "\u00e9",
                            "\u4eba",    "\u0301",
                            "th",        "the",
                            "he",        "\u2581th",
                            "\u2581the", "\u2581a",
                            "ab",        "ba",
                            "aba",       "\u4eba\u4eba",
                            "a\u2581"}) {
    add(token, text::TokenKind::kNormal);
  }
  spec.unknown = 0;
  spec.bos = 1;
  spec.eos = 2;
  spec.add_bos = true;
  spec.fuse_unknown = true;
  spec.space = "\u2581";
  return spec;
}

/// Only the metadata of a tokenizer, as a GGUF file of `model` ("llama" or "t5") has it.
inline test::GgufWriter small_gguf(const std::string& model) {
  using text::TokenKind;
  const text::TokenizerSpec spec = small_sentence_piece(text::TokenizerModel::kCharacterBpe);
  std::vector<std::int32_t> types;
  std::string scores;
  for (std::size_t id = 0; id < spec.tokens.size(); ++id) {
    const TokenKind kind = spec.kinds[id];
    types.push_back(id == 0                           ? 2
                    : kind == TokenKind::kControl     ? 3
                    : kind == TokenKind::kUserDefined ? 4
                    : kind == TokenKind::kByte        ? 6
                                                      : 1);
    scores += test::raw_bytes(static_cast<float>(spec.scores[id]));
  }
  test::GgufWriter file;
  file.set_string("tokenizer.ggml.model", model)
      .set_strings("tokenizer.ggml.tokens", spec.tokens)
      .set_i32s("tokenizer.ggml.token_type", types)
      .set_u32("tokenizer.ggml.bos_token_id", 1)
      .set_u32("tokenizer.ggml.eos_token_id", 2)
      .set_u32("tokenizer.ggml.unknown_token_id", 0);
  file.set("tokenizer.ggml.scores", test::GgufType::kArray,
           test::gguf_array(test::GgufType::kF32, types.size(), scores));
  return file;
}

}  // namespace incipit::fuzz

#endif  // INCIPIT_TESTS_FUZZ_SMALL_TOKENIZERS_H_
