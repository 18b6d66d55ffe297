// SPDX-License-Identifier: Apache-2.0
#include "incipit/compressor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "compress/compressor_impl.h"
#include "compress/policies.h"
#include "compress/summary_memory.h"

namespace incipit::inline v0 {
namespace {

using namespace compress;

void check(bool is_right, const char* what) {
  if (!is_right) {
    base::throw_error(ErrorCode::kInvalidArgument, std::string("CompressorOptions::") + what);
  }
}

bool is_share(double value) { return value >= 0 && value <= 1; }

CompressorOptions checked(CompressorOptions options) {
  check(options.token_budget > 0, "token_budget must not be 0");
  check(to_string(options.policy) != "unknown", "policy is unknown");
  check(is_share(options.low_watermark), "low_watermark must be in [0, 1]");
  check(is_share(options.segment_ratio), "segment_ratio must be in [0, 1]");
  check(is_share(options.frozen_cap), "frozen_cap must be in [0, 1]");
  check(options.evidence_share >= 0 && options.evidence_share <= 0.5,
        "evidence_share must be in [0, 0.5]");
  check(options.duplicate_threshold > 0 && options.duplicate_threshold <= 1,
        "duplicate_threshold must be in (0, 1]");
  check(is_share(options.summary_watermark), "summary_watermark must be in [0, 1]");
  options.summarizer = remembering(std::move(options.summarizer));
  return options;
}

TokenCounter checked(TokenCounter counter) {
  if (!counter.text) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "a TokenCounter needs `text`: take Engine::token_counter() or "
                      "rough_token_counter()");
  }
  return counter;
}

}  // namespace

std::string_view to_string(CompressionPolicy policy) noexcept {
  switch (policy) {
    case CompressionPolicy::kNone:
      return "none";
    case CompressionPolicy::kWindow:
      return "window";
    case CompressionPolicy::kDedupSummaryTruncate:
      return "dedup_summary_truncate";
    case CompressionPolicy::kFrozenSegments:
      return "frozen_segments";
  }
  return "unknown";
}

std::string_view to_string(MessageFate fate) noexcept {
  switch (fate) {
    case MessageFate::kKept:
      return "kept";
    case MessageFate::kDuplicate:
      return "duplicate";
    case MessageFate::kShortened:
      return "shortened";
    case MessageFate::kSummarized:
      return "summarized";
    case MessageFate::kDropped:
      return "dropped";
    case MessageFate::kQuoted:
      return "quoted";
  }
  return "unknown";
}

Compressor::Impl::Impl(CompressorOptions options, TokenCounter counter)
    : options_(checked(std::move(options))),
      counter_(checked(std::move(counter))),
      history_(options_, counter_) {}

Arrival Compressor::Impl::arriving(const Message& message) const {
  if (message.role < Role::kSystem || message.role > Role::kTool) {
    base::throw_error(ErrorCode::kInvalidArgument, "a message has an unknown role");
  }
  const auto is_covered = [this](std::size_t i) { return segment_of(segments_, i) != nullptr; };
  const auto is_live = [&](std::size_t i) {
    return (i < last_.window_first || i >= last_.window_end) && !is_covered(i);
  };
  return history_.arriving(message, applied_messages_, is_live, is_covered);
}

void Compressor::Impl::add(const Message& message) { history_.add(arriving(message)); }

Outcome Compressor::Impl::last_outcome() const {
  return {segments_, last_.window_first, last_.window_end, last_.cut, last_.evidence};
}

Draft Compressor::Impl::drafted(const View& view, bool fills, std::size_t& before) const {
  Draft::Options options{options_, counter_, {}, fills};
  if (applied_messages_ > 0 && view.last_turn() == turn_) options.held = &evidence_;
  std::vector<Message> sent;
  if (options_.summarizer) {
    // What stands at the front since the last prompt.
    const Draft now(view, options, segments_);
    for (const Item& item : now.items()) {
      if (sent.size() == sent_.size() || sent_[sent.size()].digest != item.digest) break;
      sent.push_back(*item.message);
    }
    options.sent = sent;
  }
  Draft draft(view, options, segments_);
  // A window is not a compaction, and all that is in front of it need not be counted.
  if (options_.policy != CompressionPolicy::kWindow) before = draft.tokens();
  make_it_fit(draft);
  draft.forget_sent();
  return draft;
}

