// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_REFERENCE_TINY_FIXTURES_H_
#define INCIPIT_TESTS_REFERENCE_TINY_FIXTURES_H_

#include <filesystem>
#include <string>
#include <vector>

namespace incipit::test {

inline std::filesystem::path reference_data() {
  return std::filesystem::path(INCIPIT_TEST_DATA) / "reference";
}

/// The committed tiny models of the LLaMA kind, with their fixtures in `logits.bin`.
inline std::vector<std::filesystem::path> llama_directories() {
  return {reference_data() / "tiny-llama", reference_data() / "tiny-qwen2",
          reference_data() / "tiny-qwen3"};
}

/// A committed tiny model, and the fixture of its logits.
struct TinyFixture {
  std::filesystem::path model;
  std::filesystem::path logits;
};

/// Those of every family. Some come in two files of the same weights.
inline std::vector<TinyFixture> tiny_fixtures() {
  std::vector<TinyFixture> fixtures;
  for (const auto& directory : llama_directories()) {
    fixtures.push_back({directory, directory / "logits.bin"});
  }
  for (const char* const name :
       {"tiny-mistral", "tiny-gemma3", "tiny-gpt2", "tiny-opt", "tiny-opt-post", "tiny-bloom"}) {
    const std::filesystem::path directory = reference_data() / name;
    const std::filesystem::path gguf = reference_data() / (std::string(name) + "-gguf/model.gguf");
    fixtures.push_back({directory, directory / "logits.bin"});
    if (std::filesystem::exists(gguf)) fixtures.push_back({gguf, directory / "logits.bin"});
  }
  return fixtures;
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_REFERENCE_TINY_FIXTURES_H_
