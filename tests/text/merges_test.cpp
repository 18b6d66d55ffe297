// SPDX-License-Identifier: Apache-2.0
#include "text/merges.h"

#include <limits>

#include "support/catch.h"
#include "text/fixture.h"

namespace incipit::text {
namespace {

TokenizerSpec scored(std::vector<std::pair<std::string, double>> tokens) {
  TokenizerSpec spec;
  spec.model = TokenizerModel::kCharacterBpe;
  for (auto& [text, score] : tokens) {
    spec.tokens.push_back(text);
    spec.kinds.push_back(TokenKind::kNormal);
    spec.scores.push_back(score);
  }
  return spec;
}

std::vector<std::string> texts(const TokenizerSpec& spec) {
  std::vector<std::string> texts;
  for (const MergeRule& rule : merges_of(spec, Vocabulary(spec, 1))) {
    texts.push_back(spec.tokens[static_cast<std::size_t>(rule.left)] + " " +
                    spec.tokens[static_cast<std::size_t>(rule.right)]);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST_CASE("pairs that make a token merge in the order of its score") {
  CHECK(texts(scored({{"a", -1}, {"b", -2}, {"ab", -5}, {"ba", -4}, {"x", 0}, {"abc", 0}})) ==
        Texts{"b a", "a b"});
  // Of one token, the pair with the longest left part comes first, in characters.
  CHECK(
      texts(scored({{"\u4eba", -1}, {"a", -2}, {"\u4ebaa", -3}, {"aa", -4}, {"\u4ebaaa", -2.5}})) ==
      Texts{"\u4ebaa a", "\u4eba aa", "\u4eba a", "a a"});
}

TEST_CASE("user-defined tokens come first, control and byte tokens never") {
  TokenizerSpec spec = scored({{"a", -1}, {"aa", -2}, {"b", 0}, {"bb", -1000}, {"ab", 0}});
  spec.kinds[3] = TokenKind::kUserDefined;
  spec.kinds[4] = TokenKind::kControl;
  CHECK(texts(spec) == Texts{"b b", "a a"});
}

TEST_CASE("a list of merges is taken as it is") {
  TokenizerSpec spec = scored({{"a", -1}, {"b", -2}, {"ab", -5}, {"ba", -4}});
  spec.merges = {"a b", "b a"};
  CHECK(texts(spec) == Texts{"a b", "b a"});
}

TEST_CASE("scores that are no finite numbers are refused") {
  using Limits = std::numeric_limits<double>;
  for (const double score : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
    const TokenizerSpec spec = scored({{"a", -1}, {"b", -2}, {"ab", score}});
    const auto failure = failure_of([&] { merges_of(spec, Vocabulary(spec, 1)); });
    CHECK(failure.code == ErrorCode::kModelUnreadable);
    CHECK_THAT(failure.message, Catch::Contains("token 2, \"ab\""));
  }
}

TEST_CASE("what cannot be merged is refused") {
  TokenizerSpec spec = scored({{"a", -1}, {"b", -2}, {"ab", -5}});
  const auto message = [&] {
    const auto failure = failure_of([&] { merges_of(spec, Vocabulary(spec, 1)); });
    CHECK(failure.code == ErrorCode::kModelUnreadable);
    return failure.message;
  };
  spec.merges = {"b a"};
  CHECK_THAT(message(), Catch::Contains("\"b a\", names a token"));
  spec = scored({{std::string(1025, 'a'), -1}});
  CHECK_THAT(message(), Catch::Contains("1025 bytes"));
}

}  // namespace
}  // namespace incipit::text
