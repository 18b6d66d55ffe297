// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "incipit/self_consistency.h"
#include "sampler/json_field.h"
#include "sampler/letter.h"
#include "sampler/number.h"
#include "sampler/pattern.h"
#include "text/ascii.h"

namespace incipit::inline v0::extract {
namespace {

using Found = std::optional<std::string>;

Found unless_empty(std::string_view text) {
  return text.empty() ? std::nullopt : Found(std::in_place, text);
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

/// Behind the braces that are open at `position`, remembers those that \boxed opened.
Found last_boxed(std::string_view text) {
  constexpr std::string_view kBoxed = "\\boxed";
  constexpr std::size_t kPlain = static_cast<std::size_t>(-1);
  std::vector<std::size_t> open;  // of each open brace: where its content begins, or kPlain
  std::size_t last = kPlain;
  Found found;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && text.substr(i, kBoxed.size()) == kBoxed) {
      std::size_t brace = i + kBoxed.size();
      while (brace < text.size() && text[brace] == ' ') ++brace;
      if (brace < text.size() && text[brace] == '{') open.push_back(brace + 1);
      i = brace < text.size() && text[brace] == '{' ? brace : brace - 1;
    } else if (text[i] == '\\') {
      ++i;  // \{ and \} are characters
    } else if (text[i] == '{') {
      open.push_back(kPlain);
    } else if (text[i] == '}' && !open.empty()) {
      const std::size_t begin = open.back();
      open.pop_back();
      // Of nested ones the inner one, which began last.
      if (begin != kPlain && (last == kPlain || begin > last)) {
        last = begin;
        found = unless_empty(text::trimmed(text.substr(begin, i - begin)));
      }
    }
  }
  return found;
}

}  // namespace

Extractor last_line() {
  return [](std::string_view text) {
    text = text::trimmed(text);
    const std::size_t end = text.rfind('\n');
    return unless_empty(text::trimmed(end == std::string_view::npos ? text : text.substr(end + 1)));
  };
}

Extractor last_number() {
  return [](std::string_view text) { return sampler::last_number_of(text); };
}

Extractor after(std::string marker) {
  if (marker.empty()) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "the marker of extract::after() is empty; give what precedes the answer");
  }
  return [marker = std::move(marker)](std::string_view text) -> Found {
    const std::size_t begin = text.rfind(marker);
    if (begin == std::string_view::npos) return std::nullopt;
    return unless_empty(text::trimmed(first_line(text.substr(begin + marker.size()))));
  };
}

Extractor boxed() { return last_boxed; }

Extractor letter(std::size_t choices) {
  if (choices < 1 || choices > 26) {
    base::throw_error(
        ErrorCode::kInvalidArgument,
        "extract::letter() tells 1 to 26 choices apart, not " + std::to_string(choices));
  }
  return [choices](std::string_view text) { return sampler::answer_letter(text, choices); };
}

Extractor json_field(std::string field) {
  return [field = std::move(field)](std::string_view text) {
    return sampler::last_json_field(text, field);
  };
}

Extractor regex(std::string_view pattern) {
  return [compiled = std::make_shared<const sampler::Pattern>(pattern)](std::string_view text) {
    return compiled->last_match(text);
  };
}

}  // namespace incipit::inline v0::extract
