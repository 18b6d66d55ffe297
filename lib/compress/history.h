// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_HISTORY_H_
#define INCIPIT_COMPRESS_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/hash.h"
#include "compress/near_duplicates.h"
#include "compress/repeated_blocks.h"
#include "incipit/compressor.h"
#include "retrieve/bm25.h"
#include "text/segmentation.h"

namespace incipit::compress {

/// Names the content of a message; nothing else than equal messages has equal digests.
base::Digest128 digest_of(const Message& message);

/// What a message takes, all that the chat format adds included.
std::size_t count_message(const TokenCounter& counter, const Message& message);

/// What a text is found and compared by.
struct Features {
  std::vector<std::uint64_t> terms = {};
  Sketch sketch = {};
};

/// A message of the conversation.
struct Entry {
  Message message = {};                         // as it was added
  std::shared_ptr<const Message> changed = {};  // as it was compressed on arrival
  std::size_t tokens_before = 0;                // of `message`
  std::size_t tokens = 0;                       // of shown()
  base::Digest128 digest = {};                  // of shown()
  std::size_t unit = 0;                         // first message of its unit
  MessageFate fate = MessageFate::kKept;        // on arrival
  std::string why = {};
  std::vector<std::string> handles = {};
  std::optional<Features> features = {};  // of `message`, until it is remembered
  bool fixed = false;  // only of the first message of a unit: the unit is never touched

  const Message& shown() const noexcept { return changed ? *changed : message; }
};

/// A part of a message that can be found.
struct Passage {
  std::uint32_t entry = 0;
  text::Span span = {};  // of the shown text
  bool asks = false;     // ends in a question of the user
};

/// What adding a message does.
struct Arrival {
  Entry entry = {};
  /// Earlier ones that follow each other, as they become.
  std::vector<std::pair<std::size_t, Entry>> settled = {};
};

/// All messages, in order, as they are shown once they have arrived. Messages form units: a
/// message by itself, or an assistant's message with tool calls and the results behind it.
///
/// What was never sent may change as it arrives, since no KV cache knows it yet. That goes for tool
/// results, and for imported history: all but the last user turn and the reply to a prompt that was
/// applied. Whether a user message is of the last turn shows when the next one arrives.
class History {
 public:
  History(const CompressorOptions& options, const TokenCounter& counter);

  /// What add() would do. `is_live` tells whether an earlier message is in prompts as it is shown,
  /// `is_covered` whether a segment stands for it.
  Arrival arriving(const Message& message, std::size_t applied,
                   base::FunctionRef<bool(std::size_t entry)> is_live,
                   base::FunctionRef<bool(std::size_t entry)> is_covered) const;
  void add(Arrival arrival);

  std::size_t size() const noexcept { return entries_.size(); }
  const Entry& operator[](std::size_t i) const { return entries_[i]; }
  bool is_fixed(std::size_t i) const { return entries_[entries_[i].unit].fixed; }

  /// Messages of fixed units, ascending.
  const std::vector<std::uint32_t>& fixed() const noexcept { return fixed_; }
  std::size_t tokens_before() const noexcept { return tokens_before_; }
  /// Tokens that a turn adds: a moving average, or those of the last one where they are more.
  std::size_t growth() const noexcept { return growth_ > turn_tokens_ ? growth_ : turn_tokens_; }
  std::size_t turns() const noexcept { return turns_; }
  /// The last turn's user messages: [first, second). Both 0 where there are none.
  std::pair<std::size_t, std::size_t> last_turn() const noexcept { return last_turn_; }

  const retrieve::Bm25& index() const noexcept { return index_; }
  Passage passage(std::uint32_t document) const {
    return {entry_of(document), passages_[document], asks(document)};
  }
  /// Parts of that, for very many documents.
  std::uint32_t entry_of(std::uint32_t document) const noexcept {
    return document_entries_[document] >> 1;
  }
  bool asks(std::uint32_t document) const noexcept {
    return (document_entries_[document] & 1) != 0;
  }
  std::optional<std::string> restore(std::string_view handle) const;

 private:
  using Handles = std::unordered_map<std::string, std::uint32_t>;  // the entry with the text

  /// `given` has the handles of the arrival so far.
  void compress_arrival(Entry& entry, const Handles& given,
                        base::FunctionRef<bool(std::size_t entry)> is_live) const;
  std::string handle_for(std::string_view text, const Handles& given) const;
  void change_text(Entry& entry, std::string text, MessageFate fate, std::string_view why) const;
  void remember(std::size_t i);

  const CompressorOptions& options_;
  const TokenCounter& counter_;
  std::deque<Entry> entries_;
  std::vector<std::uint32_t> fixed_;
  std::pair<std::size_t, std::size_t> last_turn_ = {};
  std::size_t tokens_before_ = 0, growth_ = 0, turns_ = 0, turn_tokens_ = 0;

  NearDuplicates duplicates_;
  std::vector<std::uint32_t> duplicate_entries_;  // by number in duplicates_
  RepeatedBlocks blocks_;
  std::vector<std::uint32_t> block_entries_;  // by number in blocks_
  retrieve::Bm25 index_;
  std::vector<std::uint32_t> document_entries_;  // twice the entry, and 1 where it asks
  std::deque<text::Span> passages_;              // by document
  Handles handles_;
};

/// The messages as prompts are made of them.
class View {
 public:
  explicit View(const History& history) : history_(history) {}

  const History& history() const noexcept { return history_; }
  std::size_t size() const noexcept { return history_.size(); }
  const Entry& operator[](std::size_t i) const { return history_[i]; }
  bool is_fixed(std::size_t i) const { return history_.is_fixed(i); }
  std::size_t tokens_before() const { return history_.tokens_before(); }

  /// Behind the unit that `i` belongs to.
  std::size_t unit_end(std::size_t i) const;
  /// Whether a user message at `i` begins a turn.
  bool is_turn(std::size_t i) const;
  /// The last turn's user messages: [first, last). Both size() where there are none.
  std::pair<std::size_t, std::size_t> last_turn() const;

 private:
  const History& history_;
};

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_HISTORY_H_
