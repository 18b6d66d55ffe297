// SPDX-License-Identifier: Apache-2.0
#include "kv/scopes.h"

#include <string>
#include <vector>

#include "fake_sequence.h"
#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::kNoScope;
using kv::Scope;
using kv::ScopeId;
using kv::Scopes;

TEST_CASE("a namespace lives while a table or a block has it, an owner while a namespace does") {
  Scopes scopes;
  const ScopeId a = scopes.add_table("a", "s", "1");
  CHECK(scopes.add_table("a", "s", "1") == a);
  const ScopeId b = scopes.add_table("b", "s", "2");
  CHECK(scopes.find("a") == a);
  CHECK(scopes.find("c") == kNoScope);
  CHECK(scopes.owners().size() == 1);
  scopes.add_block(a);
  scopes.remove_table(a);
  scopes.remove_table(a);
  CHECK(scopes.find("a") == a);
  CHECK(scopes.owner(a).blocks == 1);
  CHECK(scopes.of_owner("s").size() == 2);
  scopes.check_integrity();
  scopes.remove_block(a);
  CHECK(scopes.find("a") == kNoScope);
  CHECK(scopes.size() == 1);
  scopes.remove_table(b);
  CHECK(scopes.owners().empty());
  CHECK(scopes.add_table("c", "t", "") < 2);  // places are used again
  scopes.check_integrity();
}

TEST_CASE("a namespace has one salt and one version") {
  Scopes scopes;
  scopes.add_table("a", "s", "1");
  CHECK_THROWS_AS(scopes.add_table("a", "t", "1"), Error);
  CHECK_THROWS_AS(scopes.add_table("a", "s", "2"), Error);
  scopes.check_integrity();
}

TEST_CASE("a cut prefix concerns what begins with it and started before") {
  Scopes scopes;
  const ScopeId id = scopes.add_table("a", "", "");
  Scope& scope = scopes.at(id);
  scope.cut_prefix(ids(20), 5);
  CHECK(scope.cut_since(4, ids(20)));
  CHECK(scope.cut_since(4, ids(40)));
  CHECK_FALSE(scope.cut_since(4, ids(19)));
  CHECK_FALSE(scope.cut_since(4, ids(20, 1)));
  CHECK_FALSE(scope.cut_since(5, ids(20)));
  for (std::uint64_t i = 1; i < Scope::kMaxPrefixCuts; ++i) scope.cut_prefix(ids(20), 5 + i);
  CHECK_FALSE(scope.cut_since(4, ids(3)));
  scope.cut_prefix(ids(20), 90);
  CHECK(scope.cut_since(89, ids(3)));
  CHECK_FALSE(scope.cut_since(90, ids(20)));
  scopes.add_block(id);
  scopes.remove_table(id);
  CHECK(scope.prefix_cuts.empty());
  scope.cut_prefix(ids(20), 91);  // no table is there to hear of it
  CHECK(scope.prefix_cuts.empty());
}

}  // namespace
}  // namespace incipit::test
