// SPDX-License-Identifier: Apache-2.0
#include "kv/label_epochs.h"

#include <algorithm>
#include <utility>

namespace incipit::kv {
namespace {

Epoch random_epoch() {
  Epoch epoch;
  base::fill_random(epoch);
  return epoch;
}

// What the head's name is made of; no label is that short.
base::Bytes head_id() noexcept { return base::as_bytes("head"); }

// The names of the groups' heads are made of one byte each.
constexpr std::array<std::byte, LabelEpochs::kGroups> kGroupIds = [] {
  std::array<std::byte, LabelEpochs::kGroups> ids = {};
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::byte>(i);
  return ids;
}();
base::Bytes group_id(std::size_t group) noexcept {
  return base::Bytes(kGroupIds).subspan(group, 1);
}
std::size_t group_of(const LabelDigest& label) noexcept {
  return std::to_integer<std::size_t>(label[0]) % LabelEpochs::kGroups;
}

}  // namespace

LabelEpochs::LabelEpochs(store::GuardedStore& store, const Sealer& sealer, Options options)
    : store_(store), sealer_(sealer), options_(std::move(options)) {}

LabelEpochs::Read LabelEpochs::read_epoch(base::Bytes id, Epoch& epoch, Deadline not_later_than) {
  const StoreKey name = sealer_.name(RecordKind::kEpoch, id);
  StoreBuffer record;
  const StoreStatus status = store_.get(name, record, not_later_than);
  if (status == StoreStatus::kUnavailable) return Read::kNoAnswer;
  if (status != StoreStatus::kOk) return Read::kMissing;
  const auto body = sealer_.open(record, RecordKind::kEpoch, name);
  if (!body || body->size() != epoch.size()) return Read::kMissing;
  std::ranges::copy(*body, epoch.begin());
  return Read::kFound;
}

bool LabelEpochs::write_epoch(base::Bytes id, const Epoch& epoch, Deadline not_later_than) {
  const StoreKey name = sealer_.name(RecordKind::kEpoch, id);
  StoreBuffer record;
  std::ranges::copy(epoch, Sealer::make_room(record, epoch.size()).begin());
  sealer_.seal(record, RecordKind::kEpoch, name, std::chrono::seconds(0));
  return store_.put(name, record.bytes(), std::chrono::seconds(0), not_later_than) ==
         StoreStatus::kOk;
}

/// A fresh one. Where another process makes one at the same time, the one that stays is read back
/// here or, for labels, at the next look.
std::optional<Epoch> LabelEpochs::make_epoch(base::Bytes id, Deadline not_later_than) {
  Epoch epoch = random_epoch();
  if (!write_epoch(id, epoch, not_later_than) ||
      read_epoch(id, epoch, not_later_than) != Read::kFound) {
    return std::nullopt;
  }
  return epoch;
}

std::optional<Epoch> LabelEpochs::read_or_make(base::Bytes id) {
  Epoch epoch;
  const Read read = read_epoch(id, epoch);
  if (read == Read::kMissing) return make_epoch(id);
  return read == Read::kFound ? std::optional(epoch) : std::nullopt;
}

/// With mutex_ held.
std::optional<Epoch> LabelEpochs::recall(const LabelDigest& label) {
  if (const auto found = young_.find(label); found != young_.end()) return found->second;
  const auto node = old_.extract(label);
  if (node.empty()) return std::nullopt;
  const Epoch epoch = node.mapped();
  remember(label, epoch);
  return epoch;
}

/// With mutex_ held.
void LabelEpochs::remember(const LabelDigest& label, const Epoch& epoch) {
  old_.erase(label);
  young_[label] = epoch;
  if (young_.size() < options_.remembered) return;
  for (const auto& known : old_) lost_.push_back(known.first);
  old_.clear();
  old_.swap(young_);
}

std::optional<Epoch> LabelEpochs::epoch_of(const LabelDigest& label, bool make,
                                           Deadline not_later_than) {
  std::uint64_t forgotten = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto epoch = recall(label)) return epoch;
    forgotten = forgotten_;
  }
  Epoch epoch;
  const Read read = read_epoch(label, epoch, not_later_than);
  if (read == Read::kNoAnswer || (read == Read::kMissing && !make)) return std::nullopt;
  if (read == Read::kMissing) {
    const auto made = make_epoch(label, not_later_than);
    if (!made) return std::nullopt;
    epoch = *made;
  }
  const std::lock_guard lock(mutex_);
  if (forgotten != forgotten_) return epoch;  // it may have been read before it was renewed
  if (const auto known = recall(label)) return known;
  remember(label, epoch);
  if (read == Read::kMissing) made_.push_back(label);
  return epoch;
}

/// What is to be looked at again: what was made here, and one other label, so that those that are
/// remembered for long stay in use in the store as well. With mutex_ held.
void LabelEpochs::take_to_check(std::vector<LabelDigest>& labels) {
  labels.swap(made_);
  auto next = young_.upper_bound(checked_);
  if (next == young_.end()) next = young_.begin();
  if (next == young_.end()) return;
  checked_ = next->first;
  labels.push_back(checked_);
}

/// Reads a remembered label again.
void LabelEpochs::check(const LabelDigest& label, std::vector<LabelDigest>& changed,
                        base::FunctionRef<void()> before_change) {
  std::optional<Epoch> known;
  {
    const std::lock_guard lock(mutex_);
    known = recall(label);
  }
  Epoch epoch;
  const Read read = known ? read_epoch(label, epoch) : Read::kNoAnswer;
  if (read == Read::kNoAnswer || (read == Read::kFound && epoch == *known)) return;
  before_change();
  {
    const std::lock_guard lock(mutex_);
    young_.erase(label);
    ++forgotten_;
  }
  changed.push_back(label);
  epoch_of(label, true);
}

