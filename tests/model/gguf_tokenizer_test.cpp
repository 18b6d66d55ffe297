// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/small_tokenizers.h"
#include "model/gguf.h"
#include "model/gguf_model.h"
#include "support/catch.h"
#include "support/memory_file.h"
#include "support/tiny_model.h"
#include "support/unreadable.h"

namespace incipit::model {
namespace {

using test::check_unreadable;
using test::Family;
using test::GgufWriter;
using test::MemoryFile;
using test::TinyModel;
using text::PreTokenizer;

GgufWriter tiny() { return test::make_tiny_model().gguf(); }

text::TokenizerSpec read(const GgufWriter& writer) {
  const MemoryFile file(writer.bytes());
  const GgufHeader header = read_gguf_header(base::ReadFile(file.path()));
  return read_gguf_tokenizer(header.metadata);
}

std::vector<std::string> texts_of(const text::Tokenizer& tokenizer, const text::TokenizerSpec& spec,
                                  std::string_view text) {
  std::vector<std::string> texts;
  for (const TokenId id : tokenizer.encode(text)) {
    texts.push_back(spec.tokens[static_cast<std::size_t>(id)]);
  }
  return texts;
}

void check_refused(const GgufWriter& file, const std::string& part) {
  check_unreadable(part, [&] { return read(file); });
}

TEST_CASE("A tokenizer is read as it was written") {
  const Family family = GENERATE(Family::kLlama, Family::kQwen3);
  const TinyModel model = test::make_tiny_model({.family = family});
  const text::TokenizerSpec spec = read(model.gguf());
  CHECK(spec.tokens == model.tokenizer.tokens);
  CHECK(spec.kinds == model.tokenizer.kinds);
  CHECK(spec.merges == model.tokenizer.merges);
  CHECK(spec.pre == model.tokenizer.pre);
  CHECK(spec.normalize_nfc == model.tokenizer.normalize_nfc);
  CHECK_FALSE(spec.ignore_merges);
  CHECK_FALSE(spec.add_bos);
  CHECK(spec.bos == 1);
  CHECK(spec.ends == std::vector<TokenId>{2, 0});
}

TEST_CASE("Pre-tokenizers are known by their names") {
  const std::vector<std::pair<const char*, PreTokenizer>> names = {
      {"gpt-2", PreTokenizer::kGpt2},
      {"olmo", PreTokenizer::kGpt2},
      {"smollm", PreTokenizer::kSmolLm},
      {"starcoder", PreTokenizer::kSmolLm},
      {"llama-bpe", PreTokenizer::kLlama3},
      {"llama3", PreTokenizer::kLlama3},
      {"llama-v3", PreTokenizer::kLlama3},
      {"qwen2", PreTokenizer::kQwen2},
      {"deepseek-r1-qwen", PreTokenizer::kQwen2},
      {"bloom", PreTokenizer::kBloom},
      {"tekken", PreTokenizer::kTekken}};
  for (const auto& [name, pre] : names) {
    GgufWriter file = tiny();
    file.set_string("tokenizer.ggml.pre", name).erase("tokenizer.ggml.add_bos_token");
    const text::TokenizerSpec spec = read(file);
    CHECK(spec.pre == pre);
    CHECK(spec.normalize_nfc == (pre == PreTokenizer::kQwen2));
    CHECK(spec.ignore_merges == (pre == PreTokenizer::kLlama3 || pre == PreTokenizer::kTekken));
    CHECK(spec.add_bos == (pre == PreTokenizer::kLlama3));
  }
  for (const char* name : {"default", "gpt-4o", ""}) {
    GgufWriter file = tiny();
    file.set_string("tokenizer.ggml.pre", name);
    check_refused(file, "tokenizer.ggml.pre is '" + std::string(name) + "'");
    check_refused(file, "it knows gpt-2, ");
  }
}

TEST_CASE("Another kind of tokenizer is refused") {
  GgufWriter file = tiny();
  file.set_string("tokenizer.ggml.model", "bert");
  check_refused(file, "of the kind 'bert'");
}

TEST_CASE("SentencePiece's BPE merges by scores and marks spaces") {
  GgufWriter file = fuzz::small_gguf("llama");
  text::TokenizerSpec spec = read(file);
  CHECK(spec.model == text::TokenizerModel::kCharacterBpe);
  CHECK(spec.kinds[4] == text::TokenKind::kByte);
  CHECK(spec.kinds[260] == text::TokenKind::kUserDefined);
  CHECK(spec.scores.size() == spec.tokens.size());
  CHECK(spec.add_bos);
  CHECK_FALSE(spec.add_eos);
  CHECK(spec.unknown == 0);
  CHECK(spec.eos == 2);
  const text::Tokenizer tokenizer(spec);
  CHECK(texts_of(tokenizer, spec, "the ab") ==
        std::vector<std::string>{"<s>", "\u2581the", "\u2581a", "b"});
  CHECK(texts_of(tokenizer, spec, "a\n\nz<s>") ==
        std::vector<std::string>{"<s>", "\u2581a", "\n\n", "\u2581", "<0x7A>", "<s>"});
  CHECK(tokenizer.decode(tokenizer.encode(" the z")) == " the z");

  file.set_bool("tokenizer.ggml.add_space_prefix", false)
      .set_bool("tokenizer.ggml.add_eos_token", true)
      .set_bool("tokenizer.ggml.add_bos_token", false)
      .erase("tokenizer.ggml.unknown_token_id");
  spec = read(file);
  CHECK(spec.unknown == 0);  // by its name
  CHECK(texts_of(text::Tokenizer(spec), spec, "the") == std::vector<std::string>{"the", "</s>"});
}

TEST_CASE("Runs of spaces that a converter wrote out are marked again") {
  GgufWriter file = fuzz::small_gguf("llama");
  text::TokenizerSpec spec = read(file);
  REQUIRE(spec.tokens[262] == "\u2581\u2581");
  spec.tokens[262] = "  ";
  file.set_strings("tokenizer.ggml.tokens", spec.tokens);
  CHECK(read(file).tokens[262] == "\u2581\u2581");
  CHECK(texts_of(text::Tokenizer(read(file)), spec, "a  b").at(2) == "  ");
}

TEST_CASE("Merges that a file of SentencePiece lists go before its scores") {
  GgufWriter file = fuzz::small_gguf("llama");
  file.set_strings("tokenizer.ggml.merges", {"t h"});
  const text::TokenizerSpec spec = read(file);
  CHECK(spec.scores.empty());
  CHECK(texts_of(text::Tokenizer(spec), spec, "the") ==
        std::vector<std::string>{"<s>", "\u2581", "th", "e"});
}

TEST_CASE("A unigram model ends its texts") {
  GgufWriter file = fuzz::small_gguf("t5");
  const text::TokenizerSpec spec = read(file);
  CHECK(spec.model == text::TokenizerModel::kUnigram);
  CHECK_FALSE(spec.add_bos);
  CHECK(texts_of(text::Tokenizer(spec), spec, "the a") ==
        std::vector<std::string>{"\u2581the", "\u2581a", "</s>"});
  file.set_bool("tokenizer.ggml.remove_extra_whitespaces", true);
  CHECK(texts_of(text::Tokenizer(read(file)), spec, " the   a ") ==
        std::vector<std::string>{"\u2581the", "\u2581a", "</s>"});
  file.set_string("tokenizer.ggml.precompiled_charsmap", "x");
  check_refused(file, "precompiled_charsmap");
}

TEST_CASE("Scores are numbers, one for each token, and of tokens that can be merged") {
  for (const char* model : {"llama", "t5"}) {
    GgufWriter file = fuzz::small_gguf(model);
    file.set_i32s("tokenizer.ggml.scores", {1});
    check_refused(file, "no list of f32");
    file.erase("tokenizer.ggml.scores");
    check_refused(file, "'tokenizer.ggml.scores' is missing");
    file.set("tokenizer.ggml.scores", test::GgufType::kArray,
             test::gguf_array(test::GgufType::kF32, 1, test::raw_bytes(1.0f)));
    check_refused(file, "1 scores");
    GgufWriter missing = fuzz::small_gguf(model);
    missing.set_u32("tokenizer.ggml.unknown_token_id", 9999);
    check_refused(missing, "tokenizer.ggml.unknown_token_id");
  }
}

TEST_CASE("Kinds of tokens are told apart") {
  GgufWriter file = tiny();
  std::vector<std::int32_t> types(296, 1);
  types[0] = 2;
  types[1] = 3;
  types[2] = 4;
  types[3] = 5;
  file.set_i32s("tokenizer.ggml.token_type", types);
  const text::TokenizerSpec spec = read(file);
  CHECK(spec.kinds[0] == text::TokenKind::kControl);
  CHECK(spec.kinds[1] == text::TokenKind::kControl);
  CHECK(spec.kinds[2] == text::TokenKind::kUserDefined);
  CHECK(spec.kinds[3] == text::TokenKind::kUnused);
  CHECK(spec.kinds[4] == text::TokenKind::kNormal);
  for (const std::int32_t type : {-1, 0, 6, 7}) {
    types[5] = type;
    file.set_i32s("tokenizer.ggml.token_type", types);
    check_refused(file, "holds " + std::to_string(type));
  }
  types.pop_back();
  file.set_i32s("tokenizer.ggml.token_type", types);
  check_refused(file, "295 token types");
}

TEST_CASE("Every list of a vocabulary has to be there and of its type") {
  for (const char* key : {"tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens",
                          "tokenizer.ggml.token_type", "tokenizer.ggml.merges"}) {
    GgufWriter file = tiny();
    file.erase(key);
    check_refused(file, std::string("'") + key + "' is missing");
    file.set_f32(key, 1.0f);
    check_refused(file, std::string("'") + key + "'");
  }
  GgufWriter numbers = tiny();
  numbers.set_i32s("tokenizer.ggml.tokens", std::vector<std::int32_t>(296, 1));
  check_refused(numbers, "no list of strings");
  GgufWriter strings = tiny();
  strings.set_strings("tokenizer.ggml.token_type", {"1"});
  check_refused(strings, "no list of i32");
}

TEST_CASE("Special ids are ids of tokens") {
  for (const char* key : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                          "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    for (const std::uint32_t id : {296u, 0x7fffffffu, 0xffffffffu}) {
      GgufWriter file = tiny();
      file.set_u32(key, id);
      check_refused(file, key);
    }
    GgufWriter negative = tiny();
    negative.set(key, test::GgufType::kI32, test::raw_bytes(std::int32_t{-1}));
    check_refused(negative, "is negative");
  }
}

TEST_CASE("The end of a turn and of a message end a text as well") {
  GgufWriter file = tiny();
  file.set_u32("tokenizer.ggml.eot_token_id", 7).set_u32("tokenizer.ggml.eom_token_id", 8);
  CHECK(read(file).ends == std::vector<TokenId>{2, 7, 8, 0});
  file.erase("tokenizer.ggml.eos_token_id");
  CHECK(read(file).ends == std::vector<TokenId>{7, 8, 0, 2});
}

TEST_CASE("A BOS is put in front as the file says") {
  GgufWriter file = tiny();
  file.set_bool("tokenizer.ggml.add_bos_token", true);
  CHECK(read(file).add_bos);
  file.erase("tokenizer.ggml.bos_token_id");
  check_refused(file, "none is named");
  file.set_bool("tokenizer.ggml.add_bos_token", false);
  CHECK(read(file).bos == -1);
}

}  // namespace
}  // namespace incipit::model
