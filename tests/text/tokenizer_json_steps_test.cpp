// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer_json_steps.h"

#include "support/catch.h"
#include "text/fixture.h"

namespace incipit::text {
namespace {

using Kind = NormalizerStep::Kind;

constexpr const char* kMark = "\u2581";

std::vector<Kind> kinds_of(const std::vector<NormalizerStep>& steps) {
  std::vector<Kind> kinds;
  for (const NormalizerStep& step : steps) kinds.push_back(step.kind);
  return kinds;
}

TokenizerSpec with(void (*read)(const Json&, TokenizerSpec&), const char* text,
                   TokenizerSpec spec = {}) {
  read(Json::parse(text), spec);
  return spec;
}

void refuses(void (*read)(const Json&, TokenizerSpec&), const char* text, const char* why) {
  const auto failure = failure_of([&] { with(read, text); });
  CHECK(failure.code == ErrorCode::kModelUnreadable);
  CHECK_THAT(failure.message, Catch::Contains(why));
}

TEST_CASE("LLaMA 2 marks spaces by its normaliser, and finds its tokens behind it") {
  const TokenizerSpec spec = spec_of("llama2");
  CHECK(spec.model == TokenizerModel::kCharacterBpe);
  CHECK(kinds_of(spec.normalizer) == std::vector{Kind::kPrepend, Kind::kReplace});
  CHECK(spec.spacing.empty());
  CHECK(spec.rules.size() == 3);
  CHECK(spec.rules.at(1).normalized);
  CHECK(spec.unknown == 0);
  CHECK(spec.fuse_unknown);
  CHECK(spec.space == kMark);
  CHECK(spec.strip_space);
  CHECK(spec.add_bos);
  CHECK_FALSE(spec.add_eos);
  CHECK(std::count(spec.kinds.begin(), spec.kinds.end(), TokenKind::kByte) == 256);
}

TEST_CASE("Mistral marks spaces by Metaspace, in front of a whole text only") {
  const TokenizerSpec spec = spec_of("mistral");
  CHECK(spec.normalizer.empty());
  CHECK(kinds_of(spec.spacing) == std::vector{Kind::kReplace, Kind::kPrependMissing});
  CHECK(spec.spacing_at_begin_only);
  CHECK(spec.split_before.empty());
}

TEST_CASE("Gemma puts nothing in front and strips nothing") {
  const TokenizerSpec spec = spec_of("gemma");
  CHECK(kinds_of(spec.normalizer) == std::vector{Kind::kReplace});
  CHECK(spec.spacing.empty());
  CHECK_FALSE(spec.strip_space);
}

TEST_CASE("Phi-3's tokens strip white space") {
  const TokenizerSpec spec = spec_of("phi3");
  CHECK_FALSE(spec.add_bos);
  CHECK(spec.rules.at(2).strip_right);
  CHECK(spec.rules.size() == 5);
}

TEST_CASE("unigram models have scores, and words of their own") {
  const TokenizerSpec spec = spec_of("unigram");
  CHECK(spec.model == TokenizerModel::kUnigram);
  CHECK(spec.scores.size() == spec.tokens.size());
  CHECK(spec.unknown == 2);
  CHECK(spec.split_before == kMark);
  CHECK_FALSE(spec.spacing_at_begin_only);
  CHECK(kinds_of(spec_of("xlnet").spacing) == std::vector{Kind::kMarkWords});
  CHECK(kinds_of(spec_of("xlnet").normalizer) == std::vector{Kind::kReplace, Kind::kNfkd,
                                                             Kind::kStripAccents, Kind::kLowerCase,
                                                             Kind::kReplaceSpaceRuns});
}

TEST_CASE("normalizers are read step by step") {
  CHECK(with(read_normalizer, R"({"type": "NFC"})").normalize_nfc);
  CHECK(with(read_normalizer, R"({"type": "Sequence", "normalizers": [{"type": "NFC"}]})")
            .normalize_nfc);
  CHECK(with(read_normalizer, R"({"type": "Sequence", "normalizers": []})").normalizer.empty());
  const auto strip = with(read_normalizer, R"({"type": "Strip", "strip_left": false})");
  CHECK(kinds_of(strip.normalizer) == std::vector{Kind::kStripRight});
  const auto both = with(read_normalizer, R"({"type": "Sequence", "normalizers":
      [{"type": "NFKC"}, {"type": "Replace", "pattern": {"String": "a"}, "content": "b"}]})");
  CHECK(kinds_of(both.normalizer) == std::vector{Kind::kNfkc, Kind::kReplace});
  CHECK(both.normalizer[1].text == "a");
  CHECK(both.normalizer[1].by == "b");
  refuses(read_normalizer, R"({"type": "Precompiled", "precompiled_charsmap": ""})", "Precompiled");
  refuses(read_normalizer, R"({"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""})",
          "a+");
  refuses(read_normalizer, R"({"type": "BertNormalizer"})", "BertNormalizer");
  refuses(read_normalizer, R"({"type": "Sequence", "normalizers": [{"type": "Sequence"}]})",
          "Sequence");
}

