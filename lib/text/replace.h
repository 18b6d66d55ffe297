// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_REPLACE_H_
#define INCIPIT_TEXT_REPLACE_H_

#include <string>
#include <string_view>

namespace incipit::text {

/// `text` with `by` for each `pattern` (not empty), from left to right.
inline std::string replaced_all(std::string_view text, std::string_view pattern,
                                std::string_view by) {
  std::string out;
  while (true) {
    const std::size_t at = text.find(pattern);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += by;
    text.remove_prefix(at + pattern.size());
  }
}

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_REPLACE_H_
