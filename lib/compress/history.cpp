// SPDX-License-Identifier: Apache-2.0
#include "compress/history.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "compress/boilerplate.h"
#include "compress/compaction.h"
#include "compress/pieces.h"
#include "compress/salience.h"
#include "retrieve/terms.h"

namespace incipit::compress {
namespace {

// A message that is longer is indexed in passages of at least kPassage bytes.
constexpr std::size_t kLongMessage = 700;
constexpr std::size_t kPassage = 350;

// What is hashed of a message may have so many bytes to be hashed at once.
constexpr std::size_t kShortMessage = 2048;

// Bytes of a token, about: limits of tokens become limits of bytes where nothing is counted yet.
constexpr std::size_t kTokenBytes = 4;

std::string name_of(const Entry& entry, std::size_t i) {
  if (!entry.message.id.empty()) return entry.message.id;
  std::string name("#");
  name += std::to_string(i + 1);
  return name;
}

Features features_of(std::string_view text) {
  Features features;
  features.terms = retrieve::terms_of(text);
  features.sketch = make_sketch(text, features.terms);
  return features;
}

bool may_change(const Message& message) {
  return !message.pinned && !message.no_compress && !message.constraint &&
         message.role != Role::kSystem && !message.text.empty();
}

}  // namespace

base::Digest128 digest_of(const Message& message) {
  // One behind the other, each field with its size in front.
  std::size_t size = 0;
  const auto bytes = [&message](const auto& add) {
    const auto add_number = [&add](std::uint64_t number) {
      add(std::as_bytes(std::span(&number, 1)));
    };
    const auto add_field = [&](std::string_view field) {
      add_number(field.size());
      add(base::as_bytes(field));
    };
    add_number(static_cast<std::uint64_t>(message.role));
    add_field(message.text);
    add_field(message.tool_call_id);
    for (const ToolCall& call : message.tool_calls) {
      add_field(call.id);
      add_field(call.name);
      add_field(call.arguments);
    }
  };
  bytes([&size](base::Bytes part) { size += part.size(); });
  std::array<std::byte, kShortMessage> buffer;
  if (size <= buffer.size()) {
    auto end = buffer.begin();
    bytes([&end](base::Bytes part) { end = std::copy(part.begin(), part.end(), end); });
    return base::xxh3_128(std::span(buffer).first(size));
  }
  base::StreamHash128 hash;
  bytes([&hash](base::Bytes part) { hash.update(part); });
  return hash.digest();
}

std::size_t count_message(const TokenCounter& counter, const Message& message) {
  return counter.message ? counter.message(message) : counter.text(shown_text(message));
}

History::History(const CompressorOptions& options, const TokenCounter& counter)
    : options_(options), counter_(counter), duplicates_(options.duplicate_threshold) {}

Arrival History::arriving(const Message& message, std::size_t applied,
                          base::FunctionRef<bool(std::size_t entry)> is_live,
                          base::FunctionRef<bool(std::size_t entry)> is_covered) const {
  const std::size_t i = entries_.size();
  Arrival arrival;
  Entry& entry = arrival.entry;
  entry.message = message;
  entry.tokens = entry.tokens_before = count_message(counter_, message);
  entry.unit = i;
  if (message.role == Role::kTool && i > 0) {
    const Message& last = entries_[i - 1].message;
    // What stands in a segment has no place for a late result.
    if ((last.role == Role::kTool || last.role == Role::kAssistant) && !is_covered(i - 1)) {
      entry.unit = entries_[i - 1].unit;
    }
  }
  // Only frozen segments have a place for orders.
  const bool keeps_orders = options_.policy == CompressionPolicy::kFrozenSegments;
  entry.fixed = message.pinned || (message.role == Role::kSystem && !message.ephemeral) ||
                (message.constraint && !keeps_orders);
  // A prompt that is rewritten on every turn has no front to spare.
  const bool rewrites = options_.policy == CompressionPolicy::kDedupSummaryTruncate;
  const bool is_reply = message.role == Role::kAssistant && applied == i && applied > 0;
  if (message.role != Role::kUser && (!is_reply || rewrites)) compress_arrival(entry, {}, is_live);
  entry.digest = digest_of(entry.shown());

  const bool new_turn =
      message.role == Role::kUser && i > 0 && entries_[i - 1].message.role != Role::kUser;
  Handles given;
  for (std::size_t j = last_turn_.first; new_turn && j < last_turn_.second; ++j) {
    if (j < applied && !rewrites) continue;
    Entry settled = entries_[j];
    compress_arrival(settled, given, is_live);
    for (const std::string& handle : settled.handles) {
      given.emplace(handle, static_cast<std::uint32_t>(j));
    }
    if (settled.changed) settled.digest = digest_of(settled.shown());
    arrival.settled.emplace_back(j, std::move(settled));
  }
  return arrival;
}

/// One that no other text has: hashes of texts that somebody has written for it may be equal.
std::string History::handle_for(std::string_view text, const Handles& given) const {
  const auto is_others = [&](const Handles& handles, const std::string& handle) {
    const auto found = handles.find(handle);
    return found != handles.end() && entries_[found->second].message.text != text;
  };
  for (std::uint64_t salt = 0;; ++salt) {
    std::string handle = handle_of(text, salt);
    if (!is_others(handles_, handle) && !is_others(given, handle)) return handle;
  }
}

void History::compress_arrival(Entry& entry, const Handles& given,
                               base::FunctionRef<bool(std::size_t entry)> is_live) const {
  if (!options_.compress_on_arrival || !may_change(entry.message)) return;
  const std::string& original = entry.message.text;
  std::string handle;  // for those who need one
  const auto name_original = [&] {
    if (handle.empty()) handle = handle_for(original, given);
  };
  if (!entry.features) entry.features = features_of(original);
  if (const auto found = duplicates_.find(entry.features->sketch)) {
    const std::size_t source = duplicate_entries_[*found];
    if (is_live(source)) {
      name_original();
      change_text(
          entry, "[As in message " + name_of(entries_[source], source) + "; " + handle + "]",
          MessageFate::kDuplicate, "says what " + name_of(entries_[source], source) + " says");
      if (entry.changed) entry.handles.push_back(handle);
      return;
    }
  }
  std::string changed;  // where there is a reason why
  std::vector<Piece> parts;
  std::string why;
  const auto text = [&]() -> const std::string& { return why.empty() ? original : changed; };
  const auto because = [&why](std::string_view reason) {
    if (why.find(reason) != std::string::npos) return;
    if (!why.empty()) why += ", ";
    why += reason;
  };
  if (entry.message.role == Role::kTool) {
    std::vector<RepeatedBlock> blocks = blocks_.find(original);
    std::erase_if(
        blocks, [&](const RepeatedBlock& block) { return !is_live(block_entries_[block.source]); });
    if (!blocks.empty()) {
      name_original();
      changed = replace_blocks(original, blocks, [&](const RepeatedBlock& block) {
        const std::size_t source = block_entries_[block.source];
        std::string marker("[");
        marker += std::to_string(block.lines);
        marker += " lines as in message " + name_of(entries_[source], source);
        marker += " from its line " + std::to_string(block.first_line);
        return marker + "; " + handle + "]";
      });
      because("lines that an earlier message has");
    }
  } else {
    parts = pieces(original);
    const std::vector<Removal> removed = boilerplate(original, parts);
    if (!removed.empty()) {
      changed = without(original, removed);
      parts.clear();
    }
    for (const Removal& removal : removed) because(removal.reason);
  }
  if (parts.empty()) parts = pieces(text());
  CompactionOptions limits;
  limits.total_bytes =
      entry.message.role == Role::kTool
          ? std::min(options_.max_tool_tokens, SIZE_MAX / kTokenBytes) * kTokenBytes
          : 0;
  if (may_compact(text(), parts, limits)) {
    name_original();
    Compacted compacted = compact(text(), parts, limits, handle);
    changed = std::move(compacted.text);
    for (const std::string_view method : compacted.methods) because(method);
  }
  if (why.empty()) return;
  name_original();
  change_text(entry, std::move(changed), MessageFate::kShortened, why);
  if (entry.changed) entry.handles.push_back(handle);
}

/// Only where it saves tokens.
void History::change_text(Entry& entry, std::string text, MessageFate fate,
                          std::string_view why) const {
  if (text == entry.message.text) return;
  auto changed = std::make_shared<Message>(entry.message);
  changed->text = std::move(text);
  const std::size_t tokens = count_message(counter_, *changed);
  if (tokens >= entry.tokens) return;
  entry.changed = std::move(changed);
  entry.tokens = tokens;
  entry.fate = fate;
  entry.why = why;
}

void History::add(Arrival arrival) {
  const std::size_t i = entries_.size();
  const bool is_user = arrival.entry.message.role == Role::kUser;
  const bool new_turn = is_user && (i == 0 || entries_[i - 1].message.role != Role::kUser);
  for (auto& [j, entry] : arrival.settled) entries_[j] = std::move(entry);
  if (new_turn) {
    for (std::size_t j = last_turn_.first; j < last_turn_.second; ++j) remember(j);
    last_turn_.first = i;
    if (turns_++ > 0) growth_ = turns_ == 2 ? turn_tokens_ : (7 * growth_ + turn_tokens_) / 8;
    turn_tokens_ = 0;
  }
  tokens_before_ += arrival.entry.tokens_before;
  turn_tokens_ += arrival.entry.tokens;
  const std::size_t unit = arrival.entry.unit;
  const bool fixes = arrival.entry.fixed;
  entries_.push_back(std::move(arrival.entry));
  Entry& head = entries_[unit];
  // A pinned result pins its call and the other results.
  for (std::size_t j = unit; fixes && !head.fixed && j < i; ++j) {
    fixed_.push_back(static_cast<std::uint32_t>(j));
  }
  head.fixed = head.fixed || fixes;
  if (head.fixed) fixed_.push_back(static_cast<std::uint32_t>(i));
  if (is_user) {
    last_turn_.second = i + 1;
  } else {
    remember(i);
  }
}

void History::remember(std::size_t i) {
  Entry& entry = entries_[i];
  std::optional<Features> features = std::exchange(entry.features, std::nullopt);
  const auto number = static_cast<std::uint32_t>(i);
  for (const std::string& handle : entry.handles) handles_.emplace(handle, number);
  if (entry.fate == MessageFate::kDuplicate) return;  // the other one is found
  if (entry.message.ephemeral) return;
  if (options_.compress_on_arrival && !entry.message.text.empty()) {
    if (!features) features = features_of(entry.message.text);
    duplicates_.add(features->sketch);
    duplicate_entries_.push_back(number);
    if (entry.message.role == Role::kTool) {
      blocks_.add(entry.shown().text);
      block_entries_.push_back(number);
    }
  }
  if (options_.policy != CompressionPolicy::kFrozenSegments &&
      options_.policy != CompressionPolicy::kDedupSummaryTruncate) {
    return;  // nothing is ever looked up
  }
  const std::string& text = entry.shown().text;
  const auto name = [&](text::Span span) {
    const bool asks = entry.message.role == Role::kUser && ends_in_question(span.of(text));
    document_entries_.push_back(number << 1 | (asks ? 1u : 0u));
    passages_.push_back(span);
  };
  const auto index = [&](text::Span span) {
    index_.add(span.of(text));
    name(span);
  };
  if (text.empty()) return;
  if (text.size() <= kLongMessage && features && !entry.changed) {
    index_.add(features->terms);
    return name({0, text.size()});
  }
  if (text.size() <= kLongMessage) return index({0, text.size()});
  text::Span passage;
  for (const Piece& piece : pieces(text)) {
    passage.end = piece.span.end;
    if (passage.end - passage.begin < kPassage) continue;
    index(passage);
    passage.begin = passage.end;
  }
  if (passage.end > passage.begin) index(passage);
}

std::optional<std::string> History::restore(std::string_view handle) const {
  const auto found = handles_.find(std::string(handle));
  if (found == handles_.end()) return std::nullopt;
  return entries_[found->second].message.text;
}

std::size_t View::unit_end(std::size_t i) const {
  const std::size_t unit = (*this)[i].unit;
  std::size_t end = i + 1;
  while (end < size() && (*this)[end].unit == unit) ++end;
  return end;
}

bool View::is_turn(std::size_t i) const {
  return (*this)[i].message.role == Role::kUser &&
         (i == 0 || (*this)[i - 1].message.role != Role::kUser);
}

std::pair<std::size_t, std::size_t> View::last_turn() const {
  const auto last = history_.last_turn();
  return last.second > 0 ? last : std::pair(size(), size());
}

}  // namespace incipit::compress
