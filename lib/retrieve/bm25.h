// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_RETRIEVE_BM25_H_
#define INCIPIT_RETRIEVE_BM25_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "retrieve/fixed_point.h"
#include "retrieve/hash_table.h"
#include "retrieve/postings.h"
#include "retrieve/terms.h"

namespace incipit::retrieve {

/// An index of texts that grows, ranked by Okapi BM25 (Robertson and Zaragoza, "The Probabilistic
/// Relevance Framework", 2009, section 3.2; k1 = 1.2, b = 0.75). Scores are fixed-point, so that
/// ranks are the same on every machine. The same texts in the same order give the same index. Not
/// thread-safe: search() has a scratch space that it does not make anew for each query.
class Bm25 {
 public:
  /// O(length). The number of the document: 0, 1, 2...
  std::uint32_t add(std::string_view text) { return add(terms_of(text)); }
  /// The same of a text whose terms_of() are known.
  std::uint32_t add(std::span<const std::uint64_t> terms);

  struct Hit {
    std::uint32_t document = 0;
    std::uint64_t score = 0;  // in 1/65536
  };
  /// The best `limit` documents that share a term with the query, best first, newer before older
  /// where scores are equal, by what `weigh` makes of their scores, never more than they are; 0
  /// leaves a document out. Rare terms are looked at first; past kMostPostings the commonest ones,
  /// and then the oldest documents, are left out, so that a query costs O(min(hits,
  /// kMostPostings)).
  std::vector<Hit> search(
      std::string_view query, std::size_t limit,
      base::FunctionRef<std::uint64_t(std::uint32_t document, std::uint64_t score)> weigh) const;
  std::vector<Hit> search(std::string_view query, std::size_t limit) const;
  static constexpr std::size_t kMostPostings = 8192;

  /// Sum of idf() over the different terms of the query: of what a text with every term once would
  /// score, about. A score relative to it tells how much of the query a document answers.
  std::uint64_t weight(std::string_view query) const;

  std::uint32_t documents() const noexcept { return static_cast<std::uint32_t>(lengths_.size()); }
  /// Has the cache fetch what idf() will look at.
  void prefetch(std::uint64_t term) const noexcept { terms_.prefetch(term); }
  /// How many documents hold a term.
  std::uint32_t document_frequency(std::uint64_t term) const noexcept;
  /// log2(1 + (N - n + 0.5) / (n + 0.5)) for a term in n of N documents, in 1/65536.
  std::uint32_t idf(std::uint64_t term) const noexcept;

 private:
  struct Term {
    std::uint32_t number = 0;     // of its postings, from 1
    std::uint32_t documents = 0;  // that hold it
  };
  std::vector<Term> known_terms(std::string_view query) const;
  std::uint32_t idf_of(std::size_t document_frequency) const noexcept;

  HashTable<Term> terms_;
  Postings postings_;
  std::vector<std::uint32_t> lengths_;  // in terms, by document
  std::uint64_t total_length_ = 0;
  // Of search(), which leaves zeros behind.
  struct Scratch {
    std::vector<std::uint64_t> scores = {};  // by document
    std::vector<std::uint32_t> found = {};   // documents with a score
  };
  mutable Scratch scratch_;
  std::uint32_t log_documents_ = kFixedOne;  // log2(2 N + 2) for N documents
};

}  // namespace incipit::retrieve

#endif  // INCIPIT_RETRIEVE_BM25_H_
