// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_PRE_TOKEN_PATTERN_H_
#define INCIPIT_TEXT_PRE_TOKEN_PATTERN_H_

#include <cstddef>
#include <memory>
#include <string_view>

#include "text/tokenizer.h"

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;

namespace incipit::text {

/// The regular expression by which Hugging Face's tokenizer.json cuts text for a pre-tokenizer
/// (for kSmolLm: after the digits have been set apart).
std::string_view published_regex(PreTokenizer kind);

/// A compiled pre-tokenizer. Immutable, so callers may share it. What it takes must be valid UTF-8.
class PreTokenPattern {
 public:
  /// Compiles to machine code where `jit` is set and the host lets it; the matches are the same.
  explicit PreTokenPattern(PreTokenizer kind, bool jit = true);

  /// The memory of one caller.
  class Scanner {
   public:
    explicit Scanner(const PreTokenPattern& pattern);
    /// Length of the pre-token at the front of `text`, which must not be empty.
    std::size_t next(std::string_view text);
    /// The same for a text that may go on: 0 where what follows could change the pre-token.
    std::size_t next_in_open_text(std::string_view text);

   private:
    std::size_t match(std::string_view text, unsigned options);

    struct Free {
      void operator()(pcre2_real_match_data_8* data) const noexcept;
    };
    const PreTokenPattern& pattern_;
    std::unique_ptr<pcre2_real_match_data_8, Free> data_;
  };

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const noexcept;
    void operator()(pcre2_real_match_context_8* context) const noexcept;
  };
  std::unique_ptr<pcre2_real_code_8, Free> code_;
  std::unique_ptr<pcre2_real_match_context_8, Free> limits_;
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_PRE_TOKEN_PATTERN_H_
