// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_DRAFT_H_
#define INCIPIT_COMPRESS_DRAFT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "compress/history.h"
#include "compress/segment.h"

namespace incipit::compress {

/// A message of a prompt. `message` belongs to the history, to a segment or to the draft.
struct Item {
  const Message* message = nullptr;
  std::size_t tokens = 0;
  base::Digest128 digest = {};
};

/// A message of which a part is in its place.
struct Cut {
  std::size_t entry = 0;
  Message message = {};
  std::size_t tokens = 0;
};

/// Message `entry`, which shows `shown`, from byte `begin` on.
Cut cut_front(const Message& shown, std::size_t entry, std::size_t begin,
              const TokenCounter& counter);

/// What stands in front of the last user turn, for it alone.
struct Evidence {
  Message message = {};
  std::size_t tokens = 0;  // 0: nothing
  std::vector<Quote> quotes = {};
};

/// A prompt in the making. Segments stand for runs of messages, the others stand as they are.
class Draft {
 public:
  struct Options {
    const CompressorOptions& compressor;
    const TokenCounter& counter;
    std::span<const Message> sent = {};  // for the Summarizer
    bool fills = false;                  // uses the whole budget
    /// Of the last prompt, where that was for the same user turn; null: it was not.
    const Evidence* held = nullptr;
  };

  Draft(const View& view, const Options& options, std::vector<SegmentPtr> segments);

  const View& view() const noexcept { return view_; }
  const Options& options() const noexcept { return options_; }
  /// The messages that were given for the Summarizer are gone from here on.
  void forget_sent() noexcept { options_.sent = {}; }
  std::size_t budget() const noexcept { return options_.compressor.token_budget; }

  /// What the prompt takes now.
  std::size_t tokens() const;
  /// Of messages of [first, end) that no segment stands for, and that are not fixed; and of the
  /// segments there.
  std::size_t loose_tokens(std::size_t first, std::size_t end) const;
  std::size_t segment_tokens() const;

  /// The first message at or behind `i` that no segment stands for.
  std::size_t first_live(std::size_t i) const;
  bool is_covered(std::size_t i) const;

  /// Puts one segment in the place of [first, end), which cuts no unit and no segment. Takes at
  /// most `max_tokens`, unless more must be kept.
  void replace(std::size_t first, std::size_t end, std::size_t max_tokens);

  /// All messages, from old to new.
  std::vector<Item> items() const;
  /// How many items() stand in front of the evidence.
  std::size_t durable_items() const;

  // What a policy decides.
  std::vector<SegmentPtr> segments;
  std::vector<SegmentPtr> made;  // by replace(), in order
  /// Messages of [window_first, window_end), which is outside of segments, are left out, but for
  /// those that always stay.
  std::size_t window_first = 0, window_end = 0;
  std::vector<Cut> cuts;  // of messages behind it, by entry
  Evidence evidence;

  /// Fixed, or of the last user turn.
  bool always_stays(std::size_t i) const;

 private:
  void for_each_item(base::FunctionRef<void(const Item&, bool is_evidence)> take) const;
  std::vector<Quote> gather(std::size_t first, std::size_t end) const;
  void add_quotes(std::size_t i, std::vector<Quote>& quotes) const;
  void score(std::span<Quote> quotes) const;
  bool summarize(Segment& segment, std::vector<Quote>& quotes, std::size_t max_tokens) const;

  const View& view_;
  Options options_;
};

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_DRAFT_H_
