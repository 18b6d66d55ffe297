// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <cmath>

#include "model/files.h"

namespace incipit::model {
namespace {

// The context is what sin_cos() of rope.h reaches; the other caps are a few times what the largest
// published models have.
constexpr std::size_t kMaxContext = std::size_t{1} << 20;
constexpr std::size_t kMaxVocabulary = std::size_t{1} << 21;
constexpr std::size_t kMaxLayers = 1024;
constexpr std::size_t kMaxWidth = std::size_t{1} << 17;
constexpr std::size_t kMaxHeads = 1024;
constexpr std::size_t kMaxHeadDim = 256;
constexpr std::size_t kMaxFfnWidth = std::size_t{1} << 19;

void check_size(const std::filesystem::path& file, std::size_t value, std::size_t most,
                const char* what) {
  if (value >= 1 && value <= most) return;
  fail(file, std::string("the model's ") + what + " is " + std::to_string(value) +
                 "; incipit runs models where it is 1 to " + std::to_string(most));
}

}  // namespace

void check_config(const ModelConfig& config, const std::filesystem::path& file) {
  check_size(file, config.vocabulary, kMaxVocabulary, "vocabulary");
  check_size(file, config.context, kMaxContext, "context");
  check_size(file, config.layers, kMaxLayers, "number of layers");
  check_size(file, config.width, kMaxWidth, "width");
  check_size(file, config.heads, kMaxHeads, "number of heads");
  check_size(file, config.kv_heads, config.heads, "number of KV heads");
  check_size(file, config.head_dim, kMaxHeadDim, "head dimension");
  check_size(file, config.ffn_width, kMaxFfnWidth, "feed-forward width");
  if (config.heads % config.kv_heads != 0) {
    fail(file, std::to_string(config.heads) + " heads cannot share " +
                   std::to_string(config.kv_heads) + " KV heads evenly; the file is damaged");
  }
  if (config.head_dim % 2 != 0) {
    fail(file, "the head dimension " + std::to_string(config.head_dim) +
                   " is odd, so that RoPE has no pairs; the file is damaged");
  }
  if (!(config.norm_epsilon > 0.0f && config.norm_epsilon < 1.0f)) {
    fail(file, "the epsilon of the norms is " + std::to_string(config.norm_epsilon) +
                   ", not between 0 and 1; the file is damaged");
  }
}

}  // namespace incipit::model
