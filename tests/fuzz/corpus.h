// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_FUZZ_CORPUS_H_
#define INCIPIT_TESTS_FUZZ_CORPUS_H_

#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "fuzz/target.h"
#include "support/catch.h"

namespace incipit::fuzz {

/// Runs the inputs of tests/data/fuzz/<name>.corpus (pack_corpus.py) again.
inline void run_corpus(const Target& target, const std::string& name) {
  std::ifstream file(std::string(INCIPIT_TEST_DATA "/fuzz/") + name + ".corpus", std::ios::binary);
  REQUIRE(file);
  const std::string packed{std::istreambuf_iterator<char>(file), {}};
  std::string_view rest = packed;
  std::size_t count = 0;
  while (!rest.empty()) {
    constexpr std::size_t kLengthBytes = 4;
    REQUIRE(rest.size() >= kLengthBytes);
    std::size_t size = 0;
    for (std::size_t i = kLengthBytes; i-- > 0;) {
      size = size << 8 | static_cast<unsigned char>(rest[i]);
    }
    rest.remove_prefix(kLengthBytes);
    REQUIRE(size <= rest.size());
    INFO("input " << count);
    target.run(rest.substr(0, size));
    rest.remove_prefix(size);
    ++count;
  }
  CHECK(count >= 10);
}

}  // namespace incipit::fuzz

#endif  // INCIPIT_TESTS_FUZZ_CORPUS_H_
