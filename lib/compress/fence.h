// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_FENCE_H_
#define INCIPIT_COMPRESS_FENCE_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace incipit::compress {

/// Finds the fenced code blocks of CommonMark 0.31 (section 4.5), also in block quotes and list
/// items. Is told every line outside of blocks, in order.
class FenceFinder {
 public:
  explicit FenceFinder(std::string_view text) : text_(text) {}

  /// The end of the block whose opening fence is the line at `begin`, or nullopt where that is
  /// another line. A block that nothing closes runs to the end of the text or of what holds it.
  std::optional<std::size_t> block_end(std::size_t begin);

 private:
  struct Fence {
    char mark = '`';
    std::size_t length = 0;
    std::size_t quotes = 0;  // block quotes that hold it
    std::size_t column = 0;  // where the text of the list item that holds it begins; 0: none
  };
  std::optional<Fence> opened_by(std::string_view line);

  std::string_view text_;
  std::vector<std::size_t> items_;  // columns of the text of the list items around, ascending
};

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_FENCE_H_
