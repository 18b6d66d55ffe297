// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_INSPECT_H_
#define INCIPIT_INSPECT_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "incipit/export.h"
#include "incipit/sampling.h"

namespace incipit::inline v0 {

/// A tensor of a model file.
struct TensorReport {
  std::string name = {};                  ///< As the file calls it.
  std::string type = {};                  ///< As it is stored: "Q4_K", "BF16".
  std::string computed_as = {};           ///< Another type that stands in for it; empty: none.
  std::vector<std::uint64_t> shape = {};  ///< Outermost dimension first.
  std::uint64_t bytes = 0;                ///< In the file.
};

/// A token with a meaning of its own.
struct SpecialToken {
  TokenId id = 0;         ///< Its id.
  std::string text = {};  ///< As the file writes it.
};

/// What is in a model file. Parts that could not be read are left as they are here, and `problems`
/// says why.
struct ModelReport {
  std::string format = {};                 ///< "GGUF" or "Hugging Face".
  std::string name = {};                   ///< As the file calls it; may be empty.
  std::string architecture = {};           ///< "llama", "qwen2".
  std::size_t context = 0;                 ///< Tokens that it was trained for.
  std::size_t layers = 0;                  ///< Blocks of attention and feed-forward network.
  std::size_t width = 0;                   ///< Of the residual stream.
  std::size_t heads = 0;                   ///< Of queries.
  std::size_t kv_heads = 0;                ///< Of keys and values.
  std::size_t head_dim = 0;                ///< Values of a head.
  std::size_t vocabulary = 0;              ///< Rows of the embedding.
  std::uint64_t parameters = 0;            ///< Elements of all tensors.
  std::vector<TensorReport> tensors = {};  ///< By name.
  std::string converted = {};              ///< As ModelInfo::converted.

  std::string tokenizer = {};           ///< Its kind, as the file names it.
  bool adds_bos = false;                ///< Raw texts get a BOS in front.
  std::vector<SpecialToken> bos = {};   ///< One, or none.
  std::vector<SpecialToken> ends = {};  ///< That end a generated text.
  bool has_chat_template = false;       ///< The files hold one.
  std::string chat_format = {};         ///< As ModelInfo::chat_format; empty: not recognised.
  SamplingDefaults sampling = {};       ///< What the files recommend.

  std::size_t kv_bytes_per_token_f32 = 0;   ///< K and V of one token, as KvType::kF32.
  std::size_t kv_bytes_per_token_16 = 0;    ///< As kF16 or kBF16.
  std::size_t kv_bytes_per_token_int8 = 0;  ///< As kInt8.

  /// Why an Engine would refuse the model, or messages; each a sentence. Empty: it runs.
  std::vector<std::string> problems = {};
};

/// Reads what is in a GGUF file or a Hugging Face directory, but not the weights. Never throws for
/// what the files hold: see ModelReport::problems. Throws Error{kModelUnreadable} where there is no
/// such file. Thread-safe. Cost: reading the header, and the tokenizer's vocabulary.
INCIPIT_API ModelReport inspect_model(const std::filesystem::path& path);

}  // namespace incipit::inline v0

#endif  // INCIPIT_INSPECT_H_
