// SPDX-License-Identifier: Apache-2.0
#include "sampler/pattern.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/check.h"

namespace incipit::sampler {
namespace {

constexpr std::uint32_t kMaxSteps = 100'000;  // of one search
constexpr std::uint32_t kMaxHeapKib = 4096;
constexpr int kMaxMatches = 1000;
constexpr std::size_t kMaxPattern = 64 * 1024;  // bytes

PCRE2_SPTR as_units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

struct FreeMatch {
  void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
};

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

void Pattern::Free::operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }

void Pattern::Free::operator()(pcre2_match_context* context) const noexcept {
  pcre2_match_context_free(context);
}

Pattern::Pattern(std::string_view regex) {
  if (regex.size() > kMaxPattern) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "the pattern has more than 64 KiB; give a shorter one");
  }
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(
      pcre2_compile(as_units(regex), regex.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C,
                    &error, &offset, nullptr));
  if (code_ == nullptr) {
    base::throw_error(
        ErrorCode::kInvalidArgument,
        "the pattern is wrong at byte " + std::to_string(offset) + ": " + message_of(error));
  }
  limits_.reset(pcre2_match_context_create(nullptr));
  if (limits_ == nullptr) throw std::bad_alloc();
  pcre2_set_match_limit(limits_.get(), kMaxSteps);
  pcre2_set_depth_limit(limits_.get(), kMaxSteps);
  pcre2_set_heap_limit(limits_.get(), kMaxHeapKib);
}

std::optional<std::string> Pattern::last_match(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, FreeMatch> data(
      pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  if (data == nullptr) throw std::bad_alloc();
  std::optional<std::string> found;
  std::size_t begin = 0;
  std::uint32_t options = 0;
  for (int matches = 0; matches < kMaxMatches && begin <= text.size();) {
    const int result = pcre2_match(code_.get(), as_units(text), text.size(), begin, options,
                                   data.get(), limits_.get());
    if (result == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    if (result == PCRE2_ERROR_NOMATCH && options != 0) {
      // An empty match is behind us, and nothing else begins there: go on behind the next
      // character.
      options = 0;
      ++begin;
      while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) {
        ++begin;
      }
      continue;
    }
    if (result <= 0) break;  // no further match, or too many steps
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data.get());
    const std::size_t group = result > 1 && span[2] != PCRE2_UNSET ? 2 : 0;
    // Some versions let \K in a look-around put the begin of a match behind its end.
    if (span[group] > span[group + 1] || span[1] < begin) break;
    found.emplace(text.substr(span[group], span[group + 1] - span[group]));
    options = span[0] == span[1] ? PCRE2_NOTEMPTY_ATSTART | PCRE2_ANCHORED : 0;
    begin = span[1];
    ++matches;
  }
  return found;
}

}  // namespace incipit::sampler
