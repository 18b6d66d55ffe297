// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_CUT_H_
#define INCIPIT_COMPRESS_CUT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace incipit::compress {

/// Makes the texts that stand where something was left out: "[... 12 rows left out ...]", in ASCII,
/// without quotes. The first one also names the handle under which the whole text can be had.
class Markers {
 public:
  /// What is shorter is not worth one.
  static constexpr std::size_t kBytes = 64;

  explicit Markers(std::string_view handle) : handle_(handle) {}

  std::string next(std::size_t count, std::string_view what);
  bool used() const noexcept { return used_; }

 private:
  std::string_view handle_;
  bool used_ = false;
};

/// Keeps about `bytes` of a longer text, its front and a third at its end, around a marker. Cuts
/// between graphemes, at a space where one is near, and no two-character escape of JSON. O(length).
std::string cut_middle(std::string_view text, std::size_t bytes, Markers& markers);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_CUT_H_
