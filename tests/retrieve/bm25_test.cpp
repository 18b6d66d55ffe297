// SPDX-License-Identifier: Apache-2.0
#include "retrieve/bm25.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "retrieve/terms.h"
#include "support/catch.h"

using incipit::retrieve::Bm25;

namespace {

Bm25 index_of(const std::vector<std::string>& texts) {
  Bm25 index;
  for (const std::string& text : texts) index.add(text);
  return index;
}

std::vector<std::uint32_t> documents(const std::vector<Bm25::Hit>& hits) {
  std::vector<std::uint32_t> numbers;
  for (const Bm25::Hit& hit : hits) numbers.push_back(hit.document);
  return numbers;
}

std::uint64_t term(std::string_view word) {
  std::uint64_t found = 0;
  incipit::retrieve::for_each_term(word, [&](std::uint64_t hash) { found = hash; });
  return found;
}

using Numbers = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("BM25 finds the document that says it") {
  const Bm25 index = index_of({"The cat sat on the mat.", "Anna's dog is called Rex.",
                               "We fly to Lisbon on Friday.", "The dog sleeps all day long."});
  CHECK(index.documents() == 4);
  CHECK(documents(index.search("What is Anna's dog called?", 1)) == Numbers{1});
  CHECK(documents(index.search("lisbon flights", 5)) == Numbers{2});
  CHECK(index.search("zebra", 5).empty());
  CHECK(index.search("", 5).empty());
  CHECK(index.search("dog", 0).empty());
  CHECK(Bm25().search("dog", 5).empty());
}

TEST_CASE("BM25 scores are those of the formula") {
  const std::vector<std::string> texts{"a b c d", "a a b", "c d e f g h"};
  const Bm25 index = index_of(texts);
  const double average = (4.0 + 3.0 + 6.0) / 3;
  const auto score = [&](double frequency, double documents, double length) {
    const double idf = std::log2(1 + (3 - documents + 0.5) / (documents + 0.5));
    return idf * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / average));
  };
  const std::vector<Bm25::Hit> hits = index.search("a c", 9);
  REQUIRE(documents(hits) == Numbers{0, 1, 2});
  CHECK(static_cast<double>(hits[0].score) / 65536 ==
        Approx(score(1, 2, 4) + score(1, 2, 4)).epsilon(1e-3));
  CHECK(static_cast<double>(hits[1].score) / 65536 == Approx(score(2, 2, 3)).epsilon(1e-3));
  CHECK(static_cast<double>(hits[2].score) / 65536 == Approx(score(1, 2, 6)).epsilon(1e-3));
  CHECK(index.weight("a a c zzz") == index.idf(term("a")) + index.idf(term("c")));
  CHECK(index.document_frequency(term("d")) == 2);
  CHECK(index.document_frequency(term("zzz")) == 0);
  CHECK(index.idf(term("e")) > index.idf(term("d")));
}

TEST_CASE("BM25 prefers the shorter of very long texts") {
  const auto text_of = [](std::size_t words) {
    std::string text = "needle";
    for (std::size_t i = 1; i < words; ++i) text += " x";
    return text;
  };
  const Bm25 index = index_of({text_of(100'000), text_of(120'000), text_of(300'000)});
  CHECK(documents(index.search("needle", 3)) == Numbers{0, 1, 2});
}

TEST_CASE("BM25 forgets one query before the next") {
  const Bm25 index = index_of({"red apple", "green apple tree", "blue sky"});
  const auto scores = [&](std::string_view query) {
    std::vector<std::uint64_t> found;
    for (const Bm25::Hit& hit : index.search(query, 9)) found.push_back(hit.score);
    return found;
  };
  const auto apples = scores("apple");
  REQUIRE(apples.size() == 2);
  CHECK(scores("green sky tree").size() == 2);
  CHECK_THROWS(index.search("apple sky", 9, [](std::uint32_t, std::uint64_t) -> std::uint64_t {
    throw std::runtime_error("no");
  }));
  CHECK(scores("apple") == apples);
}

TEST_CASE("BM25 prefers the newer of equals, and only what is wanted") {
  const Bm25 index = index_of({"same text", "same text", "same text", "other"});
  CHECK(documents(index.search("text", 2)) == Numbers{2, 1});
  const auto old = [](std::uint32_t document, std::uint64_t score) {
    return document < 1 ? score : 0;
  };
  CHECK(documents(index.search("text", 2, old)) == Numbers{0});
  const auto oldest_first = [](std::uint32_t document, std::uint64_t score) {
    return score / (document + 1);
  };
  CHECK(documents(index.search("text", 2, oldest_first)) == Numbers{0, 1});
}

TEST_CASE("BM25 finds Chinese by pairs of characters") {
  const Bm25 index =
      index_of({"我们明天去北京看长城。", "小明的狗叫旺财。", "今天天气很好，适合散步。"});
  CHECK(documents(index.search("小明的狗叫什么名字？", 1)) == Numbers{1});
  CHECK(documents(index.search("哪天去北京？", 1)) == Numbers{0});
}

TEST_CASE("BM25 looks at rare words first and bounds its work") {
  Bm25 index;
  const std::uint32_t count = Bm25::kMostPostings + 100;
  for (std::uint32_t i = 0; i < count; ++i) index.add(i == 7 ? "the needle" : "the hay");
  CHECK(documents(index.search("the needle", 1)) == Numbers{7});
  // The oldest fall out of what is too common.
  const auto old = [](std::uint32_t document, std::uint64_t score) {
    return document < 100 ? score : 0;
  };
  CHECK(documents(index.search("the", 5, old)).empty());
  CHECK(documents(index.search("the", 1)) == Numbers{count - 1});
}