CompressedPrompt Compressor::Impl::prompt_of(const Draft& draft, std::size_t before) const {
  const View& view = draft.view();
  CompressedPrompt prompt;
  bool same = true;
  std::size_t at = 0;
  for (const Item& item : draft.items()) {
    prompt.messages.push_back(*item.message);
    same = same && at < sent_.size() && sent_[at].digest == item.digest;
    if (same) prompt.stable_tokens += item.tokens;
    ++at;
  }
  prompt.tokens_before = counter_.prompt + view.tokens_before();
  prompt.tokens_after = draft.tokens();
  std::size_t durable = 0;
  for (std::size_t i = 0; i < durable_; ++i) durable += sent_[i].tokens;
  prompt.invalidated_tokens = durable - std::min(durable, prompt.stable_tokens);
  prompt.compacted = !draft.made.empty();
  const std::size_t now = prompt.tokens_after - draft.evidence.tokens;
  if (prompt.compacted) prompt.reclaimed_tokens = before - std::min(before, now);
  const Outcome outcome = outcome_of(draft);
  const Reporter reporter(view, outcome);
  for (const std::size_t i :
       changed_messages(last_outcome(), outcome, applied_messages_, view.size())) {
    prompt.report.push_back(reporter.report(i));
  }
  return prompt;
}

CompressedPrompt Compressor::Impl::plan(bool fills) const {
  const View view(history_);
  std::size_t before = 0;
  const Draft draft = drafted(view, fills, before);
  return prompt_of(draft, before);
}

CompressedPrompt Compressor::Impl::apply() {
  const View view(history_);
  std::size_t before = 0;
  Draft draft = drafted(view, false, before);
  CompressedPrompt prompt = prompt_of(draft, before);

  const Outcome outcome = outcome_of(draft);
  Applied applied{outcome.window_first, outcome.window_end, outcome.cut, draft.evidence.quotes};
  std::vector<Event> events;
  std::vector<SegmentPtr> segments = segments_;
  for (const SegmentPtr& segment : draft.made) {
    events.push_back({view.size(), record_of(*segment, segments, history_)});
    insert_segment(segments, segment);
  }
  events.push_back({view.size(), record_of(applied, history_)});
  std::vector<Sent> sent = sent_by(draft);
  const std::size_t durable = draft.durable_items();

  // Throws for want of memory, if at all, and then nothing has changed; nothing behind it does.
  events_.insert(events_.end(), std::make_move_iterator(events.begin()),
                 std::make_move_iterator(events.end()));
  segments_ = std::move(draft.segments);
  evidence_ = std::move(draft.evidence);
  move_to(std::move(applied), std::move(sent), durable);
  return prompt;
}

std::vector<Compressor::Impl::Sent> Compressor::Impl::sent_by(const Draft& draft) {
  std::vector<Sent> sent;
  for (const Item& item : draft.items()) sent.push_back({item.digest, item.tokens});
  return sent;
}

void Compressor::Impl::move_to(Applied applied, std::vector<Sent> sent,
                               std::size_t durable) noexcept {
  sent_ = std::move(sent);
  durable_ = durable;
  last_ = std::move(applied);
  applied_messages_ = history_.size();
  turn_ = View(history_).last_turn();
}

std::vector<MessageReport> Compressor::Impl::report() const {
  const View view(history_);
  const Outcome outcome = last_outcome();
  const Reporter reporter(view, outcome);
  std::vector<MessageReport> reports;
  for (std::size_t i = 0; i < applied_messages_; ++i) reports.push_back(reporter.report(i));
  return reports;
}

std::string Compressor::Impl::serialize() const {
  LogWriter log;
  std::size_t message = 0;
  const auto add_messages = [&](std::size_t end) {
    for (; message < end; ++message) log.add(history_[message].message);
  };
  for (const Event& event : events_) {
    add_messages(event.messages);
    log.add(event.record);
  }
  add_messages(history_.size());
  return log.take();
}

void Compressor::Impl::replay(std::string_view log) {
  LogReader reader(log);
  while (const auto record = reader.next()) {
    switch (*record) {
      case LogReader::Record::kMessage:
        add(reader.message());
        break;
      case LogReader::Record::kSegment:
        replay_segment(reader.segment(segments_, history_));
        events_.push_back({history_.size(), std::string(reader.record())});
        break;
      case LogReader::Record::kApplied:
        replay_applied(reader.applied(history_));
        events_.push_back({history_.size(), std::string(reader.record())});
        break;
    }
  }
}

