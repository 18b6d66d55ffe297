// SPDX-License-Identifier: Apache-2.0
#include "replay.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "memory.h"
#include "text/ascii.h"
#include "text/segmentation.h"

namespace bench {
namespace {

using incipit::Message;
using incipit::Role;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// One conversation, through one memory.
class Replay {
 public:
  Replay(const Conversation& conversation, const std::string& policy,
         const incipit::CompressorOptions& options, const PromptTokens& tokens, Totals& totals)
      : conversation_(conversation),
        tokens_(tokens),
        totals_(totals),
        memory_(make_memory(policy, options, timed(tokens.counter()))) {}

  void run() {
    const Merged merged = merge_turns(conversation_.turns);
    auto question = conversation_.questions.begin();
    add(system_prompt(tokens_.counter()));
    for (std::size_t i = 0; i < merged.messages.size(); ++i) {
      const Message& message = merged.messages[i];
      add(message);
      if (message.role == Role::kUser) {
        request();
      } else {
        sent_.push_back(message);
      }
      for (; question != conversation_.questions.end() && merged.message_of[question->after] <= i;
           ++question) {
        probe(*question);
      }
    }
  }

 private:
  /// A counter whose time is not the compressor's.
  incipit::TokenCounter timed(const incipit::TokenCounter& counter) {
    const auto wrap = [this](const auto& count) {
      return [this, &count](const auto& counted) {
        const Clock::time_point begin = Clock::now();
        const std::size_t result = count(counted);
        counting_seconds_ += seconds_since(begin);
        return result;
      };
    };
    return {wrap(counter.text), wrap(counter.message), counter.prompt};
  }

  template <class Call>
  auto measured(Call call) {
    const double counting = counting_seconds_;
    const Clock::time_point begin = Clock::now();
    auto result = call();
    totals_.compressor_seconds += seconds_since(begin) - (counting_seconds_ - counting);
    return result;
  }

  void add(const Message& message) {
    measured([&] {
      memory_->add(message);
      return 0;
    });
  }

  void request() {
    std::vector<Message> prompt = measured([&] { return memory_->prompt(); });
    const std::size_t all = tokens_.count(prompt);
    const std::size_t shared = std::min(all, tokens_.shared(prompt, sent_));
    ++totals_.turns;
    totals_.prompt_tokens += all;
    totals_.prefilled_tokens += all - shared;
    totals_.longest_prompt = std::max(totals_.longest_prompt, all);
    sent_ = std::move(prompt);
  }

  void probe(const Question& question) {
    if (question.evidence.empty()) return;
    const std::vector<Message> prompt =
        memory_->probe({.role = Role::kUser, .text = question.text, .id = "question"});
    std::string shown;  // all but the question
    for (std::size_t i = 0; i + 1 < prompt.size(); ++i) shown += shown_text(prompt[i]) + "\n";
    std::size_t recalled = 0;
    for (const std::size_t turn : question.evidence) {
      if (recalls(shown, conversation_.turns[turn])) ++recalled;
    }
    ++totals_.questions;
    totals_.recall += static_cast<double>(recalled) / static_cast<double>(question.evidence.size());
  }

  /// Whether whole sentences with at least half of the evidence's tokens are shown.
  bool recalls(std::string_view shown, const Message& evidence) {
    const std::string text = shown_text(evidence);
    std::size_t all = 0, found = 0;
    CriticalCounts critical, kept;
    for (const incipit::text::Span& span : incipit::text::sentences(text)) {
      const std::string_view sentence = incipit::text::trimmed(span.of(text));
      const std::size_t size = tokens_.counter().text(sentence);
      all += size;
      critical += count_critical(sentence);
      if (shown.find(sentence) == std::string_view::npos) continue;
      found += size;
      kept += count_critical(sentence);
    }
    if (all == 0 || 2 * found < all) return false;
    totals_.in_recalled += critical;
    totals_.kept += kept;
    return true;
  }

  const Conversation& conversation_;
  const PromptTokens& tokens_;
  Totals& totals_;
  double counting_seconds_ = 0;
  std::vector<Message> sent_;  // the last request, and what followed it
  std::unique_ptr<Memory> memory_;
};

}  // namespace

Result replay(const std::vector<Conversation>& conversations, const std::string& policy,
              const incipit::CompressorOptions& options, const PromptTokens& tokens) {
  Result result{policy, options.token_budget, {}};
  for (const Conversation& conversation : conversations) {
    Replay(conversation, policy, options, tokens, result.totals).run();
  }
  return result;
}

}  // namespace bench
