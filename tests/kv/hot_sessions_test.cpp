// SPDX-License-Identifier: Apache-2.0
#include "kv/hot_sessions.h"

#include <string>
#include <utility>

#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::HotSessions;
using kv::kNoLabel;
using kv::kNoNode;
using kv::LabelId;
using kv::LabelSetId;
using kv::LabelSets;

struct Setup {
  explicit Setup(std::size_t limit) : hot(limit, 8, labels) {}
  std::pair<LabelSetId, LabelId> make(const std::string& name) {
    const LabelSetId set = labels.make({.sessions = {name}, .common = false});
    return {set, labels.only_session(set)};
  }
  LabelSets labels;
  HotSessions hot;
};

TEST_CASE("the most recent sessions are hot") {
  Setup setup(2);
  const auto [set_a, a] = setup.make("a");
  const auto [set_b, b] = setup.make("b");
  const auto [set_c, c] = setup.make("c");
  CHECK(setup.hot.is_cold(a));
  CHECK_FALSE(setup.hot.is_cold(kNoLabel));
  CHECK(setup.hot.use(set_a).warmed == a);
  CHECK(setup.hot.use(set_b).cooled == kNoLabel);
  CHECK(setup.hot.use(set_a).warmed == kNoLabel);  // was hot
  const HotSessions::Change change = setup.hot.use(set_c);
  CHECK(change.warmed == c);
  CHECK(change.cooled == b);
  CHECK_FALSE(setup.hot.is_cold(a));
  CHECK(setup.hot.is_cold(b));
  CHECK(setup.hot.hot() == 2);
  // A hot session is known for as long as it is hot, a cold one while somebody has it.
  setup.labels.release(set_c);
  setup.labels.release(set_b);
  CHECK(setup.labels.find_session("c") == c);
  CHECK(setup.labels.find_session("b") == kNoLabel);
}

TEST_CASE("each session has a list of its own nodes") {
  Setup setup(1);
  const auto [set_a, a] = setup.make("a");
  const auto [set_b, b] = setup.make("b");
  CHECK(setup.hot.oldest(a) == kNoNode);
  setup.hot.move(3, kNoLabel, a);
  setup.hot.move(5, kNoLabel, a);
  setup.hot.move(6, kNoLabel, kNoLabel);
  CHECK(setup.hot.oldest(a) == 3);
  CHECK(setup.hot.newer(3) == 5);
  setup.hot.move(3, a, b);
  CHECK(setup.hot.oldest(a) == 5);
  CHECK(setup.hot.oldest(b) == 3);
  setup.hot.move(5, a, kNoLabel);
  CHECK_FALSE(setup.hot.has(5));
  CHECK(setup.hot.has(3));
}

TEST_CASE("without a limit nothing is kept and nothing is cold") {
  Setup setup(0);
  const auto [set_a, a] = setup.make("a");
  CHECK_FALSE(setup.hot.is_on());
  CHECK(setup.hot.use(set_a).warmed == kNoLabel);
  setup.hot.move(3, kNoLabel, a);
  CHECK_FALSE(setup.hot.has(3));
  CHECK_FALSE(setup.hot.is_cold(a));
}

}  // namespace
}  // namespace incipit::test
