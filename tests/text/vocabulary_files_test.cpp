// SPDX-License-Identifier: Apache-2.0
#include "text/vocabulary_files.h"

#include <utility>

#include "support/catch.h"
#include "text/fixture.h"

namespace incipit::text {
namespace {

using Json = nlohmann::json;

/// The parts of a fixture's tokenizer.json as the older files have them.
VocabularyFiles files_of(const std::string& family, const std::string& tokenizer_class) {
  const Json json = Json::parse(read_fixture(family + ".json"));
  VocabularyFiles files;
  files.vocabulary = json["model"]["vocab"].dump();
  files.merges = "#version: 0.2\n";
  for (const Json& merge : json["model"]["merges"]) {
    files.merges += merge.is_string()
                        ? merge.get<std::string>() + "\n"
                        : merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  }
  Json added = Json::object();
  for (const Json& token : json["added_tokens"]) added[token["content"]] = token["id"];
  files.added_tokens = added.dump();
  files.special_tokens_map =
      Json{{"eos_token", "<|endoftext|>"},
           {"additional_special_tokens", {"<|im_start|>", {{"content", "<|im_end|>"}}}}}
          .dump();
  files.tokenizer_config = Json{{"tokenizer_class", tokenizer_class}}.dump();
  return files;
}

TEST_CASE("the older files give the tokenizer of the newer one") {
  const std::string expected = Tokenizer(spec_of("qwen2")).fingerprint();
  const TokenizerSpec spec = parse_vocabulary_files(files_of("qwen2", "Qwen2TokenizerFast"));
  CHECK(spec.tokens == spec_of("qwen2").tokens);
  CHECK(spec.kinds == spec_of("qwen2").kinds);
  CHECK(Tokenizer(spec).fingerprint() == expected);

  VocabularyFiles gpt2 = files_of("gpt2", "GPT2Tokenizer");
  gpt2.special_tokens_map = R"({"eos_token": "<|endoftext|>"})";
  CHECK(Tokenizer(parse_vocabulary_files(gpt2)).encode("It's 1<|endoftext|>") ==
        tokenizer_of("gpt2").encode("It's 1<|endoftext|>"));
}

TEST_CASE("the model's type says what the configuration does not") {
  VocabularyFiles files = files_of("gpt2", "");
  files.special_tokens_map.clear();
  files.tokenizer_config.clear();
  for (const char* type : {"gpt2", "opt"}) {
    files.model_type = type;
    CHECK(parse_vocabulary_files(files).pre == PreTokenizer::kGpt2);
  }
  files.model_type = "qwen2";
  CHECK(parse_vocabulary_files(files).pre == PreTokenizer::kQwen2);
  files.model_type = "bert";
  const auto failure = failure_of([&] { parse_vocabulary_files(files); });
  CHECK(failure.code == ErrorCode::kModelUnreadable);
  CHECK_THAT(failure.message, Catch::Contains("'bert'") && Catch::Contains("GPT2Tokenizer"));
}

TEST_CASE("a configuration adds a BOS, a space, and rules of tokens") {
  VocabularyFiles files = files_of("gpt2", "GPT2Tokenizer");
  files.special_tokens_map.clear();
  Json config = {{"tokenizer_class", "GPT2Tokenizer"},
                 {"add_bos_token", true},
                 {"bos_token", {{"content", "<|endoftext|>"}, {"normalized", true}}},
                 {"add_prefix_space", true}};
  files.added_tokens.clear();
  files.tokenizer_config = config.dump();
  TokenizerSpec spec = parse_vocabulary_files(files);
  CHECK(spec.add_bos);
  CHECK(spec.tokens[static_cast<std::size_t>(spec.bos)] == "<|endoftext|>");
  CHECK(spec.rules.at(spec.bos).normalized);
  CHECK(Tokenizer(spec).decode(Tokenizer(spec).encode("a")) == " a");

  config["add_eos_token"] = true;
  config["eos_token"] = "<|endoftext|>";
  config["added_tokens_decoder"] = {{"2000", {{"content", "<x>"}, {"lstrip", true}}}};
  files.tokenizer_config = config.dump();
  spec = parse_vocabulary_files(files);
  CHECK(spec.eos == spec.bos);
  CHECK(spec.add_eos);
  CHECK(spec.tokens.at(2000) == "<x>");
  CHECK(spec.kinds.at(2000) == TokenKind::kUserDefined);
  CHECK(spec.rules.at(2000).strip_left);
}

TEST_CASE("what is damaged or contradicts itself is refused") {
  const auto refuses = [](std::string VocabularyFiles::*file, std::string text, const char* why) {
    VocabularyFiles files = files_of("qwen2", "Qwen2Tokenizer");
    files.*file = std::move(text);
    const auto failure = failure_of([&] { Tokenizer{parse_vocabulary_files(files)}; });
    CHECK(failure.code == ErrorCode::kModelUnreadable);
    CHECK_THAT(failure.message, Catch::Contains(why));
  };
  refuses(&VocabularyFiles::vocabulary, "{", "no JSON");
  refuses(&VocabularyFiles::vocabulary, "[]", "no vocabulary");
  refuses(&VocabularyFiles::merges, "a\n", "two tokens");
  refuses(&VocabularyFiles::added_tokens, R"({"<a>": -1})", "the id -1");
  refuses(&VocabularyFiles::special_tokens_map, R"({"eos_token": "<none>"})", "<none>");
  const auto config = &VocabularyFiles::tokenizer_config;
  refuses(config, R"({"tokenizer_class": "BertTokenizer"})", "BertTokenizer");
  refuses(config, R"({"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": {"x": {}}})",
          "with id x");
  refuses(config, R"({"tokenizer_class": "Qwen2Tokenizer", "add_bos_token": true})", "bos_token");
}

}  // namespace
}  // namespace incipit::text
