// SPDX-License-Identifier: Apache-2.0
#include "kv/labels.h"

#include <string>
#include <vector>

#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::kNoLabel;
using kv::LabelNames;
using kv::LabelSetId;
using kv::LabelSets;

LabelNames session(const std::string& name, std::vector<std::string> tags = {}) {
  return {.sessions = {name}, .common = false, .tags = std::move(tags)};
}

TEST_CASE("equal sets are one, however they were made") {
  LabelSets sets;
  const LabelSetId a = sets.make(session("s", {"x", "y"}));
  const LabelSetId b = sets.make(session("s", {"y", "x", "y"}));
  const LabelSetId x = sets.make(session("s", {"x"}));
  const LabelSetId y = sets.make(session("s", {"y"}));
  const LabelSetId both = sets.join(x, y);
  CHECK(a == b);
  CHECK(both == a);
  CHECK(x != y);
  CHECK(sets.sets() == 3);
  CHECK(sets.labels() == 3);
  CHECK(sets.names(a) == session("s", {"x", "y"}));
  sets.check_integrity();
  for (const LabelSetId set : {a, b, x, y, both}) sets.release(set);
  CHECK(sets.sets() == 0);
  CHECK(sets.labels() == 0);
  CHECK(sets.find_session("s") == kNoLabel);
  sets.check_integrity();
}

TEST_CASE("a session and a tag of one name are two labels") {
  LabelSets sets;
  const LabelSetId set = sets.make(session("a", {"a"}));
  CHECK(sets.find_session("a") != sets.find_tag("a"));
  CHECK(sets.has_session(set, sets.find_session("a")));
  CHECK_FALSE(sets.has_session(set, sets.find_tag("a")));
  CHECK(sets.has_tag(set, sets.find_tag("a")));
  CHECK(sets.only_session(set) == sets.find_session("a"));
}

TEST_CASE("what is common names no session, and is nobody's orphan") {
  LabelSets sets;
  const LabelSetId one = sets.make(session("a"));
  const LabelSetId none = sets.make({});
  const LabelSetId both = sets.join(one, none);
  CHECK(both == none);
  CHECK(sets.only_session(both) == kNoLabel);
  CHECK_FALSE(sets.is_orphan(both));
  const LabelSetId two = sets.make({.sessions = {"a", "b"}, .common = false});
  CHECK(sets.only_session(two) == kNoLabel);
  const LabelSetId left = sets.without_session(two, sets.find_session("b"));
  CHECK(left == one);
  const LabelSetId nobody = sets.without_session(left, sets.find_session("a"));
  CHECK(sets.is_orphan(nobody));
  sets.check_integrity();
}

TEST_CASE("sets are bounded, and what falls out of them leaves nothing behind") {
  LabelSets sets;
  LabelSetId all = sets.make(session("0", {"0"}));
  for (std::size_t i = 1; i < 200; ++i) {
    const LabelSetId more = sets.make(session(std::to_string(i), {std::to_string(i)}));
    const LabelSetId both = sets.join(all, more);
    sets.release(all);
    sets.release(more);
    all = both;
    CHECK(sets.names(all).common == (i >= LabelSets::kMaxSessions));
    CHECK(sets.names(all).any_tag == (i >= LabelSets::kMaxTags));
    sets.check_integrity();
  }
  CHECK(sets.sets() == 1);
  CHECK(sets.labels() == 0);
  CHECK(sets.has_tag(all, kNoLabel));
}

TEST_CASE("cuts are known by the sets that have the label") {
  LabelSets sets;
  const LabelSetId a = sets.make(session("a", {"x"}));
  const LabelSetId b = sets.make(session("b", {"y"}));
  LabelNames many{.any_tag = true};
  const LabelSetId any = sets.make(many);
  sets.cut_session(sets.find_session("a"), 5);
  CHECK(sets.cut_since(a, 4));
  CHECK_FALSE(sets.cut_since(a, 5));
  CHECK_FALSE(sets.cut_since(b, 0));
  CHECK_FALSE(sets.cut_since(any, 0));
  sets.cut_tag(sets.find_tag("y"), 7);
  CHECK(sets.cut_since(b, 6));
  CHECK_FALSE(sets.cut_since(a, 5));
  CHECK(sets.cut_since(any, 6));
  sets.cut_tag(kNoLabel, 9);
  CHECK(sets.cut_since(any, 8));
  CHECK_FALSE(sets.cut_since(b, 7));
}

}  // namespace
}  // namespace incipit::test
