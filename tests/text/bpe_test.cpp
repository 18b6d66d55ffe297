// SPDX-License-Identifier: Apache-2.0
#include "text/bpe.h"

#include <algorithm>
#include <map>
#include <memory>

#include "support/catch.h"
#include "text/byte_alphabet.h"
#include "text/fixture.h"

namespace incipit::text {
namespace {

/// The definition, step by step, over the texts of the tokens.
class PlainBpe {
 public:
  explicit PlainBpe(const TokenizerSpec& spec) {
    for (std::size_t i = 0; i < spec.merges.size(); ++i) {
      const std::size_t space = spec.merges[i].find(' ');
      ranks_[{*from_byte_alphabet(spec.merges[i].substr(0, space)),
              *from_byte_alphabet(spec.merges[i].substr(space + 1))}] = i;
    }
  }

  std::vector<std::string> encode(const std::string& word) const {
    std::vector<std::string> parts;
    for (const char byte : word) parts.emplace_back(1, byte);
    while (true) {
      std::size_t best = parts.size(), best_rank = SIZE_MAX;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = ranks_.find({parts[i], parts[i + 1]});
        if (found == ranks_.end() || found->second >= best_rank) continue;
        best = i;
        best_rank = found->second;
      }
      if (best == parts.size()) return parts;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
  }

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> ranks_;
};

struct Sample {
  explicit Sample(const TokenizerSpec& spec) : vocabulary(spec, 1), bpe(vocabulary, spec, 1) {}

  std::vector<TokenId> encode(std::string_view word) {
    std::vector<TokenId> ids;
    bpe.encode(word, scratch, ids);
    return ids;
  }
  std::vector<std::string> texts(std::string_view word) {
    std::vector<std::string> texts;
    for (const TokenId id : encode(word)) texts.emplace_back(vocabulary.bytes_of(id));
    return texts;
  }

