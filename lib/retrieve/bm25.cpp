// SPDX-License-Identifier: Apache-2.0
#include "retrieve/bm25.h"

#include <algorithm>
#include <span>

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

}  // namespace

std::uint32_t Bm25::add(std::span<const std::uint64_t> terms) {
  const std::uint32_t document = documents();
  lengths_.push_back(static_cast<std::uint32_t>(terms.size()));
  log_documents_ = log2_fixed(2 * std::uint64_t{lengths_.size()} + 2);
  for (const std::uint64_t hash : terms) {
    Term& term = terms_.find_or_add(hash);
    if (term.number == 0) {
      postings_.add_list({document, 1});
      term = {static_cast<std::uint32_t>(postings_.lists()), 1};
    } else if (postings_.count(term.number - 1, document)) {
      ++term.documents;
    }
  }
  total_length_ += terms.size();
  return document;
}

/// The different terms of a query that some document holds, in the order they came up.
std::vector<Bm25::Term> Bm25::known_terms(std::string_view query) const {
  std::vector<Term> terms;
  for_each_term(query, [&](std::uint64_t hash) {
    if (const Term* term = terms_.find(hash)) terms.push_back(*term);
  });
  const auto before = [](const Term& a, const Term& b) { return a.number < b.number; };
  const auto same = [](const Term& a, const Term& b) { return a.number == b.number; };
  std::sort(terms.begin(), terms.end(), before);
  terms.erase(std::unique(terms.begin(), terms.end(), same), terms.end());
  return terms;
}

std::vector<Bm25::Hit> Bm25::search(std::string_view query, std::size_t limit) const {
  return search(query, limit, [](std::uint32_t, std::uint64_t score) { return score; });
}

std::vector<Bm25::Hit> Bm25::search(
    std::string_view query, std::size_t limit,
    base::FunctionRef<std::uint64_t(std::uint32_t document, std::uint64_t score)> weigh) const {
  std::vector<Term> terms = known_terms(query);
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& a, const Term& b) { return a.documents < b.documents; });

  // k1 b / average, in 1/2^32: times the length of a document.
  const std::uint64_t average = std::max<std::uint64_t>(
      1, total_length_ * kFixedOne / std::max<std::uint64_t>(1, lengths_.size()));
  const std::uint64_t slope = (((kK1 * kB) >> kFixedBits) << (2 * kFixedBits)) / average;
  const std::uint64_t base = (kK1 * (kFixedOne - kB)) >> kFixedBits;

  std::vector<std::uint64_t> scores(lengths_.size());
  std::vector<Hit> hits;
  std::size_t left = kMostPostings;
  for (const Term& term : terms) {
    const std::uint64_t idf = idf_of(term.documents);
    postings_.for_last(term.number - 1, left, [&](const Posting& posting) {
      std::uint64_t& score = scores[posting.document];
      if (score == 0) hits.push_back({posting.document, 0});
      score += std::max<std::uint64_t>(
          1, term_score(idf, posting.count,
                        base + ((slope * lengths_[posting.document]) >> kFixedBits)));
    });
    left -= std::min<std::size_t>(left, term.documents);
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
  for (const Term& term : known_terms(query)) sum += idf_of(term.documents);
  return sum;
}

std::uint32_t Bm25::document_frequency(std::uint64_t term) const noexcept {
  const Term* found = terms_.find(term);
  return found == nullptr ? 0 : found->documents;
}

std::uint32_t Bm25::idf(std::uint64_t term) const noexcept {
  return idf_of(document_frequency(term));
}

std::uint32_t Bm25::idf_of(std::size_t document_frequency) const noexcept {
  // 1 + (N - n + 0.5) / (n + 0.5) = (2 N + 2) / (2 n + 1)
  return log_documents_ - log2_fixed(2 * std::uint64_t{document_frequency} + 1);
}

}  // namespace incipit::retrieve
