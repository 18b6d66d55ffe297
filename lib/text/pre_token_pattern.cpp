// SPDX-License-Identifier: Apache-2.0
#include "text/pre_token_pattern.h"

#include <cstdint>
#include <new>
#include <string>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/check.h"

namespace incipit::text {
namespace {

constexpr std::string_view kGpt2Regex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// GPT-2's within the stretches between digits, which stand alone: a stretch of spaces may end
// where a digit follows as it may at the end of the text.
constexpr std::string_view kSmolLmRegex =
    R"(\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+)";

// BLOOM's stretches of anything but white space and some punctuation, as published and as it works:
// the expression nests one class in another, and the rest between its matches is kept in one piece,
// but for a space that belongs to the match behind it.
constexpr std::string_view kBloomPublished = R"( ?[^(\s|[.,!?…。，、।۔،])]+)";
constexpr std::string_view kBloomRegex =
    R"( ?[^\s(|)\.,!\?…。，、।۔،]+)"
    R"(|[\s(|)\.,!\?…。，、।۔،]*(?! )[\s(|)\.,!\?…。，、।۔،](?=[^\s(|)\.,!\?…。，、।۔،]))"
    R"(|[\s(|)\.,!\?…。，、।۔،]+(?![^\s(|)\.,!\?…。，、।۔،]))";

constexpr std::string_view kTekkenRegex =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string_view regex_of(PreTokenizer kind) {
  switch (kind) {
    case PreTokenizer::kGpt2:
      return kGpt2Regex;
    case PreTokenizer::kSmolLm:
      return kSmolLmRegex;
    case PreTokenizer::kLlama3:
      return kLlama3Regex;
    case PreTokenizer::kQwen2:
      return kQwen2Regex;
    case PreTokenizer::kBloom:
      return kBloomRegex;
    case PreTokenizer::kTekken:
      return kTekkenRegex;
  }
  base::throw_error(ErrorCode::kInternal, "unknown pre-tokenizer");
}

/// Writes \s and \S out: PCRE2's take in U+180E, Unicode's White_Space and the engine of Hugging
/// Face's tokenizers do not.
std::string with_unicode_spaces(std::string_view regex) {
  constexpr std::string_view kSpaces =
      R"(\x09-\x0D\x20\x85\xA0\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < regex.size(); ++i) {
    const std::string_view two = regex.substr(i, 2);
    if (two == R"(\s)" || two == R"(\S)") {
      const std::string_view open = two == R"(\S)" ? "[^" : "[";
      if (!in_class) out += open;
      out += kSpaces;
      if (!in_class) out += ']';
      ++i;
      continue;
    }
    if (regex[i] == '[') in_class = true;
    if (regex[i] == ']') in_class = false;
    out += regex[i];
  }
  return out;
}

PCRE2_SPTR as_units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

std::string_view published_regex(PreTokenizer kind) {
  if (kind == PreTokenizer::kBloom) return kBloomPublished;
  return kind == PreTokenizer::kSmolLm ? kGpt2Regex : regex_of(kind);
}

void PreTokenPattern::Free::operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }

void PreTokenPattern::Free::operator()(pcre2_match_context* context) const noexcept {
  pcre2_match_context_free(context);
}

void PreTokenPattern::Scanner::Free::operator()(pcre2_match_data* data) const noexcept {
  pcre2_match_data_free(data);
}

PreTokenPattern::PreTokenPattern(PreTokenizer kind, bool jit) {
  const std::string regex = with_unicode_spaces(regex_of(kind));
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(pcre2_compile(as_units(regex), regex.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED,
                            &error, &offset, nullptr));
  if (code_ == nullptr) {
    base::throw_error(ErrorCode::kInternal, "PCRE2 rejects a pre-tokenizer's pattern with error " +
                                                std::to_string(error) + " at " +
                                                std::to_string(offset));
  }
  // A failure (JIT not built in, or a host that forbids executable memory) only costs speed.
  if (jit) pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);

  // The patterns backtrack over at most one repetition, so that work and memory are linear; PCRE2's
  // own limits would reject a long run of spaces.
  limits_.reset(pcre2_match_context_create(nullptr));
  if (limits_ == nullptr) throw std::bad_alloc();
  pcre2_set_match_limit(limits_.get(), UINT32_MAX);
  pcre2_set_depth_limit(limits_.get(), UINT32_MAX);
  pcre2_set_heap_limit(limits_.get(), UINT32_MAX);
}

PreTokenPattern::Scanner::Scanner(const PreTokenPattern& pattern)
    : pattern_(pattern), data_(pcre2_match_data_create(1, nullptr)) {
  if (data_ == nullptr) throw std::bad_alloc();
}

std::size_t PreTokenPattern::Scanner::next(std::string_view text) { return match(text, 0); }

std::size_t PreTokenPattern::Scanner::next_in_open_text(std::string_view text) {
  return match(text, PCRE2_PARTIAL_HARD);
}

std::size_t PreTokenPattern::Scanner::match(std::string_view text, unsigned options) {
  const auto run = [&](unsigned extra) {
    return pcre2_match(pattern_.code_.get(), as_units(text), text.size(), 0,
                       options | PCRE2_NO_UTF_CHECK | extra, data_.get(), pattern_.limits_.get());
  };
  int result = run(0);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = run(PCRE2_NO_JIT);
  if (result == PCRE2_ERROR_PARTIAL) return 0;
  if (result == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
  // Any character begins a match of each pattern, and no match is empty.
  INCIPIT_CHECK(result > 0);
  return pcre2_get_ovector_pointer(data_.get())[1];
}

}  // namespace incipit::text
