// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer_json.h"

#include <functional>

#include "support/catch.h"
#include "text/fixture.h"

namespace incipit::text {
namespace {

using Json = nlohmann::json;

/// A whole file, but small. It has a hole at id 5.
Json sample() {
  return Json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [
      {"id": 3, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": true},
      {"id": 6, "content": "<think>", "single_word": false, "lstrip": false, "rstrip": false,
       "normalized": false, "special": false}],
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                      "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
              "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false,
              "vocab": {"a": 0, "b": 1, "ab": 2, "<s>": 3, "abab": 4},
              "merges": ["a b", ["ab", "ab"]]}})");
}

TokenizerSpec parsed(const Json& json) { return parse_tokenizer_json(json.dump()); }

TEST_CASE("reads every part of a file") {
  const TokenizerSpec spec = parsed(sample());
  CHECK(spec.tokens == std::vector<std::string>{"a", "b", "ab", "<s>", "abab", "", "<think>"});
  using enum TokenKind;
  CHECK(spec.kinds == std::vector<TokenKind>{kNormal, kNormal, kNormal, kControl, kNormal, kUnused,
                                             kUserDefined});
  CHECK(spec.merges == std::vector<std::string>{"a b", "ab ab"});
  CHECK(spec.pre == PreTokenizer::kGpt2);
  CHECK(spec.normalize_nfc);
  CHECK_FALSE(spec.ignore_merges);
  CHECK_FALSE(spec.add_bos);
  CHECK(spec.bos == -1);
  CHECK(spec.ends.empty());
  CHECK(Tokenizer(spec).encode("abab<s>b<think>") == std::vector<TokenId>{4, 3, 1, 6});
}

TEST_CASE("recognises the pre-tokenizers and the BOS in files that Hugging Face wrote") {
  CHECK(spec_of("gpt2").pre == PreTokenizer::kGpt2);
  CHECK(spec_of("smollm").pre == PreTokenizer::kSmolLm);
  CHECK(spec_of("llama3").pre == PreTokenizer::kLlama3);
  CHECK(spec_of("qwen2").pre == PreTokenizer::kQwen2);
  CHECK(spec_of("bloom").pre == PreTokenizer::kBloom);
  CHECK(spec_of("tekken").pre == PreTokenizer::kTekken);
  for (const char* family : kFamilies) {
    const TokenizerSpec spec = spec_of(family);
    const bool llama3 = std::string_view(family) == "llama3";
    CHECK(spec.add_bos == llama3);
    CHECK(spec.bos == (llama3 ? 0 : -1));
    CHECK(spec.ignore_merges == llama3);
    CHECK(spec.normalize_nfc == (std::string_view(family) == "qwen2"));
  }
}

TEST_CASE("a BOS may come behind other steps; a template without one adds none") {
  Json json = sample();
  const Json single_with_bos = Json::parse(
      R"([{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}])");
  Json processor = {
      {"type", "TemplateProcessing"},
      {"single", single_with_bos},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {3}}, {"tokens", {"<s>"}}}}}}};
  json["post_processor"] = {{"type", "Sequence"},
                            {"processors", {{{"type", "ByteLevel"}}, processor}}};
  CHECK(parsed(json).add_bos);
  CHECK(parsed(json).bos == 3);

  processor["single"] = Json::parse(R"([{"Sequence": {"id": "A", "type_id": 0}}])");
  json["post_processor"] = processor;
  CHECK_FALSE(parsed(json).add_bos);
}

