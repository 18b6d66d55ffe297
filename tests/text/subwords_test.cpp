// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "support/catch.h"
#include "text/fixture.h"
#include "text/replace.h"
#include "text/stream_decoder.h"
#include "text/subword_fixture.h"
#include "text/tokenizer.h"

// Every kind of tokenizer against Hugging Face's, on more than 5,000 strings
// (tests/reference/make_subword_fixtures.py).

namespace incipit::text {
namespace {

TEST_CASE("every kind encodes and decodes as Hugging Face's tokenizers do") {
  for (const char* family : kAllFamilies) check_equal(tokenizer_of(family), family);
}

TEST_CASE("merges follow from scores where a vocabulary has them instead") {
  TokenizerSpec spec = spec_of("gemma");
  REQUIRE(spec.merges.size() > 200);
  spec.merges.clear();
  for (std::size_t id = 0; id < spec.tokens.size(); ++id) {
    spec.scores.push_back(-static_cast<double>(id));
    // A user-defined token goes first in scores, but stood in its place in the fixture.
    if (spec.kinds[id] == TokenKind::kUserDefined) spec.kinds[id] = TokenKind::kControl;
  }
  const Tokenizer scored(spec);
  spec = spec_of("gemma");
  for (std::size_t id = 0; id < spec.tokens.size(); ++id) {
    if (spec.kinds[id] == TokenKind::kUserDefined) spec.kinds[id] = TokenKind::kNormal;
  }
  const Tokenizer listed(spec);
  for (const std::string& text : all_strings()) {
    if (text.find("<table>") != std::string::npos || text.find("\n\n\n") != std::string::npos) {
      continue;
    }
    if (scored.encode(text) != listed.encode(text)) FAIL_CHECK(nlohmann::json(text));
  }
}

TEST_CASE("texts come back from the models of SentencePiece") {
  for (const char* family : {"llama2", "mistral", "gemma", "phi3", "whole"}) {
    const Tokenizer tokenizer = tokenizer_of(family);
    for (const std::string& text : all_strings()) {
      const TextPiece piece = {text, false};
      const std::string decoded = tokenizer.decode(tokenizer.encode(std::span(&piece, 1)));
      std::string expected = replaced_all(text, "\u2581", " ");
      // Metaspace adds no space to a text that begins with one, and decoding takes one away. The
      // last two tokens are text, but white space before one is stripped, and a space comes in
      // front of what stands behind the other.
      const bool metaspace =
          std::string_view(family) == "mistral" || std::string_view(family) == "whole";
      if (metaspace && expected.starts_with(' ')) expected.erase(0, 1);
      if (text.find("<mask>") != std::string::npos || text.find("<word>") != std::string::npos) {
        continue;
      }
      if (decoded != expected) FAIL_CHECK(family << ": " << nlohmann::json(text));
    }
  }
}

TEST_CASE("decoded token by token, the text is that of the whole") {
  for (const char* family : kAllFamilies) {
    const Tokenizer tokenizer = tokenizer_of(family);
    for (std::size_t i = 0; i < all_strings().size(); i += 7) {
      const std::vector<TokenId> ids = tokenizer.encode(all_strings()[i]);
      StreamDecoder decoder(tokenizer.strips_space());
      std::string text;
      for (const TokenId id : ids) text += decoder.push(tokenizer.bytes_of(id));
      text += decoder.finish();
      if (text != tokenizer.decode(ids)) FAIL_CHECK(family << ": " << text);
    }
  }
}

TEST_CASE("the content of a message never yields special tokens") {
  for (const char* family : kSubwordFamilies) {
    const TokenizerSpec spec = spec_of(family);
    const Tokenizer tokenizer(spec);
    std::string text;
    for (std::size_t id = 0; id < spec.tokens.size(); ++id) {
      if (spec.kinds[id] == TokenKind::kControl) text += spec.tokens[id] + " ";
    }
    const TextPiece piece = {text, false};
    for (const TokenId id : tokenizer.encode(std::span(&piece, 1))) {
      const bool special = spec.kinds[static_cast<std::size_t>(id)] == TokenKind::kControl;
      if (special && id != spec.unknown) FAIL_CHECK(family << ": " << id);
    }
  }
}

TEST_CASE("control pieces have the tokens that are looked for in normalised text as well") {
  const Tokenizer tokenizer = tokenizer_of("llama2");
  const std::vector<TextPiece> pieces = {{"<s>", true}, {"a</s>", false}, {"</s><s>", true}};
  const auto ids = tokenizer.encode(pieces);
  CHECK(ids.front() == 1);
  CHECK(std::vector<TokenId>(ids.end() - 2, ids.end()) == std::vector<TokenId>{2, 1});
  CHECK(tokenizer.decode(ids) == "a</s>");
}

TEST_CASE("user-defined tokens of SentencePiece are text, in messages too") {
  const TokenizerSpec spec = spec_of("gemma");
  const Tokenizer tokenizer(spec);
  const std::vector<TextPiece> pieces = {{"<start_of_turn>", true}, {"<table>a", false}};
  const auto ids = tokenizer.encode(pieces);
  REQUIRE(ids.size() == 3);
  CHECK(spec.tokens[static_cast<std::size_t>(ids[0])] == "<start_of_turn>");
  CHECK(spec.tokens[static_cast<std::size_t>(ids[1])] == "<table>");
  CHECK(tokenizer.decode(ids) == "<table>a");
}

TEST_CASE("bytes that are no text are bytes or unknown, and the text goes on behind them") {
  const Tokenizer tokenizer = tokenizer_of("llama2");
  CHECK(tokenizer.decode(tokenizer.encode("a\xff"
                                          "b \xe4\xb8")) ==
        "a\uFFFD"
        "b \uFFFD");
  const Tokenizer unigram = tokenizer_of("unigram");
  CHECK(unigram.encode("\xff") == std::vector<TokenId>{2, 1});
  std::mt19937 random(37);
  for (const char* family : {"llama2", "gemma", "whole"}) {
    const Tokenizer any = tokenizer_of(family);
    for (int round = 0; round < 500; ++round) {
      std::string text = random_bytes(random, 20);
      text[0] = 'x';
      const std::string bytes = bytes_of(any, any.encode(text));
      CHECK(bytes.ends_with(text));
    }
  }
}

}  // namespace
}  // namespace incipit::text
