// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_SAMPLER_PATTERN_H_
#define INCIPIT_SAMPLER_PATTERN_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;

namespace incipit::sampler {

/// A regular expression of the host over text that may be anything. Immutable, so callers may share
/// it; the steps and memory of a match are bounded, and so is the number of matches.
class Pattern {
 public:
  /// Throws Error{kInvalidArgument} where PCRE2 rejects it.
  explicit Pattern(std::string_view regex);

  /// As extract::regex() documents. Of more than 1,000 matches the thousandth is the last.
  std::optional<std::string> last_match(std::string_view text) const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const noexcept;
    void operator()(pcre2_real_match_context_8* context) const noexcept;
  };
  std::unique_ptr<pcre2_real_code_8, Free> code_;
  std::unique_ptr<pcre2_real_match_context_8, Free> limits_;
};

}  // namespace incipit::sampler

#endif  // INCIPIT_SAMPLER_PATTERN_H_