TEST_CASE("what the encoder would do otherwise than Hugging Face is refused by name") {
  struct Case {
    const char* what;
    std::function<void(Json&)> change;
  };
  const auto model = [](const char* key, Json value) {
    return [=](Json& json) { json["model"][key] = value; };
  };
  const auto added = [](const char* key, Json value) {
    return [=](Json& json) { json["added_tokens"][0][key] = value; };
  };
  const auto single = [](const char* text) {
    return [=](Json& json) {
      json["post_processor"] = {{"type", "TemplateProcessing"}, {"single", Json::parse(text)}};
    };
  };
  const std::vector<Case> cases = {
      {"WordPiece", model("type", "WordPiece")},
      {"dropout", model("dropout", 0.1)},
      {"continuing_subword_prefix", model("continuing_subword_prefix", "##")},
      {"end_of_word_suffix", model("end_of_word_suffix", "</w>")},
      {"byte_fallback", model("byte_fallback", true)},
      {"unk_token", model("unk_token", "a")},
      {"no vocabulary", model("vocab", nullptr)},
      {"no vocabulary", model("vocab", Json::object())},
      {"merges", model("merges", nullptr)},
      {"merges", model("merges", "a b")},
      {"not two tokens", model("merges", Json::parse("[1]"))},
      {"not two tokens", model("merges", Json::parse(R"([["a", "b", "c"]])"))},
      {"not two tokens", model("merges", Json::parse(R"([["a b", "c"]])"))},
      {"the id -1", model("vocab", {{"a", -1}})},
      {"the id 0.5", model("vocab", {{"a", 0.5}})},
      {"the id 4294967296", model("vocab", {{"a", 4294967296u}})},
      {"the same id 0", model("vocab", {{"a", 0}, {"b", 0}})},
      {"no boolean", model("ignore_merges", 1)},
      {"no model", [](Json& json) { json.erase("model"); }},
      {"no model", [](Json& json) { json = Json::array(); }},
      {"Precompiled",
       [](Json& json) {
         json["normalizer"] = {{"type", "Precompiled"}};
       }},
      {"Bert",
       [](Json& json) {
         json["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
       }},
      {"decoder {\"type\":\"ByteLevel\"}", [](Json& json) { json["pre_tokenizer"] = nullptr; }},
      {"pre_tokenizer", [](Json& json) { json["pre_tokenizer"]["use_regex"] = false; }},
      {"Metaspace",
       [](Json& json) {
         json["decoder"] = {{"type", "Metaspace"}};
       }},
      {"BertProcessing",
       [](Json& json) {
         json["post_processor"] = {{"type", "BertProcessing"}};
       }},
      {"template", single(R"([{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<s>"}}])")},
      {"template", single(R"([{"Sequence": {"id": "B"}}])")},
      {"template", single("[]")},
      {"unknown token", single(R"([{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}])")},
      {"the same id 1", added("id", 1)},
      {"added token", added("content", "")},
      {"added token", added("id", nullptr)},
      {"no string", added("content", 5)},
      {"added_tokens", [](Json& json) { json["added_tokens"] = 5; }},
  };
  for (const auto& [what, change] : cases) {
    Json json = sample();
    change(json);
    const auto failure = failure_of([&] { parsed(json); });
    CHECK(failure.code == ErrorCode::kModelUnreadable);
    CHECK_THAT(failure.message, Catch::Contains(what) && Catch::Contains("tokenizer's JSON"));
  }
}

TEST_CASE("a changed regular expression is not taken for the published one") {
  Json json = Json::parse(read_fixture("llama3.json"));
  Json& pattern = json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"];
  pattern = pattern.get<std::string>() + "|x";
  CHECK_THROWS_AS(parsed(json), Error);
  json = Json::parse(read_fixture("smollm.json"));
  json["pre_tokenizer"]["pretokenizers"][0]["individual_digits"] = false;
  CHECK_THROWS_AS(parsed(json), Error);
}

TEST_CASE("an unk_token is harmless where all bytes are known") {
  Json json = Json::parse(read_fixture("gpt2.json"));
  json["model"]["unk_token"] = "<|endoftext|>";
  CHECK_NOTHROW(parsed(json));
}

TEST_CASE("what is too large or too deep is refused before it is parsed") {
  CHECK_THAT(failure_of([] {
               parse_tokenizer_json(std::string(kMaxTokenizerJsonBytes + 1, ' '));
             }).message,
             Catch::Contains("at most"));
  CHECK_THAT(failure_of([] { parse_tokenizer_json(repeated("[", 1'000'000)); }).message,
             Catch::Contains("nested"));
  CHECK_THAT(failure_of([] { parse_tokenizer_json(repeated("{\"a\":", 100)); }).message,
             Catch::Contains("nested"));
  Json json = sample();
  json["model"]["vocab"]["[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"[["] = 7;
  CHECK_NOTHROW(parsed(json));
}

/// Reads a damaged file; all that may happen is an Error that blames the model.
void survive(const std::string& text) {
  try {
    const Tokenizer tokenizer(parse_tokenizer_json(text));
    tokenizer.encode("abab <s> \u00e9\xff");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kModelUnreadable);
  }
}

TEST_CASE("every front of a file is an error") {
  const std::string text = sample().dump();
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto failure = failure_of([&] { parse_tokenizer_json(text.substr(0, size)); });
    CHECK(failure.code == ErrorCode::kModelUnreadable);
  }
}

TEST_CASE("damaged files cause nothing but errors") {
  const std::string text = sample().dump();
  std::mt19937 random(31);
  std::uniform_int_distribution<std::size_t> any(0, text.size() - 1);
  const std::string bytes = "0123456789-+.eE\"\\[]{}:, abtfn\x80\xff";
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = text;
    for (int i = 0; i <= round % 3; ++i) damaged[any(random)] = bytes[random() % bytes.size()];
    survive(damaged);
  }
}

}  // namespace
}  // namespace incipit::text
