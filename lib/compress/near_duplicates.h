// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_NEAR_DUPLICATES_H_
#define INCIPIT_COMPRESS_NEAR_DUPLICATES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "retrieve/hash_table.h"
#include "retrieve/runs.h"

namespace incipit::compress {

/// What a text is compared by. Making one costs O(length), 64 hashes for each distinct term.
struct Sketch {
  static constexpr std::size_t kBands = 16;

  std::vector<std::uint32_t> terms = {};         // distinct hashes, ascending
  std::array<std::uint64_t, kBands> bands = {};  // each also holds `critical`
  std::string critical = {};                     // critical_tokens()
};
/// `terms` are those of the text, as retrieve::terms_of() has them.
Sketch make_sketch(std::string_view text, std::span<const std::uint64_t> terms);
Sketch make_sketch(std::string_view text);

/// Finds texts that say the same as an earlier one: MinHash over terms (words, and character
/// bigrams in scripts without spaces; 16 bands of 4 rows: Leskovec, Rajaraman, Ullman, "Mining of
/// Massive Datasets", 3.4) gives candidates, of which those count whose exact Jaccard similarity
/// reaches the threshold and whose critical tokens (guard.h) are the same. Deterministic. The cost
/// of a call is bounded by a constant number of candidates, however many texts are alike.
class NearDuplicates {
 public:
  /// Texts with fewer distinct terms are never duplicates: "yes" says something each time.
  static constexpr std::size_t kMinTerms = 8;

  /// `threshold` is a Jaccard similarity in (0, 1]; it is rounded down to 1/65536.
  explicit NearDuplicates(double threshold = 0.85);

  /// The number (from 0, in the order of add()) of the earliest known text that `text` repeats.
  std::optional<std::size_t> find(std::string_view text) const { return find(make_sketch(text)); }
  std::optional<std::size_t> find(const Sketch& sketch) const;

  void add(std::string_view text) { add(make_sketch(text)); }
  void add(const Sketch& sketch);

  std::size_t size() const noexcept { return texts_.size(); }

 private:
  // The first texts with this band; more are not looked at.
  static constexpr std::size_t kPerBand = 4;
  struct Alike {
    std::uint32_t first = 0;   // number of a text, from 1
    std::uint32_t others = 0;  // of others_, from 1; 0: there are none
  };
  struct Others {
    std::array<std::uint32_t, kPerBand - 1> texts = {};
    std::uint32_t count = 0;
  };
  struct Text {
    retrieve::Runs<std::uint32_t>::Run terms = {};
    retrieve::Runs<char>::Run critical = {};
  };

  void add_to_band(std::uint64_t band, std::uint32_t text);
  bool is_duplicate(const Sketch& sketch, const Text& text) const;

  std::uint64_t threshold_;  // in 1/65536
  std::deque<Text> texts_;
  retrieve::Runs<std::uint32_t> terms_;
  retrieve::Runs<char> critical_;
  retrieve::HashTable<Alike> bands_;
  std::deque<Others> others_;
};

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_NEAR_DUPLICATES_H_
