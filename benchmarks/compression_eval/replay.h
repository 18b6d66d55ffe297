// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_COMPRESSION_EVAL_REPLAY_H_
#define INCIPIT_BENCHMARKS_COMPRESSION_EVAL_REPLAY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "conversation.h"
#include "critical.h"
#include "incipit/compressor.h"
#include "prompt_tokens.h"

namespace bench {

/// Of all conversations together.
struct Totals {
  std::size_t turns = 0, prompt_tokens = 0, prefilled_tokens = 0, longest_prompt = 0;
  std::size_t questions = 0;        // that have evidence
  double recall = 0;                // sum over questions of the share of evidence recalled
  CriticalCounts in_recalled = {};  // in recalled pieces of evidence
  CriticalCounts kept = {};         // of those, in sentences that stand in the prompt
  double compressor_seconds = 0;    // counting tokens aside

  double prefilled_per_turn() const { return share(prefilled_tokens, turns); }
  double hit_ratio() const { return 1 - share(prefilled_tokens, prompt_tokens); }
  double evidence_recall() const {
    return questions == 0 ? 0 : recall / static_cast<double>(questions);
  }
  double retention(Critical kind) const {
    const std::size_t all = in_recalled[kind];
    return all == 0 ? 1 : share(kept[kind], all);
  }
  double us_per_turn() const {
    return turns == 0 ? 0 : 1e6 * compressor_seconds / static_cast<double>(turns);
  }

 private:
  static double share(std::size_t part, std::size_t all) {
    return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
  }
};

struct Result {
  std::string policy;
  std::size_t budget = 0;
  Totals totals;
};

/// Replays each conversation by itself, behind a system prompt of 400 tokens: every user message is
/// a request, and each question a probe at its place.
Result replay(const std::vector<Conversation>& conversations, const std::string& policy,
              const incipit::CompressorOptions& options, const PromptTokens& tokens);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_COMPRESSION_EVAL_REPLAY_H_
