// SPDX-License-Identifier: Apache-2.0
#include "compress/cut.h"

#include "text/ascii.h"
#include "text/segmentation.h"

namespace incipit::compress {
namespace {

using text::is_ascii;
using text::is_space;

/// The end of the grapheme, or of the escape of JSON, at `at`.
std::size_t unit_end(std::string_view text, std::size_t at) {
  const bool is_plain = at + 1 < text.size() && is_ascii(text[at]) && is_ascii(text[at + 1]) &&
                        text[at] != '\\' && text[at] != '\r';
  if (is_plain) return at + 1;
  if (text[at] == '\\' && at + 1 < text.size()) return text::grapheme_end(text, at + 1);
  return text::grapheme_end(text, at);
}

}  // namespace

std::string Markers::next(std::size_t count, std::string_view what) {
  std::string marker = "[... ";
  marker.append(std::to_string(count)).append(" ").append(what).append(" left out");
  if (!used_) marker.append("; restore ").append(handle_);
  used_ = true;
  return marker.append(" ...]");
}

std::string cut_middle(std::string_view text, std::size_t bytes, Markers& markers) {
  constexpr std::size_t kNear = 40;
  const std::size_t tail = bytes / 3, head = bytes - tail;
  if (text.size() <= bytes + Markers::kBytes) return std::string(text);
  std::size_t front = 0, end = 0;  // what stays is [0, front) and [end, size)
  std::size_t space = 0;           // the last place in front that is behind a space; 0: none
  std::size_t at = 0;
  while (at < text.size() && end == 0) {
    if (at <= head) {
      front = at;
      if (at > 0 && is_space(text[at - 1])) space = at;
    } else if (at + tail >= text.size()) {
      end = at;
    }
    at = unit_end(text, at);
  }
  if (end == 0) end = text.size();  // no room at the end, or for none of its graphemes
  if (space > 0 && front - space <= kNear) front = space;
  for (std::size_t i = end; i < text.size() && i - end < kNear; i = unit_end(text, i)) {
    if (i > 0 && is_space(text[i - 1])) {
      end = i;
      break;
    }
  }
  std::string kept(text.substr(0, front));
  kept.append(" ").append(markers.next(end - front, "bytes")).append(" ");
  return kept.append(text.substr(end));
}

}  // namespace incipit::compress
