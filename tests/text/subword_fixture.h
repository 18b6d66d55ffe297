// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_TEXT_SUBWORD_FIXTURE_H_
#define INCIPIT_TESTS_TEXT_SUBWORD_FIXTURE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/catch.h"
#include "text/fixture.h"
#include "text/tokenizer.h"

// What tests/reference/make_subword_fixtures.py made.

namespace incipit::text {

/// Those of the corpus, more of them, and pairs, in the order in which they were hashed.
inline const std::vector<std::string>& all_strings() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> strings = corpus();
    const std::vector<std::string> more = strings_of("subwords/more.jsonl");
    strings.insert(strings.end(), more.begin(), more.end());
    constexpr int kPairs = 2200;
    const std::size_t singles = strings.size();
    std::uint64_t state = 1;
    const auto any = [&] {
      state = (state * 1103515245 + 12345) % (std::uint64_t{1} << 31);
      return state / 256 % singles;
    };
    for (int i = 0; i < kPairs; ++i) {
      const std::size_t first = any(), second = any();
      strings.push_back(strings[first] + strings[second]);
    }
    return strings;
  }();
  return all;
}

/// What the fixture holds for a string, or "---".
inline std::vector<std::string> hashes_of(const std::string& family) {
  std::string digits = read_fixture("subwords/" + family + ".hashes");
  std::erase(digits, '\n');
  std::vector<std::string> hashes;
  for (std::size_t i = 0; i < digits.size(); i += 3) hashes.push_back(digits.substr(i, 3));
  return hashes;
}

inline std::string hash_of(const std::vector<TokenId>& ids, const std::string& text) {
  std::string bytes;
  for (const TokenId id : ids) {
    if (!bytes.empty()) bytes += ' ';
    bytes += std::to_string(id);
  }
  bytes += '\n';
  bytes += text;
  std::uint32_t hash = 2166136261;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619;
  hash = (hash ^ hash >> 12 ^ hash >> 24) & 0xFFF;
  std::string hex;
  for (int shift = 8; shift >= 0; shift -= 4) hex += "0123456789abcdef"[hash >> shift & 0xF];
  return hex;
}

/// That the tokenizer encodes and decodes all strings as the fixture says.
inline void check_equal(const Tokenizer& tokenizer, const std::string& family) {
  const std::vector<std::string>& strings = all_strings();
  const std::vector<std::string> hashes = hashes_of(family);
  REQUIRE(strings.size() >= 5000);
  REQUIRE(hashes.size() == strings.size());
  std::size_t compared = 0;
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (hashes[i] == "---") continue;
    const std::vector<TokenId> ids = tokenizer.encode(strings[i]);
    if (hash_of(ids, tokenizer.decode(ids)) != hashes[i]) {
      FAIL_CHECK(family << ": " << nlohmann::json(strings[i]));
    }
    ++compared;
  }
  CHECK(compared >= 4900);
}

}  // namespace incipit::text

#endif  // INCIPIT_TESTS_TEXT_SUBWORD_FIXTURE_H_
