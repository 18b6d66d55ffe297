// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_SELF_CONSISTENCY_H_
#define INCIPIT_SELF_CONSISTENCY_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "incipit/engine.h"
#include "incipit/export.h"
#include "incipit/message.h"
#include "incipit/sampling.h"

namespace incipit::inline v0 {

/// Finds the answer in the text of a sample; nullopt: there is none, and the sample does not vote.
/// Called on the thread that samples.
using Extractor = std::function<std::optional<std::string>(std::string_view text)>;

/// Turns an answer into its canonical form: two answers are one vote where these are equal.
/// nullopt: this is no answer, and the sample does not vote. Called on the thread that samples.
using KeyFunction = std::function<std::optional<std::string>(std::string_view answer)>;

/// Ready-made extractors. All take the last answer of a text, since models recite their examples
/// before they come to it. Thread-safe, linear in the text (regex() is bounded instead).
namespace extract {
/// The last line that is not blank, trimmed.
INCIPIT_API Extractor last_line();
/// The last number: sign, digits, thousands separators, decimals, exponent, `a/b`, `%`. Digits of a
/// word ("B12"), a version ("1.2.3") or a date ("1/2/2030") are none. Written in ASCII.
INCIPIT_API Extractor last_number();
/// What follows the last `marker` on its line, trimmed: the format of GSM8K is `#### n`.
INCIPIT_API Extractor after(std::string marker = "####");
/// What the last whole `\boxed{...}` holds; braces may be nested.
INCIPIT_API Extractor boxed();
/// The letter of a multiple-choice answer, of the first `choices` (1 to 26) of the alphabet: as
/// "answer is (B)" or "Answer: B" has it, else one in brackets or asterisks, else one by itself.
INCIPIT_API Extractor letter(std::size_t choices = 5);
/// A member of the last JSON object in the text that has it, whatever stands around the object: a
/// text unquoted, a number as written, the rest as compact JSON. null is no answer.
INCIPIT_API Extractor json_field(std::string field);
/// The last match of a PCRE2 pattern (UTF-8, Unicode properties): of its first group, where it has
/// one. A match that takes too many steps is none. Throws Error{kInvalidArgument} for a bad
/// pattern.
INCIPIT_API Extractor regex(std::string_view pattern);
}  // namespace extract

/// Ready-made canonical forms. Thread-safe, linear in the answer.
namespace keys {
/// A number as the exact reduced fraction, "-3/4" or "1234": thousands separators (,'_ and narrow
/// spaces), currency signs, %, unicode minus, full-width digits, `a/b`, `\frac{a}{b}` and exponents
/// are understood; 50% is 50. nullopt for everything else, and beyond 38 digits.
INCIPIT_API KeyFunction number();
/// A single letter as a capital: "(b)." is "B".
INCIPIT_API KeyFunction letter();
/// Unicode form C in lower case, with single spaces, without dots at its end.
INCIPIT_API KeyFunction text();
/// number() where the answer is one, else text(). The default.
INCIPIT_API KeyFunction number_or_text();
}  // namespace keys

/// When to stop before all samples are taken. Looked at after each sample in the order of their
/// numbers, never in the order in which they end: short samples end first, and would bias the vote.
/// docs/self_consistency.md has derivations, guarantees and what each saves.
namespace stop {
/// Take them all.
struct None {};
/// Stop when no other answer can still win: the answer is that of all samples.
struct Lossless {};
/// Stop when the leader is the likeliest answer of the model, which is wrong with a probability of
/// `alpha` at most, over all times of stopping and whatever answers there are. From 1e-6 to 0.5.
struct Certified {
  double alpha = 0.05;  ///< Of a certified answer that is not the likeliest one.
};
/// Stop when the rest would change the answer with a probability of `epsilon` at most, as a uniform
/// prior has it; no guarantee. From 1e-6 to 0.5.
struct Horizon {
  double epsilon = 0.01;  ///< Of another answer after all samples.
};
}  // namespace stop
/// One of the rules above.
using StopRule = std::variant<stop::Horizon, stop::None, stop::Lossless, stop::Certified>;

/// What a vote weighs. Weighted votes go with None, Lossless and Horizon.
enum class Weighting {
  kUniform,      ///< 1.
  kMeanLogprob,  ///< exp(mean log-probability of the sample's tokens / weight_temperature).
  kTail,         ///< The same of its last tail_tokens tokens alone.
};

/// What became of a sample.
enum class SampleStatus {
  kVoted,     ///< It counts.
  kNoAnswer,  ///< It counts as a sample, and votes for nothing.
  kCancelled  ///< It was not needed any more, or the caller ended the call. Its text may be a part.
};

/// The enumerator's name without its `k`, in lower case with underscores: "no_answer".
INCIPIT_API std::string_view to_string(SampleStatus status) noexcept;

/// One sample.
struct Sample {
  SampleStatus status = SampleStatus::kCancelled;  ///< What became of it.
  GenerateResult result = {};                      ///< Text, ids, log-probabilities.
  std::optional<std::string> answer = {};          ///< As the extractor found it.
  std::optional<std::string> key = {};             ///< Its canonical form, by which it votes.
  double mean_logprob = 0.0;  ///< Of its tokens, as GenerateParams::logprobs_of says.
  double weight = 0.0;        ///< Of its vote, at most 1.
  double score = 0.0;         ///< As SelfConsistencyOptions::score has it.
};

/// An answer and the votes for it.
struct Vote {
  std::string key = {};          ///< The canonical form.
  std::string answer = {};       ///< As the first sample that voted for it wrote it.
  std::size_t count = 0;         ///< How many samples voted for it.
  double weight = 0.0;           ///< Of all of them.
  double mean_logprob = 0.0;     ///< Mean of the samples' own.
  std::size_t first_sample = 0;  ///< The number of the first of them.
};

/// How to sample and how to vote. Sample i depends on neither `samples`, `stop` nor the waves.
struct SelfConsistencyOptions {
  std::size_t samples = 16;     ///< At most; 1 to 4,096.
  std::size_t min_samples = 3;  ///< Before a rule may stop.
  StopRule stop = {};           ///< When to stop before `samples`.
  Extractor extract = {};       ///< Empty: extract::last_line().
  KeyFunction key = {};         ///< Empty: keys::number_or_text().

