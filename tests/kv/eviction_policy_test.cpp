// SPDX-License-Identifier: Apache-2.0
#include "kv/eviction_policy.h"

#include <initializer_list>
#include <random>
#include <vector>

#include "incipit/error.h"
#include "kv/gdsf_policy.h"
#include "naive_policies.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::EvictionPolicy;
using kv::make_eviction_policy;

/// New nodes that are candidates at once; a node's identity is its number.
void bring(EvictionPolicy& policy, std::initializer_list<NodeId> nodes) {
  for (const NodeId node : nodes) {
    policy.insert(node, {.identity = node});
    policy.add_candidate(node);
  }
}

NodeId evict(EvictionPolicy& policy) {
  const NodeId node = policy.victim();
  REQUIRE(policy.victim() == node);
  policy.remove_candidate(node);
  policy.remove(node, true);
  return node;
}

std::vector<NodeId> evict_all(EvictionPolicy& policy) {
  std::vector<NodeId> nodes;
  while (policy.candidates() > 0) nodes.push_back(evict(policy));
  return nodes;
}

using Nodes = std::vector<NodeId>;

TEST_CASE("without candidates there is no victim") {
  for (const Eviction kind : kEvictions) {
    CAPTURE(static_cast<int>(kind));
    const auto policy = make_eviction_policy(kind, 2);
    CHECK(policy->victim() == kNoNode);
    policy->insert(1, {.identity = 9});
    CHECK(policy->victim() == kNoNode);
    CHECK_FALSE(policy->is_candidate(1));
    policy->add_candidate(1);
    CHECK(policy->is_candidate(1));
    CHECK(policy->candidates() == 1);
    CHECK(policy->victim() == 1);
    policy->remove_candidate(1);
    CHECK(policy->victim() == kNoNode);
    policy->add_candidate(1);
    policy->clear();
    CHECK(policy->candidates() == 0);
    CHECK(policy->victim() == kNoNode);
    bring(*policy, {1});
    CHECK(evict_all(*policy) == Nodes{1});
  }
}

TEST_CASE("a policy says where it is used wrongly") {
  for (const Eviction kind : kEvictions) {
    CAPTURE(static_cast<int>(kind));
    const auto policy = make_eviction_policy(kind, 2);
    bring(*policy, {1});
    CHECK_THROWS_AS(policy->add_candidate(1), Error);
    CHECK_THROWS_AS(policy->remove(1, true), Error);
    CHECK_THROWS_AS(policy->remove_candidate(0), Error);
    CHECK_THROWS(policy->insert(2, {}));
    CHECK(evict_all(*policy) == Nodes{1});
  }
  CHECK_THROWS_AS(make_eviction_policy(static_cast<Eviction>(9), 2), Error);
}

TEST_CASE("LRU evicts what was found or let go of longest ago") {
  const auto policy = make_eviction_policy(Eviction::kLru, 5);
  bring(*policy, {0, 1, 2, 3, 4});
  policy->hit(0);
  policy->use(2);
  // Becoming a candidate is no use.
  policy->remove_candidate(1);
  policy->add_candidate(1);
  CHECK(evict_all(*policy) == Nodes{1, 3, 4, 0, 2});
}

TEST_CASE("S3-FIFO keeps what was found twice, and what comes back") {
  const auto policy = make_eviction_policy(Eviction::kS3Fifo, 10);
  bring(*policy, {0, 1, 2, 3});
  policy->hit(0);
  policy->hit(0);
  policy->hit(1);  // once is not enough
  policy->use(2);  // no hit
  CHECK(evict(*policy) == 1);
  bring(*policy, {1});  // is a ghost, so it enters the main queue: behind 0, which moved there
  bring(*policy, {4, 5});
  for (int i = 0; i < 9; ++i) policy->hit(4);
  // 4 goes to the main queue, too, when it is its turn. It has no hits there yet.
  CHECK(evict_all(*policy) == Nodes{2, 3, 5, 0, 1, 4});
}

TEST_CASE("S3-FIFO gives another round for each of three hits at most") {
  const auto policy = make_eviction_policy(Eviction::kS3Fifo, 10);
  bring(*policy, {0, 1, 2});
  evict_all(*policy);
  bring(*policy, {0, 1, 2});  // all are ghosts: main queue
  for (int i = 0; i < 9; ++i) policy->hit(0);
  for (int i = 0; i < 3; ++i) policy->hit(1);
  CHECK(evict_all(*policy) == Nodes{2, 0, 1});
  // What leaves the main queue is no ghost.
  bring(*policy, {0, 3});
  CHECK(evict_all(*policy) == Nodes{0, 3});
}

