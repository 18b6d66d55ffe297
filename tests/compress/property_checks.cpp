// SPDX-License-Identifier: Apache-2.0
#include "compress/property_checks.h"

#include <algorithm>
#include <array>

#include "compress/conversations.h"
#include "compress/invariants.h"
#include "incipit/compressor.h"

namespace incipit::test {
namespace {

constexpr auto kPolicies = std::to_array<CompressionPolicy>({
    CompressionPolicy::kNone,
    CompressionPolicy::kWindow,
    CompressionPolicy::kDedupSummaryTruncate,
    CompressionPolicy::kFrozenSegments,
});

ConversationOptions some_options(Dice& dice) {
  ConversationOptions options;
  options.turns = 1 + dice.below(12);
  options.sentences = 1 + dice.below(8);
  options.tools = dice.one_in(2);
  options.flags = dice.one_in(2);
  return options;
}

// What no policy leaves out.
std::size_t least_tokens(std::span<const Message> input, const TokenCounter& counter) {
  std::size_t tokens = counter.prompt;
  for (const Message& message : input) {
    if (message.pinned || message.constraint || message.role == Role::kSystem) {
      tokens += counter.message(message) + 40;  // and what is pinned with it
    }
  }
  std::size_t last = input.size();
  while (last > 0 && input[last - 1].role != Role::kUser) --last;
  for (; last > 0 && input[last - 1].role == Role::kUser; --last) {
    tokens += counter.message(input[last - 1]);
  }
  return tokens;
}

bool is_evidence(const Message& message) {
  return is_made(message) && message.text.starts_with("Recalled from earlier");
}

// I15: what the prompt shares with the last one, and what it has lost of it.
std::string wrong_front(const CompressedPrompt& last, const CompressedPrompt& prompt,
                        const TokenCounter& counter) {
  const auto same = [](Message a, const Message& b) {
    a.id = b.id;  // is not sent
    return same_message(a, b);
  };
  const auto apart = std::ranges::mismatch(last.messages, prompt.messages, same);
  std::size_t stable = 0, durable = 0;
  for (auto at = last.messages.begin(); at != apart.in1; ++at) stable += counter.message(*at);
  for (const Message& message : last.messages) {
    if (is_evidence(message)) break;
    durable += counter.message(message);
  }
  if (prompt.stable_tokens != stable) return "stable_tokens is not the common front";
  const std::size_t lost = durable - std::min(durable, stable);
  return prompt.invalidated_tokens == lost ? "" : "invalidated_tokens is not what is lost";
}

}  // namespace

std::string check_one_shot(std::uint64_t seed) {
  Dice dice(seed);
  const TokenCounter counter = byte_counter();
  const std::vector<Message> input = some_conversation(dice, some_options(dice));
  CompressorOptions options;
  options.policy = kPolicies[dice.below(kPolicies.size())];
  options.token_budget = 50 + dice.below(1500);
  options.compress_on_arrival = dice.one_in(2);
  bool has_pinned = false;
  for (const Message& message : input) has_pinned = has_pinned || message.pinned;
  CompressedPrompt prompt;
  try {
    prompt = Compressor::compress(input, options, counter);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBudgetInfeasible) return error.what();
    const bool may_fail = options.policy == CompressionPolicy::kNone || has_pinned ||
                          least_tokens(input, counter) + 40 > options.token_budget;
    return may_fail ? "" : std::string("needlessly: ") + error.what();
  }
  std::string broken = broken_promise(input, prompt, options, counter);
  if (!broken.empty()) return broken;
  if (prompt.report.size() != input.size()) return "the report is not whole";
  const CompressedPrompt again = Compressor::compress(input, options, counter);
  if (!same_messages(prompt.messages, again.messages)) return "not deterministic";
  const CompressedPrompt twice = Compressor::compress(prompt.messages, options, counter);
  // A message that lost its front may be compressed on arrival where the whole could not.
  const bool cut = options.policy == CompressionPolicy::kWindow && options.compress_on_arrival;
  if (!cut && !same_messages(prompt.messages, twice.messages))
    return "not idempotent by " + std::string(to_string(options.policy));
  return {};
}

