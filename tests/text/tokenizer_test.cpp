// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <algorithm>
#include <functional>
#include <set>

#include "support/catch.h"
#include "text/fixture.h"
#include "text/nfc.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

std::vector<TokenId> encode_content(const Tokenizer& tokenizer, const std::string& text) {
  const TextPiece piece{text, false};
  return tokenizer.encode(std::span(&piece, 1));
}

/// The id of a token of the fixture vocabularies.
TokenId id_of(const std::string& family, const std::string& token) {
  const TokenizerSpec spec = spec_of(family);
  const auto found = std::find(spec.tokens.begin(), spec.tokens.end(), token);
  REQUIRE(found != spec.tokens.end());
  return static_cast<TokenId>(found - spec.tokens.begin());
}

TEST_CASE("encoding equals Hugging Face's on the corpus") {
  const std::vector<std::string> strings = corpus();
  for (const char* family : kFamilies) {
    const Tokenizer tokenizer = tokenizer_of(family);
    const auto expected = expected_ids(family);
    REQUIRE(expected.size() == strings.size());
    for (std::size_t i = 0; i < strings.size(); ++i) {
      if (tokenizer.encode(strings[i]) != expected[i]) FAIL_CHECK(family << ": " << strings[i]);
    }
  }
}

TEST_CASE("decoding gives the text back, normalised where the tokenizer normalises") {
  std::set<char> known;  // bytes that have a token in the vocabulary that lacks some
  const Tokenizer smollm = tokenizer_of("smollm");
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    if (!encode_content(smollm, text).empty()) known.insert(text[0]);
  }
  CHECK(known.size() < 256);
  for (const char* family : kFamilies) {
    const Tokenizer tokenizer = tokenizer_of(family);
    for (const std::string& text : corpus()) {
      std::string expected = text;
      if (std::string_view(family) == "qwen2") expected = NfcText(text).text();
      if (std::string_view(family) == "smollm") {
        std::erase_if(expected, [&](char byte) { return !known.contains(byte); });
        if (valid_front(expected) != expected.size()) continue;
      }
      if (tokenizer.decode(encode_content(tokenizer, text)) != expected) {
        FAIL_CHECK(family << ": " << text);
      }
    }
  }
}

TEST_CASE("any bytes come back from their tokens") {
  const Tokenizer tokenizer = tokenizer_of("gpt2");
  std::mt19937 random(23);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_bytes(random, 30) + random_text(random, 3);
    if (bytes_of(tokenizer, encode_content(tokenizer, text)) != text) FAIL_CHECK(round);
  }
}

TEST_CASE("invalid UTF-8 stands alone, byte by byte") {
  const Tokenizer tokenizer = tokenizer_of("qwen2");
  const auto encode = [&](std::string_view text) { return tokenizer.encode(text); };
  const auto with_bytes = [&](std::string_view before, std::string_view bad,
                              std::string_view behind) {
    std::vector<TokenId> ids = encode(before);
    for (const char byte : bad) ids = joined(std::move(ids), encode({&byte, 1}));
    return joined(std::move(ids), encode(behind));
  };
  CHECK(encode("the\xff the") == with_bytes("the", "\xff", " the"));
  CHECK(encode("e\xe4\xb8\u0301") == with_bytes("e", "\xe4\xb8", "\u0301"));
  CHECK(encode("\xed\xa0\x80") == with_bytes("", "\xed\xa0\x80", ""));
  CHECK(encode("the \xc0\x80  the") == with_bytes("the ", "\xc0\x80", "  the"));
  CHECK(tokenizer.decode(encode("a\xf0\x9f")) == "a\uFFFD");
}

TEST_CASE("embedded zero bytes are text like any other") {
  const Tokenizer tokenizer = tokenizer_of("llama3");
  const std::string text("a\0b\0\0 c", 7);
  CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
}

TEST_CASE("raw text has special tokens and the BOS, and decoding leaves control tokens out") {
  const Tokenizer tokenizer = tokenizer_of("llama3");
  const TokenId bos = id_of("llama3", "<|begin_of_text|>"), eot = id_of("llama3", "<|eot_id|>");
  CHECK(tokenizer.bos() == bos);
  CHECK(tokenizer.encode("") == std::vector<TokenId>{bos});
  CHECK(tokenizer.encode("<|begin_of_text|><|eot_id|>") == std::vector<TokenId>{bos, bos, eot});
  CHECK(tokenizer.decode(tokenizer.encode("hello<|eot_id|>hello")) == "hellohello");
  CHECK(tokenizer.bytes_of(eot).empty());
  CHECK(tokenizer_of("gpt2").bos() == -1);
  CHECK(tokenizer_of("gpt2").encode("").empty());
}