TEST_CASE("ARC keeps what was found against a scan") {
  const auto policy = make_eviction_policy(Eviction::kArc, 4);
  bring(*policy, {0, 1});
  policy->hit(0);
  policy->hit(1);
  bring(*policy, {2, 3});
  CHECK(evict(*policy) == 2);
  CHECK(evict(*policy) == 3);
  CHECK(evict_all(*policy) == Nodes{0, 1});
}

TEST_CASE("ARC gives recency a larger share when what it evicted comes back") {
  const auto policy = make_eviction_policy(Eviction::kArc, 4);
  bring(*policy, {0, 1});
  policy->hit(0);
  bring(*policy, {2});
  CHECK(evict(*policy) == 1);
  CHECK(evict(*policy) == 2);
  bring(*policy, {1, 2});  // ghosts: the share is 2 now, and both are in the second list
  bring(*policy, {3});
  CHECK(evict(*policy) == 0);
  // 1 and 2 in the second list, 3 alone in the first: within its share.
  CHECK(evict(*policy) == 1);
  bring(*policy, {1});  // back to the second list: the share shrinks to 1, which 3 has
  CHECK(evict(*policy) == 2);
  bring(*policy, {2});  // to 0
  CHECK(evict(*policy) == 3);
  CHECK(evict_all(*policy) == Nodes{1, 2});
}

TEST_CASE("GDSF weighs use with the work of computing again, and ages") {
  constexpr std::uint32_t kTwice = kv::GdsfPolicy::kDepthOfEqualWork;
  const auto policy = make_eviction_policy(Eviction::kGdsf, 6);
  policy->insert(0, {.identity = 0, .depth = kTwice});
  policy->add_candidate(0);
  bring(*policy, {1, 2, 3});
  policy->hit(1);  // as much worth as 0, and used later
  CHECK(evict(*policy) == 2);
  bring(*policy, {2});  // on the clock of the first 2: as much worth as 0 and 1
  CHECK(evict(*policy) == 3);
  CHECK(evict(*policy) == 0);
  policy->use(1);  // the clock moved on
  CHECK(evict_all(*policy) == Nodes{2, 1});
}

TEST_CASE("what is removed without eviction is no ghost") {
  for (const Eviction kind : {Eviction::kS3Fifo, Eviction::kArc}) {
    CAPTURE(static_cast<int>(kind));
    for (const bool evicted : {false, true}) {
      const auto policy = make_eviction_policy(kind, 4);
      policy->insert(0, {.identity = 7});
      policy->remove(0, evicted);
      policy->insert(0, {.identity = 7});
      policy->add_candidate(0);
      bring(*policy, {1, 2});
      CHECK(policy->victim() == (evicted ? 1 : 0));
    }
  }
}

/// Drives a policy and its naive twin alike, and compares them.
class Twins {
 public:
  Twins(Eviction kind, std::size_t capacity)
      : fast_(make_eviction_policy(kind, capacity)), plain_(make_naive_policy(kind, capacity)) {}

  template <class Call>
  void both(const Call& call) {
    call(*fast_);
    call(*plain_);
    REQUIRE(fast_->candidates() == plain_->candidates());
  }
  NodeId victim() {
    const NodeId node = fast_->victim();
    REQUIRE(node == plain_->victim());
    return node;
  }
  bool is_candidate(NodeId node) {
    const bool answer = fast_->is_candidate(node);
    REQUIRE(answer == plain_->is_candidate(node));
    return answer;
  }

 private:
  std::unique_ptr<EvictionPolicy> fast_, plain_;
};

TEST_CASE("each policy agrees with its definition under any calls") {
  constexpr NodeId kNodes = 24;
  for (const Eviction kind : kEvictions) {
    CAPTURE(static_cast<int>(kind));
    std::mt19937_64 random(3);
    Twins twins(kind, kNodes);
    std::vector<bool> present(kNodes, false);
    for (int i = 0; i < 25'000; ++i) {
      const auto node = static_cast<NodeId>(random() % kNodes);
      const auto choice = random() % 16;
      if (random() % 2000 == 0) {
        twins.both([](EvictionPolicy& policy) { policy.clear(); });
        present.assign(kNodes, false);
      } else if (!present[node]) {
        const NodeFacts facts = {.identity = random() % 60,
                                 .depth = static_cast<std::uint32_t>(random() % 3) * 300};
        twins.both([&](EvictionPolicy& policy) { policy.insert(node, facts); });
        present[node] = true;
      } else if (choice < 4) {
        twins.both([&](EvictionPolicy& policy) { policy.hit(node); });
      } else if (choice < 6) {
        twins.both([&](EvictionPolicy& policy) { policy.use(node); });
      } else if (choice < 11) {
        const bool out = twins.is_candidate(node);
        twins.both([&](EvictionPolicy& policy) {
          out ? policy.remove_candidate(node) : policy.add_candidate(node);
        });
      } else if (choice == 11 && !twins.is_candidate(node)) {
        twins.both([&](EvictionPolicy& policy) { policy.remove(node, false); });
        present[node] = false;
      } else if (const NodeId last = twins.victim(); last != kNoNode) {
        twins.both([&](EvictionPolicy& policy) {
          policy.remove_candidate(last);
          policy.remove(last, true);
        });
        present[last] = false;
      }
    }
  }
}

