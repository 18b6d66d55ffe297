// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_FUZZ_CORPUS_H_
#define INCIPIT_TESTS_FUZZ_CORPUS_H_

#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz/target.h"
#include "support/catch.h"

namespace incipit::fuzz {

inline std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

/// Runs the inputs that libFuzzer has found to reach something new: tests/data/fuzz/<name>.hex, one
/// in each line.
inline void run_corpus(const Target& target, const std::string& name) {
  std::ifstream in(std::filesystem::path(INCIPIT_TEST_DATA) / "fuzz" / (name + ".hex"));
  REQUIRE(in.is_open());
  std::size_t inputs = 0;
  for (std::string line; std::getline(in, line); ++inputs) {
    INFO("line " << inputs + 1);
    target.run(from_hex(line));
  }
  CHECK(inputs > 0);
}

}  // namespace incipit::fuzz

#endif  // INCIPIT_TESTS_FUZZ_CORPUS_H_
