// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_KV_NAIVE_POLICIES_H_
#define INCIPIT_TESTS_KV_NAIVE_POLICIES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "kv/eviction_policy.h"

// The eviction policies written as plainly as they can be: lists in vectors, and a search for
// everything.

namespace incipit::test {

using kv::kNoNode;
using kv::NodeFacts;
using kv::NodeId;

template <class T>
bool take_out(std::vector<T>& list, const T& value) {
  const auto found = std::find(list.begin(), list.end(), value);
  if (found == list.end()) return false;
  list.erase(found);
  return true;
}

/// What the four have in common: facts and candidates.
class NaivePolicy : public kv::EvictionPolicy {
 public:
  explicit NaivePolicy(std::size_t capacity) : capacity_(capacity), facts_(capacity) {}

  void insert(NodeId node, const NodeFacts& facts) override {
    facts_[node] = facts;
    enter(node);
  }
  void add_candidate(NodeId node) override { candidates_.insert(node); }
  void remove_candidate(NodeId node) override { candidates_.erase(node); }
  void remove(NodeId node, bool evicted) override { leave(node, evicted); }
  std::size_t candidates() const noexcept override { return candidates_.size(); }
  bool is_candidate(NodeId node) const override { return candidates_.count(node) > 0; }

 protected:
  virtual void enter(NodeId node) = 0;
  virtual void leave(NodeId node, bool evicted) = 0;

  NodeId first_candidate(const std::vector<NodeId>& list) const {
    const auto found =
        std::find_if(list.begin(), list.end(), [this](NodeId node) { return is_candidate(node); });
    return found == list.end() ? kNoNode : *found;
  }

  std::size_t capacity_;
  std::vector<NodeFacts> facts_;
  std::set<NodeId> candidates_;
};

class NaiveLru final : public NaivePolicy {
 public:
  using NaivePolicy::NaivePolicy;
  void hit(NodeId node) override { use(node); }
  void use(NodeId node) override {
    take_out(list_, node);
    list_.push_back(node);
  }
  NodeId victim() override { return first_candidate(list_); }
  void clear() noexcept override {
    candidates_.clear();
    list_.clear();
  }

 private:
  void enter(NodeId node) override { list_.push_back(node); }
  void leave(NodeId node, bool /*evicted*/) override { take_out(list_, node); }

  std::vector<NodeId> list_;  // least recently used first
};

class NaiveS3Fifo final : public NaivePolicy {
 public:
  explicit NaiveS3Fifo(std::size_t capacity) : NaivePolicy(capacity), hits_(capacity, 0) {}
  void hit(NodeId node) override { hits_[node] = std::min(hits_[node] + 1, 3); }
  void use(NodeId /*node*/) override {}
  NodeId victim() override {
    for (;;) {
      const NodeId new_one = first_candidate(small_), old_one = first_candidate(main_);
      const bool full = 10 * small_.size() >= small_.size() + main_.size();
      if (new_one != kNoNode && (full || old_one == kNoNode)) {
        if (hits_[new_one] < 2) return new_one;
        take_out(small_, new_one);
        main_.push_back(new_one);
        hits_[new_one] = 0;
      } else if (old_one == kNoNode || hits_[old_one] == 0) {
        return old_one;
      } else {
        take_out(main_, old_one);
        main_.push_back(old_one);
        --hits_[old_one];
      }
    }
  }
  void clear() noexcept override {
    candidates_.clear();
    small_.clear();
    main_.clear();
    ghosts_.clear();
  }

 private:
  void enter(NodeId node) override {
    (take_out(ghosts_, facts_[node].identity) ? main_ : small_).push_back(node);
    hits_[node] = 0;
  }
  void leave(NodeId node, bool evicted) override {
    const bool was_small = take_out(small_, node);
    if (!was_small) take_out(main_, node);
    if (!was_small || !evicted) return;
    ghosts_.push_back(facts_[node].identity);
    if (ghosts_.size() > capacity_ - capacity_ / 10) ghosts_.erase(ghosts_.begin());
  }

