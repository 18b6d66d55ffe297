// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESSOR_H_
#define INCIPIT_COMPRESSOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "incipit/error.h"
#include "incipit/export.h"
#include "incipit/message.h"

namespace incipit::inline v0 {

/// Counts without a model: by script; English text and code within 15 % of what models count. A
/// message takes 5 more.
INCIPIT_API TokenCounter rough_token_counter();

/// How a conversation is made to fit.
enum class CompressionPolicy {
  kNone,    ///< Not at all: an error where it does not fit.
  kWindow,  ///< The system prompt and the newest messages stay.
  /// Near-duplicates go, turns before the newest become one summary when the budget is almost
  /// full, and what still does not fit is cut. Rewrites the front of the prompt on every turn.
  kDedupSummaryTruncate,
  /// Old turns are shortened once, when the budget is full, to segments that then stay as they are;
  /// what the last user turn asks for is brought back just in front of it. Leaves the front of the
  /// prompt, and so the KV cache, alone between compactions.
  kFrozenSegments,
};

/// The enumerator's name without its `k`, in lower case with underscores: "frozen_segments".
INCIPIT_API std::string_view to_string(CompressionPolicy policy) noexcept;

/// Says how much each text matters, in any unit, instead of the built-in measure: the mean negative
/// log-likelihood of its tokens, say, or the attention that it gets. Must return one number per
/// text. `question` is empty where it is not known yet (history that is being shortened).
using TextScorer = std::function<std::vector<std::uint64_t>(
    std::string_view question, std::span<const std::string_view> texts)>;

/// What a Compressor does, and how far it goes. The defaults suit chats.
struct CompressorOptions {
  std::size_t token_budget = 4096;  ///< What a prompt may take, all that the format adds included.
  CompressionPolicy policy = CompressionPolicy::kFrozenSegments;  ///< See there.

  /// A compaction leaves about this share of the budget in use.
  double low_watermark = 0.45;
  /// More may stay than low_watermark says, as long as so many turns still have room.
  std::size_t headroom_turns = 64;
  std::size_t min_reclaim = 256;  ///< Tokens that a compaction frees at least, where it can.
  double segment_ratio = 0.25;    ///< Length of a frozen segment against what it stands for.
  double frozen_cap = 0.5;        ///< Share of the budget above which frozen segments are merged.
  /// Share of the budget for what is brought back in front of the last user turn; 0: nothing.
  double evidence_share = 1.0 / 16;

  double duplicate_threshold = 0.85;   ///< Jaccard similarity from which texts are duplicates.
  std::size_t recent_turns_kept = 3;   ///< By kDedupSummaryTruncate, as they are.
  double summary_watermark = 0.8;      ///< Share of the budget above which it summarises.
  std::size_t max_tool_tokens = 2000;  ///< About; longer tool results lose their middle.
  /// Tool results, and history that was never sent, lose duplicates, filler and layout at once.
  bool compress_on_arrival = true;
  /// Orders in user turns ("Never ...", "From now on ...", 不要…) are kept word for word, the
  /// newest of them, in up to a quarter of each segment. Those that Message::constraint marks are
  /// all kept.
  bool find_constraints = true;

  Summarizer summarizer = {};  ///< Empty, or where it fails: sentences are selected.
  TextScorer importance = {};  ///< Of sentences, when history is shortened.
  TextScorer relevance = {};   ///< Of old messages to the last user turn; empty: BM25.
};

/// What became of a message.
enum class MessageFate {
  kKept,        ///< It is in the prompt as it was added.
  kDuplicate,   ///< An earlier message says the same; a reference stands in its place.
  kShortened,   ///< A part of it is in its place.
  kSummarized,  ///< A frozen segment or a summary stands for it.
  kDropped,     ///< Nothing of it is left in the prompt.
  kQuoted,      ///< Summarised or dropped, but brought back for the last user turn.
};

/// The enumerator's name without its `k`, in lower case: "kept".
INCIPIT_API std::string_view to_string(MessageFate fate) noexcept;

/// What became of one message, and why.
struct MessageReport {
  std::size_t index = 0;                  ///< Of the message, in the order of add().
  std::string id = {};                    ///< Message::id, or its number from 1 where it has none.
  MessageFate fate = MessageFate::kKept;  ///< See there.
  std::size_t tokens_before = 0;          ///< As it was added.
  std::size_t tokens_after = 0;           ///< Of what is left of it; about, in a segment.
  std::string why = {};                   ///< For people.
  std::vector<std::string> handles =
      {};  ///< For Compressor::restore(): what was left out on arrival.
};

/// A prompt that fits the budget.
struct CompressedPrompt {
  std::vector<Message> messages = {};  ///< Old to new: for Engine::generate_with_cache().
  /// Of messages that are new since the last applied prompt, whose fate changes, or that are
  /// quoted, in order. For a new Compressor that is all of them; Compressor::report() has all.
  std::vector<MessageReport> report = {};
  std::size_t tokens_before = 0;  ///< Of the whole conversation as it was added.
  std::size_t tokens_after = 0;   ///< Of `messages`: at most the budget.
  /// Front that equals the prompt applied last, in whole messages: the cache has its KV.
  std::size_t stable_tokens = 0;
  /// Of the prompt applied last, its evidence and last user turn aside: no longer at the front, so
  /// computed anew where it is still there.
  std::size_t invalidated_tokens = 0;
  std::size_t reclaimed_tokens = 0;  ///< That a compaction freed.
  bool compacted = false;            ///< Whether there was one.

