// SPDX-License-Identifier: Apache-2.0
#include "text/unigram.h"

#include <limits>
#include <memory>

#include "support/catch.h"
#include "text/fixture.h"

namespace incipit::text {
namespace {

/// Token 0 is the unknown one.
TokenizerSpec small_spec(std::vector<std::pair<std::string, double>> tokens) {
  TokenizerSpec spec;
  spec.model = TokenizerModel::kUnigram;
  spec.tokens = {"?"};
  spec.kinds = {TokenKind::kControl};
  spec.scores = {0};
  spec.unknown = 0;
  for (auto& [text, score] : tokens) {
    spec.tokens.push_back(text);
    spec.kinds.push_back(TokenKind::kNormal);
    spec.scores.push_back(score);
  }
  return spec;
}

std::vector<TokenId> encode(const TokenizerSpec& spec, std::string_view text) {
  const Vocabulary vocabulary(spec, 1);
  const Unigram unigram(vocabulary, spec, 1);
  Unigram::Scratch scratch;
  std::vector<TokenId> ids;
  unigram.encode(text, scratch, ids);
  return ids;
}

using Ids = std::vector<TokenId>;

TEST_CASE("the best sum of scores wins, not the longest token") {
  const TokenizerSpec spec =
      small_spec({{"a", -1}, {"b", -1}, {"c", -1}, {"ab", -1.5}, {"bc", -1.2}, {"abc", -9}});
  CHECK(encode(spec, "").empty());
  CHECK(encode(spec, "ab") == Ids{4});
  CHECK(encode(spec, "abc") == Ids{1, 5});
  CHECK(encode(spec, "cba") == Ids{3, 2, 1});
}

TEST_CASE("of equal ways the one found first stays") {
  CHECK(encode(small_spec({{"a", -1}, {"aa", -2}}), "aa") == Ids{2});
  CHECK(encode(small_spec({{"ab", -1}, {"c", -1}, {"a", -1}, {"bc", -1}}), "abc") == Ids{3, 4});
}

TEST_CASE("unknown characters are one token, or bytes") {
  TokenizerSpec spec = small_spec({{"a", -1}, {"\u4eba", -1}, {"ab", -2}});
  CHECK(encode(spec, "xya\u00e9\u4ebaz") == Ids{0, 1, 0, 2, 0});
  CHECK(encode(spec, "abb") == Ids{3, 0});
  spec.tokens.insert(spec.tokens.end(), {"<0x78>", "<0xC3>", "<0xA9>"});
  spec.kinds.insert(spec.kinds.end(), 3, TokenKind::kByte);
  spec.scores.insert(spec.scores.end(), 3, -3);
  CHECK(encode(spec, "xxa\u00e9") == Ids{4, 4, 1, 5, 6});
  CHECK(encode(spec, "xy") == Ids{0});        // one of them has no byte
  CHECK(encode(spec, "<0x78>").size() == 1);  // text, not a byte
}

TEST_CASE("equals the definition on random texts") {
  std::mt19937 random(43);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::pair<std::string, double>> tokens = {{"a", -3}, {"b", -2.5}, {"c", -4}};
    for (int i = 0; i < 8; ++i) {
      std::string text;
      for (std::size_t size = 2 + random() % 4; size > 0; --size) text += "abc"[random() % 3];
      const bool known = std::any_of(tokens.begin(), tokens.end(),
                                     [&](const auto& token) { return token.first == text; });
      if (!known) tokens.emplace_back(text, -static_cast<double>(random() % 1000) / 100);
    }
    std::string text;
    for (int i = 0; i < 24; ++i) text += "abc"[random() % 3];
    std::vector<double> best(text.size() + 1, -std::numeric_limits<double>::infinity());
    best[0] = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      for (const auto& [token, score] : tokens) {
        if (!std::string_view(text).substr(at).starts_with(token)) continue;
        best[at + token.size()] = std::max(best[at + token.size()], best[at] + score);
      }
    }
    double sum = 0;
    std::string joined;
    const TokenizerSpec spec = small_spec(tokens);
    for (const TokenId id : encode(spec, text)) {
      joined += spec.tokens[static_cast<std::size_t>(id)];
      sum += spec.scores[static_cast<std::size_t>(id)];
    }
    CHECK(joined == text);
    CHECK(sum == Approx(best.back()));
  }
}

TEST_CASE("a long text without a place where all ways meet takes linear time") {
  const std::string text = repeated("a", 1 << 18);
  const TokenizerSpec spec = small_spec({{"a", -1}, {"aa", -1.5}, {"aaaaa", -2}});
  CHECK(encode(spec, text).size() == text.size() / 5 + 2);  // 4 letters are left over
}

TEST_CASE("a model that cannot encode is refused") {
  const auto refuses = [](const TokenizerSpec& spec, const char* why) {
    const Vocabulary vocabulary(spec, 1);
    const auto failure = failure_of([&] { Unigram(vocabulary, spec, 1); });
    CHECK(failure.code == ErrorCode::kModelUnreadable);
    CHECK_THAT(failure.message, Catch::Contains(why));
  };
  TokenizerSpec spec = small_spec({{"a", -1}});
  spec.unknown = -1;
  refuses(spec, "unknown");
  spec.unknown = 2;
  refuses(spec, "unknown");
  spec = small_spec({{"a", std::numeric_limits<double>::quiet_NaN()}});
  refuses(spec, "finite");
  spec.scores.clear();
  refuses(spec, "0 scores");
  spec.scores = {1, 2, 3};
  refuses(spec, "3 scores");
  refuses(small_spec({{std::string(1025, 'a'), -1}}), "1025 bytes");
}

}  // namespace
}  // namespace incipit::text