TEST_CASE("user-defined tokens are recognised in raw text and kept in decoded text") {
  const Tokenizer tokenizer = tokenizer_of("qwen2");
  const TokenId think = id_of("qwen2", "<think>"), line = id_of("qwen2", "<think>\n");
  CHECK(tokenizer.encode("<think><think>\n") == std::vector<TokenId>{think, line});
  CHECK(tokenizer.decode(tokenizer.encode("<think>a<think>\n")) == "<think>a<think>\n");
}

TEST_CASE("pieces are one text, and only control pieces have special tokens") {
  const Tokenizer tokenizer = tokenizer_of("smollm");
  const TokenId begin = id_of("smollm", "<|im_start|>"), end = id_of("smollm", "<|im_end|>");
  const auto has_special = [&](const std::vector<TokenId>& ids) {
    return std::any_of(ids.begin(), ids.end(),
                       [&](TokenId id) { return id == begin || id == end; });
  };
  using Pieces = std::vector<TextPiece>;
  CHECK(tokenizer.encode(Pieces{}).empty());
  CHECK(tokenizer.encode(Pieces{{"the <|im_end|> the", true}}) ==
        tokenizer.encode("the <|im_end|> the"));

  const auto content = tokenizer.encode(Pieces{{"<|im_start|>the<|im_end|>", false}});
  CHECK_FALSE(has_special(content));
  CHECK(tokenizer.decode(content) == "<|im_start|>the<|im_end|>");
  CHECK_FALSE(has_special(tokenizer.encode(Pieces{{"<|im_", true}, {"start|>", false}})));
  CHECK_FALSE(has_special(tokenizer.encode(Pieces{{"<|im_", true}, {"start|>", true}})));

  // Tokenized across the borders: "the" in three pieces is one token, and so with its space.
  CHECK(tokenizer.encode(Pieces{{" t", false}, {"h", true}, {"e", false}}) ==
        tokenizer.encode(" the"));
  CHECK(tokenizer.encode(Pieces{{"<|im_start|>a ", true}, {"", false}, {" b<|im_end|>", true}}) ==
        tokenizer.encode("<|im_start|>a  b<|im_end|>"));
}

TEST_CASE("without special texts, one content piece is the raw text") {
  const std::vector<std::string> strings = corpus();
  const Tokenizer tokenizer = tokenizer_of("gpt2");
  for (const std::string& text : strings) {
    if (text.find("<|endoftext|>") != std::string::npos) continue;
    if (encode_content(tokenizer, text) != tokenizer.encode(text)) FAIL_CHECK(text);
  }
}

TEST_CASE("merges are ignored for a pre-token that is a token") {
  TokenizerSpec spec = spec_of("llama3");
  const TokenId word = id_of("llama3", "\u0120unmergeable");
  REQUIRE(spec.ignore_merges);
  CHECK(encode_content(Tokenizer(spec), " unmergeable") == std::vector<TokenId>{word});
  spec.ignore_merges = false;
  CHECK(encode_content(Tokenizer(spec), " unmergeable").size() > 1);
}

TEST_CASE("ends and sizes are those of the spec") {
  TokenizerSpec spec = spec_of("qwen2");
  const std::size_t count = spec.tokens.size();
  spec.ends = {0, 2};
  const Tokenizer tokenizer(spec);
  CHECK(tokenizer.vocabulary() == count);
  CHECK(tokenizer.is_end(0));
  CHECK_FALSE(tokenizer.is_end(1));
  CHECK(tokenizer.is_end(2));
  CHECK_FALSE(tokenizer.is_end(-1));
}

TEST_CASE("an unknown id is an error that names it") {
  const Tokenizer tokenizer = tokenizer_of("gpt2");
  const auto last = static_cast<TokenId>(tokenizer.vocabulary()) - 1;
  CHECK_NOTHROW(tokenizer.bytes_of(last));
  for (const TokenId id : {TokenId{-1}, last + 1, TokenId{INT32_MAX}, TokenId{INT32_MIN}}) {
    const auto failure = failure_of([&] { tokenizer.bytes_of(id); });
    CHECK(failure.code == ErrorCode::kInvalidArgument);
    CHECK_THAT(failure.message, Catch::Contains(std::to_string(id)));
    CHECK_THROWS_AS(tokenizer.decode(std::vector<TokenId>{0, id}), Error);
  }
}