  Vocabulary vocabulary;
  Bpe bpe;
  Bpe::Scratch scratch;
};

TokenizerSpec small_spec(std::vector<std::string> tokens, std::vector<std::string> merges) {
  TokenizerSpec spec;
  spec.kinds.assign(tokens.size(), TokenKind::kNormal);
  spec.tokens = std::move(tokens);
  spec.merges = std::move(merges);
  return spec;
}

using Texts = std::vector<std::string>;

TEST_CASE("the lowest rank merges first, and of equals the leftmost") {
  Sample sample(small_spec({"a", "b", "c", "ab", "bc", "abc", "aa", "aaa"},
                           {"b c", "a b", "a bc", "a a", "aa a"}));
  CHECK(sample.texts("abc") == Texts{"abc"});
  CHECK(sample.texts("ab") == Texts{"ab"});
  CHECK(sample.texts("aab") == Texts{"a", "ab"});
  CHECK(sample.texts("aaaaa") == Texts{"aa", "aaa"});
  CHECK(sample.texts("aa") == Texts{"aa"});
  CHECK(sample.texts("a") == Texts{"a"});
  CHECK(sample.texts("").empty());
}

TEST_CASE("a merge that a merge makes possible goes before those of higher rank") {
  // "abab": ab first makes "abab" possible, whose rank is lower than that of the second "a b".
  Sample sample(small_spec({"a", "b", "ab", "aba", "abab"}, {"ab a", "a b"}));
  CHECK(sample.texts("abab") == Texts{"aba", "b"});
}

TEST_CASE("of a pair that is named twice the last rank counts, as in Hugging Face's") {
  Sample sample(small_spec({"a", "b", "c", "ab", "bc"}, {"a b", "b c", "a b"}));
  CHECK(sample.texts("abc") == Texts{"a", "bc"});
}

TEST_CASE("equals the definition on random words") {
  std::mt19937 random(7);
  for (const char* family : {"gpt2", "qwen2"}) {
    const TokenizerSpec spec = spec_of(family);
    const PlainBpe plain(spec);
    Sample sample(spec);
    std::uniform_int_distribution<std::size_t> length(1, 40), any_merge(0, spec.merges.size() - 1);
    for (int i = 0; i < 1500; ++i) {
      std::string word;
      if (i % 3 == 0) word = random_bytes(random, length(random));
      while (word.size() < length(random)) {  // of what merges
        const std::string& merge = spec.merges[any_merge(random)];
        word += *from_byte_alphabet(merge.substr(merge.find(' ') + 1));
      }
      if (sample.texts(word) != plain.encode(word)) FAIL_CHECK(family << ": " << word);
    }
  }
}

TEST_CASE("a whole pre-token is taken unmerged only where merges are ignored") {
  TokenizerSpec spec = small_spec({"a", "b", "c", "ab", "abc"}, {"a b"});
  CHECK(Sample(spec).texts("abc") == Texts{"ab", "c"});
  spec.ignore_merges = true;
  CHECK(Sample(spec).texts("abc") == Texts{"abc"});
  CHECK(Sample(spec).texts("abca") == Texts{"ab", "c", "a"});
}

TEST_CASE("bytes without a token are left out, and their neighbours meet") {
  Sample sample(small_spec({"a", "b", "ab"}, {"a b"}));
  CHECK(sample.texts("a-b") == Texts{"ab"});
  CHECK(sample.texts("-").empty());
  CHECK(sample.texts("--").empty());
  CHECK(sample.texts("-a-") == Texts{"a"});
  std::vector<TokenId> ids;
  sample.bpe.encode_byte('-', ids);
  CHECK(ids.empty());
  sample.bpe.encode_byte('b', ids);
  CHECK(ids == std::vector<TokenId>{1});
}

TEST_CASE("a scratch carries nothing over to the next pre-token") {
  Sample sample(small_spec({"a", "b", "ab", "abab"}, {"a b", "ab ab"}));
  CHECK(sample.texts(repeated("ab", 20)) == Texts(10, "abab"));
  CHECK(sample.texts("ab") == Texts{"ab"});
  CHECK(sample.texts("ba") == Texts{"b", "a"});
}

TEST_CASE("merges that name no normal tokens are refused") {
  const auto refuses = [](std::vector<std::string> merges, const char* why) {
    TokenizerSpec spec = small_spec({"a", "b", "ab", "<s>"}, std::move(merges));
    spec.kinds[3] = TokenKind::kControl;
    const auto failure = failure_of([&] { Sample{spec}; });
    CHECK(failure.code == ErrorCode::kModelUnreadable);
    CHECK_THAT(failure.message, Catch::Contains(why) && Catch::Contains("merge 0"));
  };
  refuses({"ab"}, "not two tokens");
  refuses({""}, "not two tokens");
  refuses({" "}, "not in the vocabulary");
  refuses({"a "}, "not in the vocabulary");
  refuses({"a c"}, "not in the vocabulary");
  refuses({"b a"}, "not in the vocabulary");
  refuses({"a b c"}, "byte alphabet");
  refuses({"a \xff"}, "byte alphabet");
  refuses({"<s> a"}, "not in the vocabulary");
}

/// Characters instead of bytes; "?" is the unknown token, "<0x21>" that of '!'.
TokenizerSpec character_spec(std::vector<std::string> tokens, std::vector<std::string> merges) {
  tokens.insert(tokens.begin(), {"?", "<0x21>"});
  TokenizerSpec spec = small_spec(std::move(tokens), std::move(merges));
  spec.model = TokenizerModel::kCharacterBpe;
  spec.kinds[0] = TokenKind::kControl;
  spec.kinds[1] = TokenKind::kByte;
  spec.unknown = 0;
  return spec;
}

std::vector<TokenId> ids_of(const TokenizerSpec& spec, std::string_view word) {
  return Sample(spec).encode(word);
}

TEST_CASE("characters merge as bytes do") {
  const TokenizerSpec spec =
      character_spec({"\u4eba", "a", "b", "\u4ebaa", "ab"}, {"\u4eba a", "a b"});
  CHECK(ids_of(spec, "\u4ebaab") == std::vector<TokenId>{5, 4});
  CHECK(ids_of(spec, "\u4eba\u4ebaab") == std::vector<TokenId>{2, 5, 4});
  CHECK(ids_of(spec, "").empty());
}

TEST_CASE("what has no token is bytes, or unknown, alone or together") {
  TokenizerSpec spec = character_spec({"a", "b", "ab"}, {"a b"});
  CHECK(ids_of(spec, "!a!") == std::vector<TokenId>{1, 2, 1});
  CHECK(ids_of(spec, "axyb") == std::vector<TokenId>{2, 0, 0, 3});
  spec.fuse_unknown = true;
  CHECK(ids_of(spec, "axyb\u4eba") == std::vector<TokenId>{2, 0, 3, 0});
  CHECK(ids_of(spec, "xy") == std::vector<TokenId>{0});
  spec.unknown = -1;
  CHECK(ids_of(spec, "axyb") == std::vector<TokenId>{4});  // left out, and neighbours meet
}

TEST_CASE("a single byte of characters is its token or the unknown one") {
  const TokenizerSpec spec = character_spec({"a"}, {});
  const Sample sample(spec);
  std::vector<TokenId> ids;
  sample.bpe.encode_byte('!', ids);
  sample.bpe.encode_byte('a', ids);  // not the character
  CHECK(ids == std::vector<TokenId>{1, 0});
}

TEST_CASE("an open word is encoded up to the last place that no merge crosses") {
  TokenizerSpec spec = character_spec({"a", "b", "c", "ab", "abc"}, {"a b", "ab c"});
  const auto open = [&](std::string_view word) {
    Sample sample(spec);
    std::vector<TokenId> ids;
    const std::size_t size = sample.bpe.encode_open(word, sample.scratch, ids);
    return std::pair(size, ids);
  };
  using Ids = std::vector<TokenId>;
  CHECK(open("") == std::pair(std::size_t{0}, Ids{}));
  CHECK(open("abc") == std::pair(std::size_t{0}, Ids{}));
  CHECK(open("abca") == std::pair(std::size_t{3}, Ids{6}));
  CHECK(open("aab") == std::pair(std::size_t{1}, Ids{2}));
  CHECK(open("abxya") == std::pair(std::size_t{2}, Ids{5}));  // "xy" and "a" are one piece
  spec.ignore_merges = true;
  CHECK(open("abca") == std::pair(std::size_t{0}, Ids{}));
}

TEST_CASE("cut where no merge crosses, random words are as in one piece") {
  std::mt19937 random(29);
  for (int round = 0; round < 200; ++round) {
    TokenizerSpec spec = character_spec({"a", "b", "c", "d"}, {});
    for (int i = 0; i < 12; ++i) {
      const auto any = [&] { return spec.tokens[2 + random() % (spec.tokens.size() - 2)]; };
      const std::string left = any(), right = any();
      if (std::find(spec.tokens.begin(), spec.tokens.end(), left + right) == spec.tokens.end()) {
        spec.tokens.push_back(left + right);
        spec.kinds.push_back(TokenKind::kNormal);
      }
      spec.merges.push_back(left + " " + right);
    }
    Sample cut(spec);
    spec.tokens.push_back("-");  // an unknown token that merges keeps all in one piece
    spec.kinds.push_back(TokenKind::kNormal);
    spec.tokens.push_back("--");
    spec.kinds.push_back(TokenKind::kNormal);
    spec.unknown = static_cast<TokenId>(spec.tokens.size()) - 2;
    spec.merges.push_back("- -");
    Sample whole(spec);
    std::string word;
    for (int i = 0; i < 60; ++i) word += "abcd"[random() % 4];
    if (cut.encode(word) != whole.encode(word)) FAIL_CHECK(round << ": " << word);
  }
}

}  // namespace
}  // namespace incipit::text