void LabelEpochs::refresh(std::vector<LabelDigest>& changed,
                          base::FunctionRef<void()> before_change) {
  const std::lock_guard one_thread(refresh_mutex_);
  {
    const std::lock_guard lock(mutex_);
    changed.insert(changed.end(), lost_.begin(), lost_.end());
    lost_.clear();
    if (looked_ && store::now(options_.clock) - *looked_ < kMaxAge) return;
  }
  const auto looked = store::now(options_.clock);  // before the store answers
  const std::optional<Epoch> head = read_or_make(head_id());
  bool same = false;
  std::vector<LabelDigest> again;
  {
    const std::lock_guard lock(mutex_);
    answers_ = head.has_value();
    if (!answers_) return;
    looked_ = looked;
    same = head_ == head;
    if (same) take_to_check(again);
  }
  if (same) {
    for (const LabelDigest& label : again) check(label, changed, before_change);
  } else {
    before_change();
    forget_all(*head, changed);
  }
  ask_unsure(same, changed);
}

LabelEpochs::Groups LabelEpochs::read_groups() {
  Groups groups;
  for (std::size_t group = 0; group < kGroups; ++group)
    groups[group] = read_or_make(group_id(group));
  return groups;
}

/// The head is another: reads what is remembered anew, save the labels of groups whose heads are
/// the same. Whoever renews a label writes it first, then the head of its group, then the head.
void LabelEpochs::forget_all(const Epoch& head, std::vector<LabelDigest>& changed) {
  bool by_group = false;
  {
    const std::lock_guard lock(mutex_);
    by_group = young_.size() + old_.size() > kGroups;
  }
  const Groups groups = by_group ? read_groups() : Groups{};
  std::map<LabelDigest, Epoch> known;
  Groups before;
  {
    // What is being read at this moment may be from before a group's head was read: it is not
    // remembered.
    const std::lock_guard lock(mutex_);
    ++forgotten_;
    head_ = head;
    before = std::exchange(groups_, groups);
    known.swap(young_);
    known.merge(old_);
    old_.clear();
    made_.clear();
    for (const auto& [label, epoch] : known) {
      const std::size_t group = group_of(label);
      if (groups[group] && groups[group] == before[group]) remember(label, epoch);
    }
  }
  for (const auto& [label, epoch] : known) {
    if (epoch_of(label, true) != epoch) changed.push_back(label);
  }
}

/// What was in use while the store did not answer may have changed with the head.
void LabelEpochs::ask_unsure(bool same_head, std::vector<LabelDigest>& changed) {
  std::set<LabelDigest> unsure;
  {
    const std::lock_guard lock(mutex_);
    unsure.swap(unsure_);
  }
  std::vector<LabelDigest> unread;
  for (const LabelDigest& label : unsure) {
    if (!same_head) changed.push_back(label);
    if (!epoch_of(label, true)) unread.push_back(label);
  }
  note_unsure(unread);
}

/// Labels whose epochs are to be remembered once the store answers.
void LabelEpochs::note_unsure(std::span<const LabelDigest> labels) {
  const std::lock_guard lock(mutex_);
  for (const LabelDigest& label : labels) {
    if (recall(label)) continue;
    if (unsure_.size() < options_.remembered) {
      unsure_.insert(label);
    } else {
      lost_.push_back(label);
    }
  }
}

std::optional<std::vector<LabelEpoch>> LabelEpochs::current(std::span<const LabelDigest> labels) {
  std::vector<LabelEpoch> epochs;
  bool answers = true;
  const Deadline not_later_than = store::now(options_.clock) + options_.budget;
  {
    const std::lock_guard lock(mutex_);
    answers = answers_;
  }
  for (const LabelDigest& label : labels) {
    const auto epoch = answers ? epoch_of(label, true, not_later_than) : std::nullopt;
    if (!epoch) {
      note_unsure(labels);
      return std::nullopt;
    }
    epochs.push_back({label, *epoch});
  }
  return epochs;
}

bool LabelEpochs::hold(const EntryLabels& labels) {
  {
    const std::lock_guard lock(mutex_);
    if (!answers_) return false;
  }
  const auto is_present = [this](const LabelEpoch& label) {
    return epoch_of(label.label, false) == label.epoch;
  };
  return std::ranges::all_of(labels.all, is_present) &&
         (labels.any.empty() || std::ranges::any_of(labels.any, is_present));
}

bool LabelEpochs::refute(const EntryLabels& labels) {
  const std::lock_guard lock(mutex_);
  const auto is_other = [this](const LabelEpoch& label) {
    const auto known = recall(label.label);
    return known && *known != label.epoch;
  };
  return std::ranges::any_of(labels.all, is_other) ||
         (!labels.any.empty() && std::ranges::all_of(labels.any, is_other));
}

/// What another process renewed since the last look stays unnoticed until the next, which is soon.
bool LabelEpochs::renew_head() {
  const bool written = write_epoch(head_id(), random_epoch());
  const std::lock_guard lock(mutex_);
  head_.reset();
  looked_.reset();
  return written;
}

bool LabelEpochs::renew(const LabelDigest& label) {
  const Epoch epoch = random_epoch();
  if (!write_epoch(label, epoch)) return false;
  {
    const std::lock_guard lock(mutex_);
    remember(label, epoch);
  }
  if (!write_epoch(group_id(group_of(label)), random_epoch())) return false;
  return renew_head();
}

}  // namespace incipit::kv