  Weighting weighting = Weighting::kUniform;  ///< Of the votes.
  double weight_temperature = 1.0;  ///< Below 1: confident samples weigh more. 0.01 to 100.
  std::size_t tail_tokens = 32;     ///< Of Weighting::kTail.

  /// Best of n: the answer is that of the sample with the highest score (then the lowest number),
  /// not that of the vote. Needs stop::None. Called in the order of the samples' numbers.
  std::function<double(const Sample& sample)> score = {};

  /// Of sample i: entry i modulo the length. Empty: that of GenerateParams (for a temperature of 0,
  /// which would give the same text each time: 0.8). Different temperatures or top_p exclude
  /// stop::Certified, which needs samples of one distribution.
  std::vector<float> temperatures = {};
  std::vector<float> top_ps = {};         ///< The same for GenerateParams::top_p.
  std::vector<std::uint64_t> seeds = {};  ///< The same for GenerateParams::seed.

  /// Samples to begin with; 0: as many as the rule needs if they all agree.
  std::size_t first_wave = 0;
  /// Samples under way later on; 0: by a cost model, see row_cost.
  std::size_t wave = 0;
  /// What one more sample adds to the time of a step, as a share of a step for one sample. A sample
  /// that may turn out superfluous is begun where it is needed with a higher probability than that.
  double row_cost = 0.2;
};

/// Something that has happened; the views are valid during the call.
struct SampleEvent {
  /// What it is.
  enum class Kind {
    kText,         ///< A sample's text goes on.
    kSampleDone,   ///< A sample has ended; in the order in which they end.
    kVoteChanged,  ///< A sample has voted; in the order of their numbers.
    kStopped       ///< No more samples are counted.
  };
  Kind kind = Kind::kText;           ///< What it is.
  std::size_t sample = 0;            ///< Which sample, from 0; not of kStopped.
  std::string_view text = {};        ///< Of kText: whole UTF-8 characters.
  const Sample* done = nullptr;      ///< Of kSampleDone and kVoteChanged.
  std::span<const Vote> tally = {};  ///< The vote so far, leader first.
  std::size_t counted = 0;           ///< Samples that it counts, those without an answer included.
};
/// Called on the thread that samples; false ends the sampling, and an exception passes through.
using SampleEventCallback = std::function<bool(const SampleEvent& event)>;

/// Why sampling ended.
enum class SamplingEnd {
  kAllTaken,  ///< All samples are counted, and no rule was met: nothing is certified.
  kRule,      ///< The stop rule was met.
  kStopped,   ///< By the stop token, or a callback that returned false.
  kTimeout,   ///< GenerateParams::timeout passed.
};

/// The enumerator's name without its `k`, in lower case with underscores: "all_taken".
INCIPIT_API std::string_view to_string(SamplingEnd end) noexcept;

/// What sampling took.
struct SamplingUsage {
  std::size_t prefilled_tokens = 0;  ///< Of prompts, computed.
  std::size_t shared_tokens = 0;     ///< Of prompts, not computed again.
  std::size_t decoded_tokens = 0;    ///< Of the samples that count.
  std::size_t cancelled_tokens = 0;  ///< Of the others: waste.
  std::chrono::microseconds time{};  ///< From the call to its return.
};

/// What sampling gave.
struct SelfConsistencyResult {
  std::optional<std::string> answer = {};  ///< nullopt where no sample had one.
  std::optional<std::size_t> winner = {};  ///< The sample that the answer is from.
  std::vector<Vote> tally = {};  ///< Winner first: by weight, mean log-probability, first sample.
  std::vector<Sample> samples = {};          ///< All that were begun, by number.
  std::size_t stopped_after = 0;             ///< Samples that count: the first so many.
  SamplingEnd end = SamplingEnd::kAllTaken;  ///< Why there are not more.
  SamplingUsage usage = {};                  ///< What it took.
};

/// Asks the same several times over one shared prefill, and takes the answer that comes up most.
/// (Wang et al., "Self-consistency improves chain of thought reasoning", ICLR 2023.)
///
///     incipit::SelfConsistencySampler sampler(engine, {.extract =
///     incipit::extract::last_number()}); auto result = sampler.sample(worked_examples, question);
///
/// Sample i of a seed is the same text whatever `samples`, waves, threads and other requests are;
/// it is what Engine::generate_with_cache() gives with GenerateParams::sample = i. The answer, the
/// tally and stopped_after depend on nothing else, either.
///
/// Thread safety: as Engine, which must outlive it. Several calls may run at once.
class INCIPIT_API SelfConsistencySampler {
 public:
  /// Throws Error{kInvalidArgument} for options out of range, or that exclude each other.
  explicit SelfConsistencySampler(Engine& engine, SelfConsistencyOptions options = {});
  ~SelfConsistencySampler();
  SelfConsistencySampler(const SelfConsistencySampler&) = delete;
  SelfConsistencySampler& operator=(const SelfConsistencySampler&) = delete;

  /// Samples answers to `static_text` followed by `dynamic_prompt`. GenerateParams::sample is the
  /// number of the first sample, stop and timeout are for all of them together, and on_prefill is
  /// called for the first. on_text must be empty: `on_event` has the text.
  /// A sample that fails ends the call with its error, unless the samples before it decide. Throws
  /// Error: kPromptTooLong, kOutOfMemory, kInvalidArgument; what a callback throws.
  SelfConsistencyResult sample(std::string_view static_text, std::string_view dynamic_prompt,
                               const GenerateParams& params = {},
                               const SampleEventCallback& on_event = {}) const;
  /// The same from messages.
  SelfConsistencyResult sample(std::span<const Message> conversation,
                               const GenerateParams& params = {},
                               const SampleEventCallback& on_event = {}) const;
  /// The same from token ids.
  SelfConsistencyResult sample(std::span<const TokenId> prompt, const GenerateParams& params = {},
                               const SampleEventCallback& on_event = {}) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace incipit::inline v0

#endif  // INCIPIT_SELF_CONSISTENCY_H_
