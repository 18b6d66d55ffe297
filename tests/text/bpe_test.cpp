// SPDX-License-Identifier: Apache-2.0
#include "text/bpe.h"

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
  explicit Sample(const TokenizerSpec& spec)
      : vocabulary(spec, 1), bpe(vocabulary, spec.merges, spec.ignore_merges, 1) {}

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

TEST_CASE("a merge table finds what was inserted and nothing else") {
  MergeTable table(1000, 5);
  std::mt19937 random(3);
  std::map<std::pair<TokenId, TokenId>, std::uint32_t> expected;
  std::uniform_int_distribution<TokenId> any(0, 60);
  for (std::uint32_t rank = 0; rank < 1000; ++rank) {
    const std::pair pair(any(random), any(random));
    table.insert(pair.first, pair.second, {rank, static_cast<TokenId>(rank)});
    expected[pair] = rank;
  }
  for (TokenId left = 0; left <= 61; ++left) {
    for (TokenId right = 0; right <= 61; ++right) {
      const auto found = expected.find({left, right});
      const std::uint32_t rank = found == expected.end() ? MergeTable::kNever : found->second;
      if (table.find(left, right).rank != rank) FAIL_CHECK(left << " " << right);
    }
  }
  CHECK(MergeTable(0, 0).find(0, 0).rank == MergeTable::kNever);
}

}  // namespace
}  // namespace incipit::text
