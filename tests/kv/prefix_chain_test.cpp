// SPDX-License-Identifier: Apache-2.0
#include "kv/prefix_chain.h"

#include <set>
#include <string>

#include "device/kv_layout.h"
#include "fake_sequence.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::Digest256;
using kv::prefix_chain;

/// The same by concatenation: SHA-256 of the digest in front and one block's ids.
std::vector<Digest256> by_hand(const std::string& name_space, const Tokens& tokens) {
  std::vector<Digest256> chain = {base::sha256(base::as_bytes("incipit prefix 1" + name_space))};
  for (std::size_t first = 0; first + 16 <= tokens.size(); first += 16) {
    std::string text(reinterpret_cast<const char*>(chain.back().data()), 32);
    text.append(reinterpret_cast<const char*>(tokens.data() + first), 16 * sizeof(TokenId));
    chain.push_back(base::sha256(base::as_bytes(text)));
  }
  return chain;
}

TEST_CASE("a chain is SHA-256 of what is in front and one block") {
  for (const std::size_t count : {0u, 1u, 15u, 16u, 17u, 31u, 32u, 33u, 160u}) {
    const Tokens tokens = ids(count, -3);
    const auto chain = prefix_chain("some namespace", tokens);
    CHECK(chain.size() == count / 16 + 1);
    CHECK(chain == by_hand("some namespace", tokens));
  }
}

TEST_CASE("each token changes all digests behind it and none in front") {
  const Tokens tokens = ids(6 * 16 + 5);
  const auto chain = prefix_chain("n", tokens);
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    Tokens changed = tokens;
    changed[at] ^= 1 << at % 31;
    const auto other = prefix_chain("n", changed);
    REQUIRE(other.size() == chain.size());
    std::size_t equal = 0;
    while (equal < chain.size() && chain[equal] == other[equal]) ++equal;
    CHECK(equal == std::min(at / 16 + 1, chain.size()));
    for (std::size_t i = equal; i < chain.size(); ++i) CHECK(chain[i] != other[i]);
  }
}

TEST_CASE("namespaces have no digest in common, and no two prefixes have") {
  std::set<Digest256> digests;
  std::size_t count = 0;
  for (const std::string name_space : {"", "n", "m", "nn"}) {
    for (const TokenId first : {0, 16, 1000}) {
      const auto chain = prefix_chain(name_space, ids(5 * 16, first));
      digests.insert(chain.begin() + 1, chain.end());
      count += chain.size() - 1;
    }
    digests.insert(prefix_chain(name_space, {}).front());
    ++count;
  }
  CHECK(digests.size() == count);
}

TEST_CASE("a longer prompt goes on where a shorter one ends") {
  const auto longer = prefix_chain("n", ids(100));
  const auto shorter = prefix_chain("n", ids(50));
  CHECK(std::equal(shorter.begin(), shorter.end(), longer.begin()));
}

}  // namespace
}  // namespace incipit::test
