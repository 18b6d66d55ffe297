// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_TINY_MODEL_H_
#define INCIPIT_TESTS_SUPPORT_TINY_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"
#include "support/gguf_writer.h"
#include "tensor/dtype.h"
#include "text/tokenizer.h"

namespace incipit::test {

enum class Family { kLlama, kQwen2, kQwen3 };

struct TinyModelOptions {
  Family family = Family::kLlama;
  std::size_t layers = 2;
  std::size_t width = 64;  // grows to whole blocks of `type`, as do ffn_width and head_dim
  std::size_t heads = 4;
  std::size_t kv_heads = 2;
  std::size_t head_dim = 16;  // heads * head_dim may differ from width
  std::size_t ffn_width = 96;
  std::size_t context = 512;
  std::size_t vocabulary = 0;  // control tokens fill it up to so many
  float rope_base = 10000.0f;
  bool llama3_rope = false;  // scaled as kTinyRope says
  std::uint32_t window = 0;  // keys that a row sees, of a LLaMA (which makes it a Mistral); 0: all
  bool tied = false;
  tensor::DType type = tensor::DType::kF32;          // of the matrices; vectors are F32
  std::optional<tensor::DType> embedding_type = {};  // none: as the other matrices
  std::uint64_t seed = 1;
};

/// LLaMA-3's scaling of RoPE frequencies, with an original context so small that head_dim = 16 has
/// pairs of all three kinds (kept, blended, divided).
struct TinyRope {
  double factor = 8.0;
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  std::size_t original_context = 32;
};
inline constexpr TinyRope kTinyRope = {};

/// One tensor as it is stored.
struct TinyTensor {
  std::vector<std::size_t> shape;  // [rows, columns] or [elements]
  tensor::DType type = tensor::DType::kF32;
  std::string bytes;  // row-major
};

/// A random model of the LLaMA kind with all that a model file holds. The same options give the
/// same model on every machine.
///
/// Tensors have Hugging Face's names and row order (`RopePairs::kHalves` in every family). Their
/// values are what the stored, possibly quantised form stands for, so a reference computed on them
/// in double precision is what a device computes up to rounding.
struct TinyModel {
  TinyModelOptions options;
  model::ModelConfig config;        // of the directory; the GGUF file of a LLaMA has kAdjacent
  text::TokenizerSpec tokenizer;    // 3 special tokens, 256 bytes, a few merges
  std::string chat_template;        // ChatML
  std::vector<float> rope_factors;  // [head_dim / 2] what divides the frequencies; empty: nothing
  std::map<std::string, std::vector<float>> tensors;
  std::map<std::string, TinyTensor> stored;

  const std::vector<float>& values(const std::string& name) const { return tensors.at(name); }

  /// As llama.cpp's converter would write it: rows of q and k of a LLaMA permuted. Can be altered
  /// before it is written.
  GgufWriter gguf() const;
  void write_gguf(const std::filesystem::path& path) const { gguf().write(path); }

  /// config.json, generation_config.json, tokenizer.json, tokenizer_config.json and
  /// model.safetensors, or `shards` > 1 files with their index. Makes the directory. Quantised
  /// tensors are stored as the F32 values that they stand for.
  void write_hugging_face(const std::filesystem::path& directory, std::size_t shards = 1) const;
};

TinyModel make_tiny_model(const TinyModelOptions& options = {});

/// A LLaMA of one layer, one block of columns (32 at least) and 12 tokens, with scaled RoPE and a
/// tied output: a few kilobytes but for blocks of 256, for tests that damage a file at every place.
TinyModel make_smallest_model(tensor::DType type);

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_TINY_MODEL_H_
