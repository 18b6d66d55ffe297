// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_ENGINE_TINY_ENGINE_H_
#define INCIPIT_TESTS_ENGINE_TINY_ENGINE_H_

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/machine.h"
#include "incipit/engine.h"
#include "support/temporary_directory.h"
#include "support/tiny_model.h"

namespace incipit::test {

/// A tiny random model on disk.
class TinyModelFile {
 public:
  explicit TinyModelFile(const TinyModelOptions& options = {}) {
    make_tiny_model(options).write_gguf(path());
  }
  std::filesystem::path path() const { return directory_.path() / "model.gguf"; }
  /// Options that load it; two threads.
  EngineOptions options() const {
    EngineOptions options;
    options.model = path();
    options.threads = 2;
    return options;
  }

 private:
  TemporaryDirectory directory_;
};

/// The CPU paths that this machine has.
inline std::vector<CpuPath> cpu_paths() {
  std::vector<CpuPath> paths = {CpuPath::kScalar};
  const base::CpuFeatures features = base::cpu_features();
  if (features.avx2) paths.push_back(CpuPath::kAvx2);
  if (features.avx512) paths.push_back(CpuPath::kAvx512);
  return paths;
}

/// `count` random ids; the special tokens at the front of a tiny vocabulary are left out.
inline std::vector<TokenId> random_ids(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> ids(count);
  for (TokenId& id : ids) id = static_cast<TokenId>(10 + random() % 240);
  return ids;
}

/// Everything of a result that must not depend on cache, batch or threads, bits of floats included.
inline std::string fingerprint(const GenerateResult& result) {
  std::string out = result.text + '|' + std::string(to_string(result.finish));
  for (const TokenId id : result.token_ids) out += ' ' + std::to_string(id);
  for (const auto& row : result.top) {
    for (const TokenLogprob& entry : row) {
      out += ' ' + std::to_string(entry.id) + ':' +
             std::to_string(std::bit_cast<std::uint32_t>(entry.logprob));
    }
  }
  return out;
}

/// Greedy, no early end, the log-probabilities of the whole vocabulary.
inline GenerateParams whole_rows(const Engine& engine, std::size_t max_tokens) {
  GenerateParams params;
  params.max_tokens = max_tokens;
  params.ignore_eos = true;
  params.logprobs = engine.model().vocabulary;
  return params;
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_ENGINE_TINY_ENGINE_H_
