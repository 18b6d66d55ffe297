// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_REFERENCE_TINY_FIXTURES_H_
#define INCIPIT_TESTS_REFERENCE_TINY_FIXTURES_H_

#include <filesystem>
#include <vector>

namespace incipit::test {

/// The committed tiny models of each family, with their fixtures in `logits.bin`.
inline std::vector<std::filesystem::path> tiny_directories() {
  const std::filesystem::path root = std::filesystem::path(INCIPIT_TEST_DATA) / "reference";
  return {root / "tiny-llama", root / "tiny-qwen2", root / "tiny-qwen3"};
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_REFERENCE_TINY_FIXTURES_H_
