// SPDX-License-Identifier: Apache-2.0
#include "retrieve/bm25.h"

#include <algorithm>
#include <span>

#include "retrieve/fixed_point.h"

namespace incipit::retrieve {
namespace {

constexpr std::uint64_t kK1 = kFixedOne * 6 / 5;  // 1.2
constexpr std::uint64_t kB = kFixedOne * 3 / 4;   // 0.75

/// What a term adds to the score of a document that holds it `count` times; `norm` is
/// k1 (1 - b + b length / average). All in 1/65536.
std::uint64_t term_score(std::uint64_t idf, std::uint64_t count, std::uint64_t norm) noexcept {
  // At most 2^16 times, so that the product stays below 2^64: idf is below 2^22.
  const std::uint64_t capped = std::min(count, kFixedOne);
  return idf * ((capped * (kK1 + kFixedOne)) >> 8) / ((capped * kFixedOne + norm) >> 8);
}

/// The different terms of a query that the table knows, by number.
std::vector<std::uint32_t> known_terms(std::string_view query,
                                       const HashTable<std::uint32_t>& numbers) {
  std::vector<std::uint32_t> terms;
  for_each_term(query, [&](std::uint64_t term) {
    if (const std::uint32_t* number = numbers.find(term)) terms.push_back(*number - 1);
  });
  std::sort(terms.begin(), terms.end());
  terms.erase(std::unique(terms.begin(), terms.end()), terms.end());
  return terms;
}

}  // namespace

std::uint32_t Bm25::add(std::span<const std::uint64_t> terms) {
  const std::uint32_t document = documents();
  lengths_.push_back(static_cast<std::uint32_t>(terms.size()));
  for (const std::uint64_t term : terms) {
    std::uint32_t& number = terms_.find_or_add(term);
    if (number == 0) {
      postings_.emplace_back();
      number = static_cast<std::uint32_t>(postings_.size());
    }
    std::vector<Posting>& postings = postings_[number - 1];
    if (postings.empty() || postings.back().document != document) {
      postings.push_back({document, 0});
    }
    ++postings.back().count;
  }
  total_length_ += terms.size();
  return document;
}

std::vector<Bm25::Hit> Bm25::search(std::string_view query, std::size_t limit) const {
  return search(query, limit, [](std::uint32_t, std::uint64_t score) { return score; });
}

std::vector<Bm25::Hit> Bm25::search(
    std::string_view query, std::size_t limit,
    base::FunctionRef<std::uint64_t(std::uint32_t document, std::uint64_t score)> weigh) const {
  std::vector<std::uint32_t> terms = known_terms(query, terms_);
  std::stable_sort(terms.begin(), terms.end(), [&](std::uint32_t a, std::uint32_t b) {
    return postings_[a].size() < postings_[b].size();
  });

  // k1 b / average, in 1/2^32: times the length of a document.
  const std::uint64_t average = std::max<std::uint64_t>(
      1, total_length_ * kFixedOne / std::max<std::uint64_t>(1, lengths_.size()));
  const std::uint64_t slope = (((kK1 * kB) >> kFixedBits) << (2 * kFixedBits)) / average;
  const std::uint64_t base = (kK1 * (kFixedOne - kB)) >> kFixedBits;

  std::vector<std::uint64_t> scores(lengths_.size());
  std::vector<Hit> hits;
  std::size_t left = kMostPostings;
  for (const std::uint32_t term : terms) {
    std::span<const Posting> postings = postings_[term];
    if (postings.size() > left) postings = postings.last(left);
    left -= postings.size();
    const std::uint64_t idf = idf_of(postings_[term].size());
    for (const Posting& posting : postings) {
      std::uint64_t& score = scores[posting.document];
      if (score == 0) hits.push_back({posting.document, 0});
      score += std::max<std::uint64_t>(
          1, term_score(idf, posting.count,
                        base + ((slope * lengths_[posting.document]) >> kFixedBits)));
    }
  }

  for (Hit& hit : hits) hit.score = weigh(hit.document, scores[hit.document]);
  std::erase_if(hits, [](const Hit& hit) { return hit.score == 0; });
  const auto better = [](const Hit& a, const Hit& b) {
    return a.score != b.score ? a.score > b.score : a.document > b.document;
  };
  const std::size_t count = std::min(limit, hits.size());
  std::partial_sort(hits.begin(), hits.begin() + static_cast<std::ptrdiff_t>(count), hits.end(),
                    better);
  hits.resize(count);
  return hits;
}

std::uint64_t Bm25::weight(std::string_view query) const {
  std::uint64_t sum = 0;
  for (const std::uint32_t term : known_terms(query, terms_)) sum += idf_of(postings_[term].size());
  return sum;
}

std::uint32_t Bm25::document_frequency(std::uint64_t term) const noexcept {
  const std::uint32_t* number = terms_.find(term);
  return number == nullptr ? 0 : static_cast<std::uint32_t>(postings_[*number - 1].size());
}

std::uint32_t Bm25::idf(std::uint64_t term) const noexcept {
  return idf_of(document_frequency(term));
}

std::uint32_t Bm25::idf_of(std::size_t document_frequency) const noexcept {
  // 1 + (N - n + 0.5) / (n + 0.5) = (2 N + 2) / (2 n + 1)
  return log2_fixed(2 * std::uint64_t{lengths_.size()} + 2) -
         log2_fixed(2 * std::uint64_t{document_frequency} + 1);
}

}  // namespace incipit::retrieve