TEST_CASE("a Metaspace says when something comes in front") {
  const auto spec = with(read_pre_tokenizer,
                         R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false})");
  CHECK(kinds_of(spec.spacing) == std::vector{Kind::kReplace});
  CHECK(spec.split_before == "_");
  CHECK(with(read_pre_tokenizer, R"({"type": "Metaspace", "replacement": "_"})").spacing.size() ==
        2);
  refuses(read_pre_tokenizer,
          R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"})", "last");
  refuses(read_pre_tokenizer, R"({"type": "Metaspace"})", "Metaspace");
  refuses(read_pre_tokenizer, R"({"type": "Sequence", "pretokenizers": [
      {"type": "WhitespaceSplit"},
      {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}]})",
          "WhitespaceSplit");
  refuses(read_pre_tokenizer, R"({"type": "Sequence", "pretokenizers": [
      {"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "_", "split": false}]})",
          "does not split");
  refuses(read_pre_tokenizer, R"({"type": "Metaspace", "replacement": "__"})", "not one character");
  refuses(read_pre_tokenizer, R"({"type": "Whitespace"})", "Whitespace");
}

TEST_CASE("a cut at spaces means nothing only where there are none") {
  constexpr const char* kSplit = R"({"type": "Split", "pattern": {"String": " "},
                                     "behavior": "MergedWithPrevious", "invert": false})";
  TokenizerSpec marked;
  marked.normalizer = {{Kind::kReplace, " ", kMark}};
  CHECK(with(read_pre_tokenizer, kSplit, marked).spacing.empty());
  refuses(read_pre_tokenizer, kSplit, "Split");
}

TEST_CASE("byte-level text may begin with a space") {
  const auto spec = with(read_byte_level_pre_tokenizer, R"({"type": "ByteLevel"})");
  CHECK(kinds_of(spec.spacing) == std::vector{Kind::kPrependMissing});
  refuses(read_byte_level_pre_tokenizer, R"({"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true}, {"type": "ByteLevel"}]})",
          "Digits");
}

TEST_CASE("templates put one token on either side") {
  const auto spec = with(read_post_processor, R"({"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}},
                 {"SpecialToken": {"id": "</s>"}}],
      "special_tokens": {"<s>": {"ids": [1]}, "</s>": {"ids": [2]}}})");
  CHECK(spec.bos == 1);
  CHECK(spec.eos == 2);
  CHECK(spec.add_bos);
  CHECK(spec.add_eos);
  refuses(read_post_processor, R"({"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "a"}}, {"SpecialToken": {"id": "a"}},
                 {"Sequence": {"id": "A"}}], "special_tokens": {"a": {"ids": [1]}}})",
          "template");
  refuses(read_post_processor, R"({"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "a"}}, {"Sequence": {"id": "A"}}],
      "special_tokens": {"a": {"ids": [1, 2]}}})",
          "several ids");
}

TEST_CASE("decoders are those that undo what the encoder does") {
  const auto metaspace = with(read_decoder, R"({"type": "Metaspace", "replacement": "_"})");
  CHECK(metaspace.space == "_");
  CHECK(metaspace.strip_space);
  refuses(read_decoder, R"({"type": "WordPiece"})", "WordPiece");
  refuses(read_decoder, R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})", "Strip");
  refuses(read_decoder, R"({"type": "Sequence", "decoders": [{"type": "Fuse"},
      {"type": "Strip", "content": " ", "start": 2, "stop": 0}]})",
          "Strip");
  refuses(read_decoder, R"({"type": "Replace", "pattern": {"String": "a"}, "content": "b"})",
          "Replace");
  refuses(read_decoder, R"({"type": "Metaspace"})", "not one character");
  refuses(read_decoder, R"({"type": "Metaspace", "replacement": "__"})", "not one character");
}

}  // namespace
}  // namespace incipit::text
