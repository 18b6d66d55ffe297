// SPDX-License-Identifier: Apache-2.0
#include "engine/stop_strings.h"

#include <algorithm>
#include <utility>

namespace incipit::engine {
namespace {

// Length of the longest end of `text` with which `wanted` begins.
std::size_t begun(std::string_view text, std::string_view wanted) {
  for (std::size_t n = std::min(text.size(), wanted.size() - 1); n > 0; --n) {
    if (text.ends_with(wanted.substr(0, n))) return n;
  }
  return 0;
}

}  // namespace

std::string StopStrings::push(std::string_view text) {
  if (matched_) return {};
  held_ += text;
  std::size_t stop = std::string::npos;
  std::size_t hold = 0;
  for (const std::string& wanted : strings_) {
    stop = std::min(stop, held_.find(wanted));
    hold = std::max(hold, begun(held_, wanted));
  }
  matched_ = stop != std::string::npos;
  const std::size_t shown = matched_ ? stop : held_.size() - hold;
  std::string out = held_.substr(0, shown);
  held_.erase(0, shown);
  return out;
}

std::string StopStrings::finish() {
  if (matched_) return {};
  return std::exchange(held_, {});
}

}  // namespace incipit::engine
