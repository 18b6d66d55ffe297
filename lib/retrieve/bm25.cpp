// SPDX-License-Identifier: Apache-2.0
#include "retrieve/bm25.h"

#include <algorithm>
#include <array>
#include <span>

namespace incipit::retrieve {
namespace {

constexpr std::uint64_t kK1 = kFixedOne * 6 / 5;  // 1.2
constexpr std::uint64_t kB = kFixedOne * 3 / 4;   // 0.75

/// What a term adds to the scores of documents that hold it. All in 1/65536.
class TermScores {
 public:
  /// k1 (1 - b + b length / average) is `base` + `slope` length, that in 1/2^32.
  TermScores(std::uint64_t idf, std::uint64_t base, std::uint64_t slope) noexcept
      : idf_(idf), base_(base), slope_(slope) {}

  /// At least 1.
  std::uint64_t operator()(std::uint32_t count, std::uint32_t length) noexcept {
    // Most documents are short and hold a term once.
    if (count != 1 || length >= of_once_.size()) return computed(count, length);
    std::uint64_t& score = of_once_[length];
    if (score == 0) score = computed(count, length);
    return score;
  }

 private:
  std::uint64_t computed(std::uint64_t count, std::uint64_t length) const noexcept {
    const std::uint64_t norm = base_ + ((slope_ * length) >> kFixedBits);
    // At most 2^16 times, so that the product stays below 2^64: idf is below 2^22.
    const std::uint64_t capped = std::min(count, kFixedOne);
    const std::uint64_t score =
        idf_ * ((capped * (kK1 + kFixedOne)) >> 8) / ((capped * kFixedOne + norm) >> 8);
    return std::max<std::uint64_t>(1, score);
  }

  std::uint64_t idf_, base_, slope_;
  std::array<std::uint64_t, 128> of_once_ = {};  // by length; 0: not computed yet
};

/// Clears the scores of what was found as it goes.
struct Cleared {
  std::vector<std::uint64_t>& scores;
  std::vector<std::uint32_t>& found;

  Cleared(std::vector<std::uint64_t>& all, std::vector<std::uint32_t>& touched) noexcept
      : scores(all), found(touched) {}
  Cleared(const Cleared&) = delete;
  Cleared& operator=(const Cleared&) = delete;
  ~Cleared() {
    for (const std::uint32_t document : found) scores[document] = 0;
    found.clear();
  }
};

}  // namespace

std::uint32_t Bm25::add(std::span<const std::uint64_t> terms) {
  const std::uint32_t document = documents();
  lengths_.push_back(static_cast<std::uint32_t>(terms.size()));
  log_documents_ = log2_fixed(2 * std::uint64_t{lengths_.size()} + 2);
  for (const std::uint64_t hash : terms) terms_.prefetch(hash);
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

  std::vector<std::uint64_t>& scores = scratch_.scores;
  std::vector<std::uint32_t>& found = scratch_.found;
  std::size_t left = kMostPostings;
  scores.resize(lengths_.size());
  found.reserve(std::min(left, scores.size()));
  const Cleared cleared{scores, found};
  for (const Term& term : terms) {
    TermScores of_term(idf_of(term.documents), base, slope);
    postings_.for_last(term.number - 1, left, [&](const Posting& posting) {
      std::uint64_t& score = scores[posting.document];
      if (score == 0) found.push_back(posting.document);
      score += of_term(posting.count, lengths_[posting.document]);
    });
    left -= std::min<std::size_t>(left, term.documents);
  }

  const auto better = [](const Hit& a, const Hit& b) {
    return a.score != b.score ? a.score > b.score : a.document > b.document;
  };
  std::vector<Hit> hits;  // a heap, the worst one in front
  for (const std::uint32_t document : found) {
    if (hits.size() == limit && limit > 0 && scores[document] < hits.front().score) continue;
    const Hit hit{document, weigh(document, scores[document])};
    if (hit.score == 0) continue;
    if (hits.size() == limit) {
      if (limit == 0 || !better(hit, hits.front())) continue;
      std::pop_heap(hits.begin(), hits.end(), better);
      hits.back() = hit;
    } else {
      hits.push_back(hit);
    }
    std::push_heap(hits.begin(), hits.end(), better);
  }
  std::sort_heap(hits.begin(), hits.end(), better);
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
