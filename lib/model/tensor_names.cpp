// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_names.h"

namespace incipit::model {

constexpr TensorNames kGgufNames = {
    .embedding = "token_embd",
    .output = "output",
    .final_norm = "output_norm",
    .layer = "blk.",
    .attention_norm = "attn_norm",
    .after_attention_norm = "post_attention_norm",
    .ffn_norm = "ffn_norm",
    .after_ffn_norm = "post_ffw_norm",
    .q = "attn_q",
    .k = "attn_k",
    .v = "attn_v",
    .q_norm = "attn_q_norm",
    .k_norm = "attn_k_norm",
    .attention_output = "attn_output",
    .gate = "ffn_gate",
    .up = "ffn_up",
    .down = "ffn_down",
    .ignored = {".attn_rot_embd.weight", "rope_freqs.weight"},
};

constexpr TensorNames kGgufFusedNames = {
    .embedding = "token_embd",
    .output = "output",
    .positions = "position_embd",
    .embedding_norm = "token_embd_norm",
    .final_norm = "output_norm",
    .layer = "blk.",
    .attention_norm = "attn_norm",
    .ffn_norm = "ffn_norm",
    .qkv = "attn_qkv",
    .attention_output = "attn_output",
    .up = "ffn_up",
    .down = "ffn_down",
    .fused = FusedQkv::kStacked,
};

constexpr TensorNames kLlamaNames = {
    .embedding = "model.embed_tokens",
    .output = "lm_head",
    .final_norm = "model.norm",
    .layer = "model.layers.",
    .attention_norm = "input_layernorm",
    .ffn_norm = "post_attention_layernorm",
    .q = "self_attn.q_proj",
    .k = "self_attn.k_proj",
    .v = "self_attn.v_proj",
    .q_norm = "self_attn.q_norm",
    .k_norm = "self_attn.k_norm",
    .attention_output = "self_attn.o_proj",
    .gate = "mlp.gate_proj",
    .up = "mlp.up_proj",
    .down = "mlp.down_proj",
    .ignored = {"rotary_emb.inv_freq", ""},
};

constexpr TensorNames kGemma3Names = {
    .embedding = "model.embed_tokens",
    .output = "lm_head",
    .final_norm = "model.norm",
    .layer = "model.layers.",
    .attention_norm = "input_layernorm",
    .after_attention_norm = "post_attention_layernorm",
    .ffn_norm = "pre_feedforward_layernorm",
    .after_ffn_norm = "post_feedforward_layernorm",
    .q = "self_attn.q_proj",
    .k = "self_attn.k_proj",
    .v = "self_attn.v_proj",
    .q_norm = "self_attn.q_norm",
    .k_norm = "self_attn.k_norm",
    .attention_output = "self_attn.o_proj",
    .gate = "mlp.gate_proj",
    .up = "mlp.up_proj",
    .down = "mlp.down_proj",
    .norms_from_one = true,
};

constexpr TensorNames kGpt2Names = {
    .prefix = "transformer.",
    .embedding = "wte",
    .output = "lm_head",
    .positions = "wpe",
    .final_norm = "ln_f",
    .layer = "h.",
    .attention_norm = "ln_1",
    .ffn_norm = "ln_2",
    .qkv = "attn.c_attn",
    .attention_output = "attn.c_proj",
    .up = "mlp.c_fc",
    .down = "mlp.c_proj",
    .fused = FusedQkv::kStacked,
    .transposed = true,
    .ignored = {".attn.bias", ".attn.masked_bias"},  // the causal mask
};

constexpr TensorNames kOptNames = {
    .prefix = "model.",
    .embedding = "decoder.embed_tokens",
    .output = "lm_head",
    .positions = "decoder.embed_positions",
    .final_norm = "decoder.final_layer_norm",
    .project_in = "decoder.project_in",
    .project_out = "decoder.project_out",
    .layer = "decoder.layers.",
    .attention_norm = "self_attn_layer_norm",
    .ffn_norm = "final_layer_norm",
    .q = "self_attn.q_proj",
    .k = "self_attn.k_proj",
    .v = "self_attn.v_proj",
    .attention_output = "self_attn.out_proj",
    .up = "fc1",
    .down = "fc2",
};

constexpr TensorNames kBloomNames = {
    .prefix = "transformer.",
    .embedding = "word_embeddings",
    .output = "lm_head",
    .embedding_norm = "word_embeddings_layernorm",
    .final_norm = "ln_f",
    .layer = "h.",
    .attention_norm = "input_layernorm",
    .ffn_norm = "post_attention_layernorm",
    .qkv = "self_attention.query_key_value",
    .attention_output = "self_attention.dense",
    .up = "mlp.dense_h_to_4h",
    .down = "mlp.dense_4h_to_h",
    .fused = FusedQkv::kPerHead,
};

}  // namespace incipit::model