  /// Share of the conversation's tokens that is saved, 0 to 1.
  double ratio() const noexcept {
    return tokens_before > tokens_after
               ? 1.0 - static_cast<double>(tokens_after) / static_cast<double>(tokens_before)
               : 0.0;
  }
};

/// Fits a growing conversation into a token budget without disturbing what is cached.
///
///     incipit::Compressor compressor({.token_budget = 4096}, engine.token_counter());
///     compressor.add({.role = incipit::Role::kUser, .text = question});
///     auto answer = engine.generate_with_cache(compressor.apply().messages);
///     compressor.add({.role = incipit::Role::kAssistant, .text = answer.text});
///
/// Every prompt keeps: system messages, pinned ones and the last user message word for word; a tool
/// call and its results together; marked orders word for word; the budget, counted as the model
/// counts.
/// Sentences, code blocks, JSON values and tables are kept or left out as a whole, and nothing is
/// reworded, save by a Summarizer. How it works, and what came of measuring it:
/// docs/compression.md.
///
/// The same messages, options and counts give the same prompts on every machine. Not thread-safe:
/// one per conversation. A turn costs O(its tokens + the budget), and a look-up in an index of what
/// was left out; a message is counted once, when it is added.
class INCIPIT_API Compressor {
 public:
  /// Throws Error{kInvalidArgument} for options out of their range, or a counter without `text`.
  Compressor(CompressorOptions options, TokenCounter counter);
  ~Compressor();
  /// A moved-from compressor may only be destroyed or assigned to.
  Compressor(Compressor&&) noexcept;
  /// As the move constructor.
  Compressor& operator=(Compressor&&) noexcept;

  /// Appends a message. A tool result belongs to the assistant's message in front of it. Throws
  /// Error{kInvalidArgument} for an unknown role, and what the counter throws; nothing is added
  /// then.
  void add(Message message);
  /// Messages so far.
  std::size_t size() const noexcept;

  /// The prompt that apply() would give. Changes nothing: neither this prompt nor the state of the
  /// compressor depends on how often it was called. Throws as apply().
  CompressedPrompt plan() const;
  /// The prompt for these messages and `next`, as if it had been added. Leaves no trace. Copies the
  /// state: O(all messages).
  CompressedPrompt plan(const Message& next) const;
  /// The prompt to send now, and the state moves to it. Throws Error{kBudgetInfeasible}, which
  /// names what takes the room, where the system prompt, pinned messages, orders and the last user
  /// message alone exceed the budget. Whatever is thrown, the state is as it was before the call.
  CompressedPrompt apply();

  /// What became of every message in the prompt applied last, in order. O(messages).
  std::vector<MessageReport> report() const;
  /// The text behind a handle that stands in a compressed message; nullopt for an unknown one.
  std::optional<std::string> restore(std::string_view handle) const;

  /// One conversation at once, by a compressor that is then thrown away: uses the whole budget,
  /// which kFrozenSegments otherwise does not, to leave room for turns to come. Of a conversation
  /// that is longer by a quarter the prompt takes at least 97 % of the budget, unless single
  /// sentences, code blocks or the like have more than 3 % of it, much is said twice, or kNone or a
  /// Summarizer decide otherwise. Throws as apply().
  static CompressedPrompt compress(std::span<const Message> conversation,
                                   const CompressorOptions& options, const TokenCounter& counter);

  /// The state as a log of what was added, shortened and applied. It only grows at its end: what
  /// serialize() returned earlier is the front of what it returns now.
  std::string serialize() const;
  /// A compressor that goes on exactly as the one that was serialised would have, given the same
  /// options and counter; in any process, on any machine. Calls no Summarizer and no TextScorer.
  /// Throws Error{kInvalidArgument} for bytes that serialize() did not write.
  static Compressor deserialize(std::string_view log, CompressorOptions options,
                                TokenCounter counter);

 private:
  class Impl;
  __attribute__((visibility("hidden"))) explicit Compressor(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace incipit::inline v0

#endif  // INCIPIT_COMPRESSOR_H_
