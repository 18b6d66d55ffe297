// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_COMPRESSOR_IMPL_H_
#define INCIPIT_COMPRESS_COMPRESSOR_IMPL_H_

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compress/draft.h"
#include "compress/history.h"
#include "compress/log.h"
#include "compress/report.h"
#include "incipit/compressor.h"

namespace incipit::inline v0 {

/// The messages, and what prompts made of them so far. Everything changes in add() and apply()
/// only, and in one step each that cannot fail.
// A nested class has the visibility of its public class unless it says otherwise.
class __attribute__((visibility("hidden"))) Compressor::Impl {
 public:
  Impl(CompressorOptions options, TokenCounter counter);
  /// The copy must not outlive the original, whose options and counter it goes on using.
  Impl(const Impl&) = default;
  Impl& operator=(const Impl&) = delete;

  void add(const Message& message);
  std::size_t size() const noexcept { return history_.size(); }
  CompressedPrompt plan(bool fills) const;
  CompressedPrompt apply();
  std::vector<MessageReport> report() const;
  std::optional<std::string> restore(std::string_view handle) const {
    return history_.restore(handle);
  }
  std::string serialize() const;
  void replay(std::string_view log);

 private:
  // A segment, or a prompt that was applied, behind the first `messages` messages.
  struct Event {
    std::size_t messages = 0;
    std::string record = {};
  };

  // A message of a prompt.
  struct Sent {
    base::Digest128 digest = {};
    std::size_t tokens = 0;
  };

  compress::Arrival arriving(const Message& message) const;
  compress::Draft drafted(const compress::View& view, bool fills, std::size_t& before) const;
  CompressedPrompt prompt_of(const compress::Draft& draft, std::size_t before) const;
  compress::Outcome last_outcome() const;
  void replay_segment(compress::Segment segment);
  void replay_applied(compress::Applied applied);
  static std::vector<Sent> sent_by(const compress::Draft& draft);
  void move_to(compress::Applied applied, std::vector<Sent> sent, std::size_t durable) noexcept;

  const CompressorOptions options_;
  const TokenCounter counter_;
  compress::History history_;
  std::vector<compress::SegmentPtr> segments_;
  std::vector<Sent> sent_;                    // the prompt applied last
  std::size_t durable_ = 0;                   // of them, those in front of the evidence
  compress::Applied last_;                    // the same prompt
  compress::Evidence evidence_;               // in it
  std::pair<std::size_t, std::size_t> turn_;  // that it was for
  std::size_t applied_messages_ = 0;          // that it knew
  std::deque<Event> events_;
};

}  // namespace incipit::inline v0

#endif  // INCIPIT_COMPRESS_COMPRESSOR_IMPL_H_
