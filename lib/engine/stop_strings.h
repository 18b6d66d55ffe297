// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_STOP_STRINGS_H_
#define INCIPIT_ENGINE_STOP_STRINGS_H_

#include <span>
#include <string>
#include <string_view>

namespace incipit::engine {

/// Watches a growing text for stop strings, and holds back what may become one until that is
/// decided. What it lets through never contains a stop string.
class StopStrings {
 public:
  /// The strings are not empty and must outlive it.
  explicit StopStrings(std::span<const std::string> strings) : strings_(strings) {}

  /// Text that may be shown now. After a stop string has come up, matched() is true and nothing
  /// more comes out.
  std::string push(std::string_view text);
  /// What is still held back: the text ends here.
  std::string finish();
  bool matched() const noexcept { return matched_; }

 private:
  std::span<const std::string> strings_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_STOP_STRINGS_H_
