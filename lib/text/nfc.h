// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_NFC_H_
#define INCIPIT_TEXT_NFC_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::text {

/// A valid UTF-8 text in Unicode normalisation form C, and where its parts came from. O(length),
/// and no copy where nothing changes.
class NfcText {
 public:
  /// `source` must outlive it.
  explicit NfcText(std::string_view source);

  std::string_view text() const noexcept { return changes_.empty() ? source_ : text_; }

  /// The place in the source that became `position` of text(), such that the parts of the source
  /// before and behind it have the parts of text() as their forms C; nullopt inside of what
  /// normalising changed. Positions must be where a character begins (or the end), and not
  /// decrease from one call to the next.
  std::optional<std::size_t> source_position(std::size_t position);

  /// The end of the front of `source` whose form C nothing that follows the source can change.
  static std::size_t closed_front(std::string_view source);

 private:
  struct Change {
    std::size_t source_begin, source_end;
    std::size_t begin, end;  // in text_
  };

  std::string_view source_;
  std::string text_;
  std::vector<Change> changes_;  // in order
  std::size_t passed_ = 0;       // changes that end at or before the last position asked for
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_NFC_H_
