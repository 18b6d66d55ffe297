// SPDX-License-Identifier: Apache-2.0
#include "text/vocabulary.h"

#include "support/catch.h"
#include "text/fixture.h"

namespace incipit::text {
namespace {

TokenizerSpec sample() {
  TokenizerSpec spec;
  spec.tokens = {"a", "\u0120a", "<s>", "<t> ", "[PAD]", "", "\u4eba b", "\u00e4\u00b8"};
  spec.kinds = {TokenKind::kNormal,      TokenKind::kNormal, TokenKind::kControl,
                TokenKind::kUserDefined, TokenKind::kUnused, TokenKind::kNormal,
                TokenKind::kNormal,      TokenKind::kNormal};
  return spec;
}

TEST_CASE("a token's bytes are what it adds to a text") {
  const Vocabulary vocabulary(sample(), 0);
  REQUIRE(vocabulary.size() == 8);
  const std::vector<std::string> expected = {"a", " a", "", "<t> ", "", "", "\u4eba b", "\xe4\xb8"};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(vocabulary.bytes_of(static_cast<TokenId>(i)) == expected[i]);
  }
  CHECK(vocabulary.contains(0));
  CHECK(vocabulary.contains(7));
  CHECK_FALSE(vocabulary.contains(8));
  CHECK_FALSE(vocabulary.contains(-1));
}

TEST_CASE("normal tokens are found by their bytes, others never") {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{12345}}) {
    const Vocabulary vocabulary(sample(), seed);
    CHECK(vocabulary.find("a") == 0);
    CHECK(vocabulary.find(" a") == 1);
    CHECK(vocabulary.find("\xe4\xb8") == 7);
    for (const char* absent : {"", "b", "<s>", "<t> ", "[PAD]", "\u4eba b"}) {
      CHECK(vocabulary.find(absent) == -1);
    }
  }
}

TEST_CASE("every token of a real vocabulary is found again") {
  const TokenizerSpec spec = spec_of("llama3");
  const Vocabulary vocabulary(spec, 99);
  for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (spec.kinds[i] == TokenKind::kNormal) CHECK(vocabulary.find(vocabulary.bytes_of(id)) == id);
  }
}

TEST_CASE("a vocabulary of characters writes its tokens as they are, and some bytes") {
  TokenizerSpec spec = sample();
  spec.model = TokenizerModel::kCharacterBpe;
  spec.space = "\u2581";
  spec.tokens[0] = "\u2581a\u2581";
  spec.tokens[5] = "<0x0A>";
  spec.kinds[5] = TokenKind::kByte;
  spec.tokens[7] = "<0xE4>";
  spec.kinds[7] = TokenKind::kByte;
  const Vocabulary vocabulary(spec, 0);
  CHECK(vocabulary.find("\u2581a\u2581") == 0);
  CHECK(vocabulary.text_of(0) == "\u2581a\u2581");
  CHECK(vocabulary.bytes_of(0) == " a ");
  CHECK(vocabulary.find("<t> ") == 3);  // user-defined tokens are text
  CHECK(vocabulary.find("\u4eba b") == 6);
  for (const char* absent : {"<s>", "[PAD]", "<0x0A>", "\n", " a "}) {
    CHECK(vocabulary.find(absent) == -1);
  }
  CHECK(vocabulary.bytes_of(5) == "\n");
  CHECK(vocabulary.text_of(5).empty());
  CHECK(vocabulary.find_byte('\n') == 5);
  CHECK(vocabulary.find_byte('\xe4') == 7);
  CHECK(vocabulary.find_byte('a') == -1);
  for (const char* wrong :
       {"\n", "<0x0>", "<0x0G>", "<0x0a>", "<0x0A0>", "<0x-1>", "<0x 1>", "0x0A"}) {
    spec.tokens[5] = wrong;
    const auto failure = failure_of([&] { Vocabulary(spec, 0); });
    CHECK_THAT(failure.message, Catch::Contains("token 5") && Catch::Contains("<0x0A>"));
  }
  spec.tokens[5] = spec.tokens[7];
  const auto twice = failure_of([&] { Vocabulary(spec, 0); });
  CHECK(twice.code == ErrorCode::kModelUnreadable);
  CHECK_THAT(twice.message, Catch::Contains("tokens 5 and 7"));
}

TEST_CASE("byte tokens are written in one way") {
  CHECK(byte_of_token("<0x00>") == '\0');
  CHECK(byte_of_token("<0xFF>") == '\xff');
  CHECK_FALSE(byte_of_token("<0xff>").has_value());
  CHECK_FALSE(byte_of_token("<0xFG>").has_value());
  CHECK_FALSE(byte_of_token("").has_value());
}

TEST_CASE("an inconsistent vocabulary is refused") {
  const auto refuses = [](const TokenizerSpec& spec, const char* why) {
    const auto failure = failure_of([&] { Vocabulary(spec, 0); });
    CHECK(failure.code == ErrorCode::kModelUnreadable);
    CHECK_THAT(failure.message, Catch::Contains(why));
  };
  refuses({}, "0 tokens");
  TokenizerSpec spec = sample();
  spec.kinds.pop_back();
  refuses(spec, "kinds for 7");
  spec = sample();
  spec.tokens[7] = spec.tokens[0];
  refuses(spec, "tokens 0 and 7");
}

}  // namespace
}  // namespace incipit::text
