// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_REPEATED_BLOCKS_H_
#define INCIPIT_COMPRESS_REPEATED_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "text/segmentation.h"

namespace incipit::compress {

/// Whole lines of a text that stand, the same and in the same order, in an earlier text.
struct RepeatedBlock {
  text::Span span = {};        // in the text, its last line break included
  std::size_t source = 0;      // number of the earlier text, in the order of add()
  std::size_t first_line = 0;  // there, from 1
  std::size_t lines = 0;
};

/// Finds blocks of lines (files, listings, stack traces) that earlier texts hold verbatim, after
/// Unicode normalisation C and but for white space at line ends. Keeps a copy of what was added.
/// O(length) for each call. Texts of less than kMinBytes hold no blocks.
class RepeatedBlocks {
 public:
  /// A block has at least this many bytes, and starts from a line of kMinCharacters.
  static constexpr std::size_t kMinBytes = 160;
  static constexpr std::size_t kMinCharacters = 12;

  /// Disjoint and in order.
  std::vector<RepeatedBlock> find(std::string_view text) const;
  void add(std::string_view text);
  std::size_t size() const noexcept { return texts_.size(); }

 private:
  struct Line {
    std::size_t begin = 0, end = 0;  // in Text::bytes, without white space at the end
    std::uint64_t hash = 0;
  };
  struct Text {
    std::string bytes = {};  // normalised
    std::vector<Line> lines = {};
    std::string_view line(std::size_t i) const {
      return std::string_view(bytes).substr(lines[i].begin, lines[i].end - lines[i].begin);
    }
  };
  struct Place {
    std::uint32_t text = 0, line = 0;
  };
  struct Run {
    Place source = {};
    std::size_t begin = 0, end = 0;  // lines of the new text
  };

  static Text split(std::string_view text);
  Run longest_run(const Text& text, std::size_t at, std::size_t first_free) const;

  std::vector<Text> texts_;
  // The first places of a long line; more are not looked at.
  std::unordered_map<std::uint64_t, std::vector<Place>> places_;
};

/// The text with `marker(block)` (a line without its line break) in the place of each block.
std::string replace_blocks(std::string_view text, const std::vector<RepeatedBlock>& blocks,
                           base::FunctionRef<std::string(const RepeatedBlock& block)> marker);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_REPEATED_BLOCKS_H_
