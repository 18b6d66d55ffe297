// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_TENSOR_NAMES_H_
#define INCIPIT_MODEL_TENSOR_NAMES_H_

#include <array>
#include <string_view>

namespace incipit::model {

/// How q, k and v lie in one tensor.
enum class FusedQkv {
  kNone,     // three tensors
  kStacked,  // all rows of q, then those of k, then those of v
  kPerHead,  // of each head its q, its k and its v
};

/// What a kind of file calls the tensors of a family; those of a layer stand behind `layer` and its
/// number. All but `output` may have `prefix` in front, or all may lack it. An empty name: the
/// family has no such tensor.
struct TensorNames {
  std::string_view prefix = {};
  std::string_view embedding, output;
  std::string_view positions = {};
  std::string_view embedding_norm = {}, final_norm;
  std::string_view project_in = {}, project_out = {};  // between embedding and width
  std::string_view layer;                              // "blk."
  std::string_view attention_norm, after_attention_norm = {}, ffn_norm, after_ffn_norm = {};
  std::string_view q = {}, k = {}, v = {}, qkv = {}, q_norm = {}, k_norm = {}, attention_output;
  std::string_view gate = {}, up, down;

  FusedQkv fused = FusedQkv::kNone;
  bool transposed = false;                       // matrices of layers are [inputs, outputs]
  bool norms_from_one = false;                   // a norm's weight is 1 plus what the file holds
  std::array<std::string_view, 2> ignored = {};  // ends of names of tables that nothing needs
};

extern const TensorNames kGgufNames;       // q, k and v apart
extern const TensorNames kGgufFusedNames;  // GPT-2 and BLOOM
extern const TensorNames kLlamaNames;      // and the families that follow it
extern const TensorNames kGemma3Names;
extern const TensorNames kGpt2Names;
extern const TensorNames kOptNames;
extern const TensorNames kBloomNames;

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_TENSOR_NAMES_H_
