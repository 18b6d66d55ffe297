// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_COMPRESSION_EVAL_BASELINES_H_
#define INCIPIT_BENCHMARKS_COMPRESSION_EVAL_BASELINES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "memory.h"
#include "retrieve/bm25.h"

namespace bench {

/// A message with the tool results that answer it: what is kept or dropped together.
struct Unit {
  std::vector<incipit::Message> messages;
  std::size_t tokens = 0;
};

/// What both baselines keep: all messages by units, system messages apart.
class Units {
 public:
  Units(std::size_t budget, incipit::TokenCounter counter);
  void add(const incipit::Message& message);
  /// Of the budget, what system messages leave; throws std::runtime_error where nothing is left.
  std::size_t room() const;
  std::size_t count(const incipit::Message& message) const { return counter_.message(message); }
  std::size_t budget() const noexcept { return budget_; }
  const std::vector<incipit::Message>& system() const noexcept { return system_; }
  const std::vector<Unit>& all() const noexcept { return units_; }

 private:
  std::size_t budget_;
  incipit::TokenCounter counter_;
  std::vector<incipit::Message> system_;
  std::vector<Unit> units_;
  std::size_t system_tokens_;
};

/// The usual summary buffer: what no longer fits goes, oldest first, into one moving summary behind
/// the system prompt, which is written anew each time. The summary is extractive, at most a quarter
/// of the budget, and may hold any sentence of the last summary and of what goes.
class SummaryBuffer final : public Memory {
 public:
  SummaryBuffer(std::size_t budget, const incipit::TokenCounter& counter);
  void add(const incipit::Message& message) override;
  std::vector<incipit::Message> prompt() override;
  std::vector<incipit::Message> probe(const incipit::Message& question) const override;

 private:
  void fold();
  void summarize(const std::vector<incipit::Message>& gone, std::size_t most);

  Units units_;
  incipit::TokenCounter counter_;
  incipit::retrieve::Bm25 index_;     // of all that was said, for salience
  std::vector<std::string> summary_;  // sentences, old to new
  std::size_t summary_tokens_ = 0;
  std::size_t first_live_ = 0;  // of the units
};

/// Chooses anew what to send on each turn: the units that match the last user message best, their
/// neighbours among them, in their order; the newest where nothing matches.
class QueryRewrite final : public Memory {
 public:
  QueryRewrite(std::size_t budget, const incipit::TokenCounter& counter);
  void add(const incipit::Message& message) override;
  std::vector<incipit::Message> prompt() override;
  std::vector<incipit::Message> probe(const incipit::Message& question) const override;

 private:
  /// Of the first `count` units, with `query` behind them.
  std::vector<incipit::Message> choose(const incipit::Message& query, std::size_t count) const;

  Units units_;
  incipit::retrieve::Bm25 index_;     // of messages
  std::vector<std::size_t> unit_of_;  // by message
};

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_COMPRESSION_EVAL_BASELINES_H_
