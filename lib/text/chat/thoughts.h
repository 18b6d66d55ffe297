// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_CHAT_THOUGHTS_H_
#define INCIPIT_TEXT_CHAT_THOUGHTS_H_

#include <algorithm>
#include <string_view>

#include "text/ascii.h"

namespace incipit::text {

/// An answer's thought, and what follows it.
struct Thoughts {
  std::string_view thought, rest;
};

inline std::string_view without_leading_line_feeds(std::string_view text) noexcept {
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}
inline std::string_view without_line_feeds(std::string_view text) noexcept {
  return trimmed(text, [](char c) { return c == '\n'; });
}

/// As Qwen 3's template does: the thought lies before the first "</think>" and behind the last
/// "<think>" before it; the rest is behind the last "</think>".
inline Thoughts split_thoughts(std::string_view text) noexcept {
  constexpr std::string_view kBegin = "<think>", kEnd = "</think>";
  const std::size_t end = text.find(kEnd);
  if (end == std::string_view::npos) return {{}, text};
  std::string_view thought = text.substr(0, end);
  if (const std::size_t begin = thought.rfind(kBegin); begin != std::string_view::npos) {
    thought.remove_prefix(begin + kBegin.size());
  }
  return {without_line_feeds(thought),
          without_leading_line_feeds(text.substr(text.rfind(kEnd) + kEnd.size()))};
}

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_CHAT_THOUGHTS_H_