void Compressor::Impl::replay_segment(Segment segment) {
  const std::size_t n = history_.size();
  if (segment.first >= segment.end || segment.end > n) throw_damaged_log();
  const bool cuts = history_[segment.first].unit != segment.first ||
                    (segment.end < n && history_[segment.end].unit != segment.end);
  if (cuts) throw_damaged_log();
  const auto turn = View(history_).last_turn();
  if (segment.first < turn.second && segment.end > turn.first) throw_damaged_log();
  for (const Quote& quote : segment.quotes) {
    if (quote.entry < segment.first || quote.entry >= segment.end) throw_damaged_log();
  }
  for (const SegmentPtr& old : segments_) {
    const bool apart = old->end <= segment.first || old->first >= segment.end;
    const bool inside = old->first >= segment.first && old->end <= segment.end;
    if (!apart && !inside) throw_damaged_log();
  }
  const auto& fixed = history_.fixed();
  for (auto at = std::ranges::lower_bound(fixed, segment.first);
       at != fixed.end() && *at < segment.end; ++at) {
    segment.fixed.push_back(*at);
  }
  finish_segment(segment, counter_);
  insert_segment(segments_, std::make_shared<const Segment>(std::move(segment)));
}

void Compressor::Impl::replay_applied(Applied applied) {
  const View view(history_);
  Draft draft(view, {options_, counter_}, segments_);
  const std::size_t n = history_.size();
  if (applied.window_first > n || applied.window_end > n) throw_damaged_log();
  draft.window_first = applied.window_first;
  draft.window_end = applied.window_end;
  std::size_t least = 0;  // that the next entry may be
  for (Applied::Part& part : applied.cut) {
    if (part.entry < least || part.entry >= n) throw_damaged_log();
    const Message& shown = history_[part.entry].shown();
    if (part.begin > shown.text.size()) throw_damaged_log();
    Cut& cut = draft.cuts.emplace_back(cut_front(shown, part.entry, part.begin, counter_));
    part.tokens = cut.tokens;
    least = part.entry + 1;
  }
  if (!applied.evidence.empty()) {
    for (const Quote& quote : applied.evidence) {
      if (quote.entry >= n) throw_damaged_log();
    }
    draft.evidence.message = {.role = Role::kSystem};
    draft.evidence.message.text = render_quotes(kEvidenceHeading, {}, applied.evidence);
    draft.evidence.tokens = count_message(counter_, draft.evidence.message);
    draft.evidence.quotes = applied.evidence;
  }
  std::vector<Sent> sent = sent_by(draft);
  const std::size_t durable = draft.durable_items();
  evidence_ = std::move(draft.evidence);
  move_to(std::move(applied), std::move(sent), durable);
}

Compressor::Compressor(CompressorOptions options, TokenCounter counter)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(counter))) {}
Compressor::Compressor(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Compressor::~Compressor() = default;
Compressor::Compressor(Compressor&&) noexcept = default;
Compressor& Compressor::operator=(Compressor&&) noexcept = default;

void Compressor::add(Message message) { impl_->add(message); }
std::size_t Compressor::size() const noexcept { return impl_->size(); }
CompressedPrompt Compressor::plan() const { return impl_->plan(false); }
CompressedPrompt Compressor::plan(const Message& next) const {
  // What a message changes of those before it reaches into the index and into what turns are
  // expected to take, so that only adding it tells.
  Impl with_next(*impl_);
  with_next.add(next);
  return with_next.plan(false);
}
CompressedPrompt Compressor::apply() { return impl_->apply(); }
std::vector<MessageReport> Compressor::report() const { return impl_->report(); }
std::optional<std::string> Compressor::restore(std::string_view handle) const {
  return impl_->restore(handle);
}

CompressedPrompt Compressor::compress(std::span<const Message> conversation,
                                      const CompressorOptions& options,
                                      const TokenCounter& counter) {
  Impl impl(options, counter);
  for (const Message& message : conversation) impl.add(message);
  return impl.plan(true);
}

std::string Compressor::serialize() const { return impl_->serialize(); }

Compressor Compressor::deserialize(std::string_view log, CompressorOptions options,
                                   TokenCounter counter) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(counter));
  impl->replay(log);
  return Compressor(std::move(impl));
}

}  // namespace incipit::inline v0