TEST_CASE("a spec that contradicts itself is refused") {
  const auto code_of = [](const std::function<void(TokenizerSpec&)>& change) {
    TokenizerSpec spec = spec_of("gpt2");
    change(spec);
    return failure_of([&] { Tokenizer{spec}; }).code;
  };
  const auto count = static_cast<TokenId>(spec_of("gpt2").tokens.size());
  CHECK(code_of([](auto& spec) { spec = {}; }) == ErrorCode::kModelUnreadable);
  CHECK(code_of([](auto& spec) { spec.kinds.pop_back(); }) == ErrorCode::kModelUnreadable);
  CHECK(code_of([](auto& spec) { spec.merges.push_back("x"); }) == ErrorCode::kModelUnreadable);
  CHECK(code_of([](auto& spec) { spec.add_bos = true; }) == ErrorCode::kModelUnreadable);
  CHECK(code_of([](auto& spec) { spec.bos = -2; }) == ErrorCode::kModelUnreadable);
  CHECK(code_of([&](auto& spec) { spec.bos = count; }) == ErrorCode::kModelUnreadable);
  CHECK(code_of([&](auto& spec) { spec.ends = {0, count}; }) == ErrorCode::kModelUnreadable);
  CHECK(code_of([](auto& spec) { spec.ends = {-1}; }) == ErrorCode::kModelUnreadable);
}

TEST_CASE("the fingerprint is that of everything that decides ids, and of nothing else") {
  const TokenizerSpec spec = spec_of("qwen2");
  const std::string fingerprint = Tokenizer(spec).fingerprint();
  CHECK(fingerprint.size() == 32);
  CHECK(Tokenizer(spec).fingerprint() == fingerprint);

  const std::vector<std::function<void(TokenizerSpec&)>> changes = {
      [](auto& changed) { changed.pre = PreTokenizer::kLlama3; },
      [](auto& changed) { changed.normalize_nfc = false; },
      [](auto& changed) { changed.ignore_merges = true; },
      [](auto& changed) { changed.bos = 0; },
      [](auto& changed) { changed.bos = 0, changed.add_bos = true; },
      [](auto& changed) { changed.tokens[2] += "x"; },
      [](auto& changed) { changed.kinds[2] = TokenKind::kUserDefined; },
      [](auto& changed) { changed.kinds[2] = TokenKind::kUnused; },
      [](auto& changed) { changed.merges.pop_back(); },
      [](auto& changed) { std::swap(changed.merges[0], changed.merges[1]); },
      [](auto& changed) { changed.rules[0] = {.strip_left = true}; },
      [](auto& changed) { changed.rules[0] = {.strip_right = true}; },
      [](auto& changed) { changed.rules[0] = {.whole_word = true}; },
      [](auto& changed) { changed.rules[0] = {.normalized = true}; },
      [](auto& changed) { changed.rules[1] = {.normalized = true}; },
      [](auto& changed) { changed.eos = 0, changed.add_eos = true; },
      [](auto& changed) {
        changed.normalizer = {{NormalizerStep::Kind::kLowerCase, {}, {}}};
      },
      [](auto& changed) {
        changed.normalizer = {{NormalizerStep::Kind::kPrepend, {}, "x"}};
      },
      [](auto& changed) {
        changed.normalizer = {{NormalizerStep::Kind::kReplace, "x", ""}};
      },
      [](auto& changed) {
        changed.spacing = {{NormalizerStep::Kind::kPrepend, {}, "x"}};
      },
  };
  std::set<std::string> all = {fingerprint};
  for (const auto& change : changes) {
    TokenizerSpec changed = spec;
    change(changed);
    all.insert(Tokenizer(changed).fingerprint());
  }
  CHECK(all.size() == changes.size() + 1);

  TokenizerSpec other_ends = spec;
  other_ends.ends = {0};
  other_ends.eos = 0;
  CHECK(Tokenizer(other_ends).fingerprint() == fingerprint);
}

TEST_CASE("an EOS comes behind raw text only") {
  const TokenizerSpec spec = spec_of("unigram");
  REQUIRE(spec.add_eos);
  const Tokenizer tokenizer(spec);
  CHECK(tokenizer.encode("a").back() == spec.eos);
  CHECK(encode_content(tokenizer, "a").back() != spec.eos);
  CHECK(tokenizer.encode("") == std::vector<TokenId>{spec.eos});
  CHECK(tokenizer.encode_stable("a b ").ids.back() != spec.eos);
}

TEST_CASE("a moved tokenizer goes on") {
  Tokenizer first = tokenizer_of("gpt2");
  const auto ids = first.encode("It goes on.");
  Tokenizer second = std::move(first);
  CHECK(second.encode("It goes on.") == ids);
  second = tokenizer_of("smollm");
  CHECK(second.fingerprint() == tokenizer_of("smollm").fingerprint());
}

}  // namespace
}  // namespace incipit::text
