// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_SEGMENT_H_
#define INCIPIT_COMPRESS_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compress/history.h"
#include "compress/pieces.h"

namespace incipit::compress {

/// A part of an old message, word for word.
struct Quote {
  std::uint32_t entry = 0;
  Role role = Role::kUser;
  std::size_t begin = 0;  // of the text in what the message shows; tells neighbours
  std::string text = {};
  PieceKind kind = PieceKind::kSentence;
  std::size_t tokens = 0;
  std::uint64_t salience = 0;
  bool order = false;      // binds from here on
  bool must_keep = false;  // whatever the limit

  bool operator==(const Quote&) const = default;
};

/// Stands for the messages [first, end), the fixed ones aside: they stand in front of it.
struct Segment {
  std::size_t first = 0, end = 0;
  std::vector<std::uint32_t> fixed = {};
  std::string summary = {};  // by a Summarizer: then the only quotes are orders
  std::vector<Quote> quotes = {};

  // What follows from these.
  Message message = {};  // no text: nothing is left
  std::size_t tokens = 0;
  base::Digest128 digest = {};
};
using SegmentPtr = std::shared_ptr<const Segment>;

/// Heading, then the quotes by speaker in the order given, then what is in force.
std::string render_quotes(std::string_view heading, std::string_view summary,
                          const std::vector<Quote>& quotes);

/// Fills in message, tokens and digest.
void finish_segment(Segment& segment, const TokenCounter& counter);

/// The segment that stands for message `i`, or null.
const Segment* segment_of(std::span<const SegmentPtr> segments, std::size_t i);

/// Puts a segment in the place of those that it covers. They ascend.
void insert_segment(std::vector<SegmentPtr>& segments, SegmentPtr segment);

/// The longest text of a message of its own that `quotes` give within `max_tokens`: all that must
/// be kept, even beyond that, and the most salient others. `message` is how it reads.
struct Fitted {
  std::vector<Quote> quotes = {};
  Message message = {};
  std::size_t tokens = 0;  // 0: no quotes
};
Fitted fit_quotes(std::string_view heading, std::string_view summary, std::vector<Quote> quotes,
                  std::size_t max_tokens, const TokenCounter& counter);

inline constexpr std::string_view kSegmentHeading = "Earlier in this conversation, shortened:";
inline constexpr std::string_view kEvidenceHeading = "Recalled from earlier in this conversation:";

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_SEGMENT_H_
