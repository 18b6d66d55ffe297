// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_LABEL_EPOCHS_H_
#define INCIPIT_KV_LABEL_EPOCHS_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "kv/entry.h"
#include "kv/sealer.h"
#include "store/clock.h"
#include "store/guarded_store.h"

namespace incipit::kv {

/// The present epochs of labels in one store: random ids, one record each. Whoever writes an entry
/// puts the epochs of its labels in; whoever reads it compares them. To forget a label is to renew
/// its epoch: O(1), for every process that uses the store.
///
/// One more record, the head, is renewed with each of them. So a process that reads the head once
/// a second knows that all other epochs, which it remembers, still hold. While the head cannot be
/// read, nothing is known to hold. Where the head is another, the heads of kGroups groups of labels
/// say which of them have to be read again.
///
/// A record that is missing or damaged is made anew, and so forgets what was there.
///
/// Thread-safe. Calls take as long as the store does, a call or two per label not remembered.
class LabelEpochs {
 public:
  /// Labels that are remembered without fail: so many were used since any other.
  static constexpr std::size_t kRemembered = std::size_t{1} << 15;
  /// What is remembered holds for so long without a look at the store.
  static constexpr std::chrono::milliseconds kMaxAge{1000};

  /// Which labels of a large number are read again after one of them was renewed: its group.
  static constexpr std::size_t kGroups = 64;

  struct Options {
    store::SteadyClock clock = {};
    std::size_t remembered = kRemembered;
    // What a call of current() may take in all.
    std::chrono::milliseconds budget = std::chrono::hours(1);
  };
  LabelEpochs(store::GuardedStore& store, const Sealer& sealer, Options options);

  /// Looks at the head where the last look is older than kMaxAge. Adds to `changed` the labels
  /// whose epochs may be others now: those that are, and those that could not be remembered.
  /// Calls `before_change` before anybody can get an epoch that is another now.
  void refresh(std::vector<LabelDigest>& changed, base::FunctionRef<void()> before_change);

  /// The labels with their epochs, made where the store has none. None where it does not answer
  /// within the budget.
  std::optional<std::vector<LabelEpoch>> current(std::span<const LabelDigest> labels);
  /// Whether a record with these labels holds. Never makes an epoch.
  bool hold(const EntryLabels& labels);
  /// Whether a record with these labels is known not to hold. Never looks at the store.
  bool refute(const EntryLabels& labels);

  /// Forgets a label. False where the store does not answer.
  bool renew(const LabelDigest& label);

 private:
  using Deadline = store::GuardedStore::Deadline;
  using Groups = std::array<std::optional<Epoch>, kGroups>;
  enum class Read { kFound, kMissing, kNoAnswer };
  std::optional<Epoch> recall(const LabelDigest& label);
  void remember(const LabelDigest& label, const Epoch& epoch);
  Read read_epoch(base::Bytes id, Epoch& epoch, Deadline not_later_than = Deadline::max());
  bool write_epoch(base::Bytes id, const Epoch& epoch, Deadline not_later_than = Deadline::max());
  std::optional<Epoch> read_or_make(base::Bytes id);
  std::optional<Epoch> make_epoch(base::Bytes id, Deadline not_later_than = Deadline::max());
  std::optional<Epoch> epoch_of(const LabelDigest& label, bool make,
                                Deadline not_later_than = Deadline::max());
  Groups read_groups();
  void check(const LabelDigest& label, std::vector<LabelDigest>& changed,
             base::FunctionRef<void()> before_change);
  void take_to_check(std::vector<LabelDigest>& labels);
  void forget_all(const Epoch& head, std::vector<LabelDigest>& changed);
  void ask_unsure(bool same_head, std::vector<LabelDigest>& changed);
  void note_unsure(std::span<const LabelDigest> labels);
  bool renew_head();

  store::GuardedStore& store_;
  const Sealer& sealer_;
  const Options options_;

  std::mutex refresh_mutex_;  // one thread looks at the head; held while the store works
  std::mutex mutex_;          // never held while the store works
  std::optional<std::chrono::steady_clock::time_point> looked_;  // guarded by mutex_, as all below
  std::optional<Epoch> head_;
  Groups groups_;                             // as last read; none: not known
  bool answers_ = true;                       // to the last look
  std::map<LabelDigest, Epoch> young_, old_;  // used lately; not since young_ was last empty
  std::vector<LabelDigest> lost_;  // that are not remembered any more: changes would go unnoticed
  std::set<LabelDigest> unsure_;   // that were in use while the store did not answer
  std::vector<LabelDigest> made_;  // whose epochs were made here since the last look
  LabelDigest checked_ = {};       // the label that was last looked at again
  std::uint64_t forgotten_ = 0;    // how often all were forgotten
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_LABEL_EPOCHS_H_
