// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_RETRIEVE_POSTINGS_H_
#define INCIPIT_RETRIEVE_POSTINGS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "retrieve/runs.h"

namespace incipit::retrieve {

/// How often a document holds a term.
struct Posting {
  std::uint32_t document = 0, count = 0;
};

/// The postings of terms, each list in the order of documents. Lists grow by blocks, each larger
/// than the one before: no posting ever moves, so that adding one never takes long.
class Postings {
 public:
  /// A list of one posting; its number is how many there were.
  void add_list(Posting first) {
    List& list = lists_.emplace_back();
    list.newest = blocks_.add(1 + capacity(0));
    push_back(list, first);
  }
  std::size_t lists() const noexcept { return lists_.size(); }

  /// Counts a term once more in a document, the last one of the list or one behind it. Whether the
  /// document is new there.
  bool count(std::size_t list_number, std::uint32_t document) {
    List& list = lists_[list_number];
    Posting& last = blocks_[list.newest][list.used];
    if (last.document == document) {
      ++last.count;
      return false;
    }
    if (list.used == capacity(list.block)) {
      const Block full = list.newest;
      list.newest = blocks_.add(1 + capacity(++list.block));
      blocks_[list.newest][0] = {full.chunk, full.first};
      list.used = 0;
    }
    push_back(list, {document, 1});
    return true;
  }

  /// Calls `visit` with the last `most` postings of a list, or all, from the last one to the first.
  template <class Visit>
  void for_last(std::size_t list_number, std::size_t most, const Visit& visit) const {
    const List& list = lists_[list_number];
    Block block = list.newest;
    std::uint32_t used = list.used;
    for (std::uint32_t number = list.block;; --number) {
      const std::span<const Posting> cells = blocks_[block];
      const std::size_t some = std::min<std::size_t>(used, most);
      for (std::size_t i = 0; i < some; ++i) visit(cells[used - i]);
      most -= some;
      if (number == 0 || most == 0) return;
      used = capacity(number - 1);
      block = {cells[0].document, cells[0].count, 1 + used};
    }
  }

 private:
  // In front of a block's postings stands where the block before it is.
  using Block = Runs<Posting>::Run;
  struct List {
    Block newest = {};
    std::uint32_t block = 0;  // its number in the list
    std::uint32_t used = 0;   // of its postings
  };

  static constexpr std::uint32_t capacity(std::uint32_t block) noexcept {
    constexpr std::uint32_t kLargest = 7;
    return (2u << std::min(block, kLargest)) - 1;
  }

  void push_back(List& list, Posting posting) { blocks_[list.newest][++list.used] = posting; }

  Runs<Posting> blocks_;
  std::deque<List> lists_;
};

}  // namespace incipit::retrieve

#endif  // INCIPIT_RETRIEVE_POSTINGS_H_