std::string check_growing(std::uint64_t seed) {
  Dice dice(seed);
  const TokenCounter counter = byte_counter();
  ConversationOptions shape = some_options(dice);
  shape.turns = 2 + dice.below(12);
  const std::vector<Message> input = some_conversation(dice, shape);
  CompressorOptions options;
  options.policy = kPolicies[1 + dice.below(3)];
  options.token_budget = 300 + dice.below(900);
  options.compress_on_arrival = dice.one_in(2);
  options.headroom_turns = dice.below(8);
  options.min_reclaim = dice.below(200);
  Compressor compressor(options, counter);
  CompressedPrompt last;
  for (std::size_t i = 0; i < input.size(); ++i) {
    compressor.add(input[i]);
    const bool due = i + 1 < input.size() ? input[i + 1].role == Role::kAssistant : true;
    if (!due) continue;
    CompressedPrompt plan, prompt;
    const std::string before = compressor.serialize();
    try {
      plan = compressor.plan();
      prompt = compressor.apply();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBudgetInfeasible) return error.what();
      if (compressor.serialize() != before) return "a failure changed the state";
      continue;
    }
    if (!same_messages(plan.messages, prompt.messages)) return "plan() is not what apply() does";
    const std::span<const Message> so_far = std::span(input).first(i + 1);
    std::string broken = broken_promise(so_far, prompt, options, counter);
    if (!broken.empty()) return "after message " + std::to_string(i) + ": " + broken;
    const std::string log = compressor.serialize();
    if (!log.starts_with(before)) return "the log does not only grow";
    broken = wrong_front(last, prompt, counter);
    if (!broken.empty()) return broken;
    // I12: between compactions the new prompt begins with the last one, evidence aside.
    if (options.policy == CompressionPolicy::kFrozenSegments && !prompt.compacted) {
      std::vector<Message> old = last.messages, now = prompt.messages;
      std::erase_if(old, is_evidence);
      std::erase_if(now, is_evidence);
      if (old.size() > now.size()) return "the prompt has lost messages between compactions";
      if (!same_messages(old, std::span(now).first(old.size()))) return "the front has changed";
      if (prompt.invalidated_tokens > 0) return "invalidated without a compaction";
    }
    if (dice.one_in(4)) {
      compressor = Compressor::deserialize(log, options, counter);
      if (compressor.serialize() != log) return "replay gives another log";
    }
    last = std::move(prompt);
  }
  return {};
}

std::string check_fill(std::uint64_t seed) {
  Dice dice(seed);
  const TokenCounter counter = byte_counter();
  ConversationOptions shape;
  shape.turns = 20 + dice.below(20);
  shape.flags = false;
  CompressorOptions options;
  options.policy = kPolicies[1 + dice.below(3)];
  // A window cannot divide calls from results.
  shape.tools = options.policy == CompressionPolicy::kFrozenSegments && dice.one_in(2);
  const std::vector<Message> input = some_conversation(dice, shape);
  options.compress_on_arrival = dice.one_in(2);
  options.token_budget = 1200 + dice.below(1200);
  const CompressedPrompt prompt = Compressor::compress(input, options, counter);
  const std::string broken = broken_promise(input, prompt, options, counter);
  if (!broken.empty()) return broken;
  // What arrives compressed may fit by itself, and so may what is left without repetitions.
  const bool much_longer = prompt.tokens_before * 4 > options.token_budget * 5;
  if (options.compress_on_arrival || !much_longer) return {};
  if (prompt.tokens_after * 100 < options.token_budget * 97) {
    return "filled to " + std::to_string(prompt.tokens_after) + " of " +
           std::to_string(options.token_budget) + " by " + std::string(to_string(options.policy));
  }
  return {};
}

std::string check_long_chat(std::size_t turns) {
  CompressorOptions options;
  options.token_budget = 2000;
  Compressor compressor(options, byte_counter());
  for (std::size_t i = 0; i < turns; ++i) {
    Message user, reply{.role = Role::kAssistant};
    user.text = "Crate " + std::to_string(i) + " is open. Is it ours?";
    reply.text = "Yes, number " + std::to_string(i) + " belongs to us.";
    compressor.add(user);
    if (compressor.apply().tokens_after > options.token_budget) return "over budget";
    compressor.add(reply);
  }
  return {};
}

std::string first_broken(std::string (*check)(std::uint64_t seed), std::uint64_t first,
                         std::size_t cases) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  cases /= 20;
#endif
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    const std::string broken = check(seed);
    if (!broken.empty()) return std::to_string(seed) + ": " + broken;
  }
  return {};
}

}  // namespace incipit::test