  std::vector<int> hits_;
  std::vector<NodeId> small_, main_;  // the next to leave first
  std::vector<std::uint64_t> ghosts_;
};

class NaiveArc final : public NaivePolicy {
 public:
  using NaivePolicy::NaivePolicy;
  void hit(NodeId node) override {
    if (!take_out(t1_, node)) take_out(t2_, node);
    t2_.push_back(node);
  }
  void use(NodeId node) override {
    std::vector<NodeId>& list = take_out(t1_, node) ? t1_ : t2_;
    take_out(t2_, node);
    list.push_back(node);
  }
  NodeId victim() override {
    const NodeId once = first_candidate(t1_), often = first_candidate(t2_);
    if (t1_.size() > p_) return once != kNoNode ? once : often;
    return often != kNoNode ? often : once;
  }
  void clear() noexcept override {
    candidates_.clear();
    t1_.clear();
    t2_.clear();
    b1_.clear();
    b2_.clear();
    p_ = 0;
  }

 private:
  void enter(NodeId node) override {
    const std::size_t b1 = b1_.size(), b2 = b2_.size();
    if (take_out(b1_, facts_[node].identity)) {
      p_ = std::min(capacity_, p_ + (b1 >= b2 ? 1 : b2 / b1));
      t2_.push_back(node);
    } else if (take_out(b2_, facts_[node].identity)) {
      const std::size_t step = b2 >= b1 ? 1 : b1 / b2;
      p_ = p_ > step ? p_ - step : 0;
      t2_.push_back(node);
    } else {
      t1_.push_back(node);
    }
    trim();
  }
  void leave(NodeId node, bool evicted) override {
    std::vector<std::uint64_t>& ghosts = take_out(t1_, node) ? b1_ : b2_;
    take_out(t2_, node);
    if (!evicted) return;
    ghosts.push_back(facts_[node].identity);
    trim();
  }
  void trim() {
    if (b2_.size() > capacity_) b2_.erase(b2_.begin());
    while (t1_.size() + b1_.size() > capacity_) b1_.erase(b1_.begin());
    while (t1_.size() + t2_.size() + b1_.size() + b2_.size() > 2 * capacity_) {
      b2_.erase(b2_.begin());
    }
  }

  std::vector<NodeId> t1_, t2_;  // as the paper calls them; least recently used first
  std::vector<std::uint64_t> b1_, b2_;
  std::size_t p_ = 0;
};

class NaiveGdsf final : public NaivePolicy {
 public:
  explicit NaiveGdsf(std::size_t capacity)
      : NaivePolicy(capacity), values_(capacity), frequencies_(capacity) {}
  void hit(NodeId node) override {
    ++frequencies_[node];
    use(node);
  }
  void use(NodeId node) override {
    values_[node] = {clock_ + frequencies_[node] * (512 + facts_[node].depth), ++uses_};
  }
  NodeId victim() override {
    NodeId least = kNoNode;
    for (const NodeId node : candidates_) {
      if (least == kNoNode || values_[node] < values_[least]) least = node;
    }
    return least;
  }
  void clear() noexcept override {
    candidates_.clear();
    clock_ = 0;
  }

 private:
  void enter(NodeId node) override {
    frequencies_[node] = 1;
    use(node);
  }
  void leave(NodeId node, bool evicted) override {
    if (evicted) clock_ = std::max(clock_, values_[node].first);
  }

  std::vector<std::pair<std::uint64_t, std::uint64_t>> values_;  // with the time of the last use
  std::vector<std::uint64_t> frequencies_;
  std::uint64_t clock_ = 0, uses_ = 0;
};

inline std::unique_ptr<kv::EvictionPolicy> make_naive_policy(Eviction kind, std::size_t capacity) {
  switch (kind) {
    case Eviction::kLru:
      return std::make_unique<NaiveLru>(capacity);
    case Eviction::kS3Fifo:
      return std::make_unique<NaiveS3Fifo>(capacity);
    case Eviction::kArc:
      return std::make_unique<NaiveArc>(capacity);
    case Eviction::kGdsf:
      return std::make_unique<NaiveGdsf>(capacity);
  }
  return nullptr;
}

inline constexpr Eviction kEvictions[] = {Eviction::kLru, Eviction::kS3Fifo, Eviction::kArc,
                                          Eviction::kGdsf};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_KV_NAIVE_POLICIES_H_