/// Requests over a small prefix tree, as a cache drives a policy: each finds a part of its path,
/// adds the rest, holds all of it for a while, and lets go from the last node to the first.
class Tree {
 public:
  Tree(Eviction kind, std::size_t capacity) : twins_(kind, capacity), nodes_(capacity) {
    for (std::size_t i = capacity; i-- > 0;) unused_.push_back(static_cast<NodeId>(i));
  }

  /// A path is the edges from the root; equal paths are equal prefixes.
  void start(const std::vector<int>& path) {
    std::vector<NodeId> held;
    std::uint64_t identity = 1;
    for (const int edge : path) {
      const NodeId parent = held.empty() ? kNoNode : held.back();
      identity = identity * 31 + static_cast<std::uint64_t>(edge);
      NodeId node = child(parent, identity);
      if (node != kNoNode) {
        twins_.both([&](EvictionPolicy& policy) { policy.hit(node); });
        if (twins_.is_candidate(node)) {
          twins_.both([&](EvictionPolicy& policy) { policy.remove_candidate(node); });
        }
      } else {
        if (unused_.empty() && !evict()) break;  // all is held
        node = unused_.back();
        unused_.pop_back();
        nodes_[node] = {.identity = identity, .parent = parent, .used = true};
        if (parent != kNoNode) ++nodes_[parent].children;
        const NodeFacts facts = {identity, static_cast<std::uint32_t>(held.size())};
        twins_.both([&](EvictionPolicy& policy) { policy.insert(node, facts); });
      }
      ++nodes_[node].holders;
      held.push_back(node);
    }
    requests_.push_back(held);
  }

  void finish(std::size_t request) {
    const std::vector<NodeId> held = requests_.at(request);
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(request));
    for (auto node = held.rbegin(); node != held.rend(); ++node) {
      --nodes_[*node].holders;
      twins_.both([&](EvictionPolicy& policy) { policy.use(*node); });
      offer(*node);
    }
  }

  std::size_t live() const { return requests_.size(); }
  std::size_t evictions() const { return evictions_; }

 private:
  struct Node {
    std::uint64_t identity = 0;
    NodeId parent = kNoNode;
    std::size_t children = 0, holders = 0;
    bool used = false;
  };

  NodeId child(NodeId parent, std::uint64_t identity) const {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].used && nodes_[i].parent == parent && nodes_[i].identity == identity) {
        return static_cast<NodeId>(i);
      }
    }
    return kNoNode;
  }

  void offer(NodeId node) {
    if (nodes_[node].holders > 0 || nodes_[node].children > 0) return;
    twins_.both([&](EvictionPolicy& policy) { policy.add_candidate(node); });
  }

  bool evict() {
    const NodeId node = twins_.victim();
    if (node == kNoNode) return false;
    REQUIRE((nodes_[node].used && nodes_[node].holders == 0 && nodes_[node].children == 0));
    twins_.both([&](EvictionPolicy& policy) {
      policy.remove_candidate(node);
      policy.remove(node, true);
    });
    const NodeId parent = nodes_[node].parent;
    nodes_[node] = {};
    unused_.push_back(node);
    ++evictions_;
    if (parent != kNoNode) {
      --nodes_[parent].children;
      offer(parent);
    }
    return true;
  }

  Twins twins_;
  std::vector<Node> nodes_;
  std::vector<NodeId> unused_ = {};
  std::vector<std::vector<NodeId>> requests_ = {};
  std::size_t evictions_ = 0;
};

TEST_CASE("each policy agrees with its definition over a prefix tree, and evicts leaves only") {
  for (const Eviction kind : kEvictions) {
    CAPTURE(static_cast<int>(kind));
    std::mt19937_64 random(4);
    Tree tree(kind, 40);
    for (int i = 0; i < 3000; ++i) {
      if (tree.live() > 0 && random() % 3 != 0) {
        tree.finish(random() % tree.live());
      } else {
        std::vector<int> path(1 + random() % 8);
        // Few edges near the root, so that there is something to share.
        for (std::size_t k = 0; k < path.size(); ++k) {
          path[k] = static_cast<int>(random() % (k < 3 ? 2 : 5));
        }
        tree.start(path);
      }
    }
    while (tree.live() > 0) tree.finish(0);
    CHECK(tree.evictions() > 1000);
  }
}

}  // namespace
}  // namespace incipit::test
