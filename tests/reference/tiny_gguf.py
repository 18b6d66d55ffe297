# SPDX-License-Identifier: Apache-2.0
"""GGUF files of tiny models, with the names and the order of rows that llama.cpp's converter gives
them, and the other way round for a real file."""

import json
import re

import gguf
import numpy

# Hugging Face's name of a tensor, behind "layers.N." where it is of a layer, and GGUF's.
LLAMA = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
         "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
         "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down"}
GEMMA = {**LLAMA, "post_attention_layernorm": "post_attention_norm",
         "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm"}
GPT2 = {"transformer.wte": "token_embd", "transformer.wpe": "position_embd",
        "transformer.ln_f": "output_norm", "lm_head": "output", "ln_1": "attn_norm",
        "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output",
        "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
BLOOM = {"transformer.word_embeddings": "token_embd", "lm_head": "output",
         "transformer.word_embeddings_layernorm": "token_embd_norm",
         "transformer.ln_f": "output_norm", "input_layernorm": "attn_norm",
         "post_attention_layernorm": "ffn_norm", "self_attention.query_key_value": "attn_qkv",
         "self_attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up",
         "mlp.dense_4h_to_h": "ffn_down"}


def gguf_name(name, names):
    stem, kind = name.rsplit(".", 1)
    layer = re.match(r"(?:model\.layers|transformer\.h)\.(\d+)\.(.+)", stem)
    if layer is None:
        return f"{names[stem]}.{kind}"
    return f"blk.{layer[1]}.{names[layer[2]]}.{kind}"


def neighbours(rows, heads):
    """The pairs of RoPE, half a head apart, become neighbours."""
    return rows.reshape(heads, 2, -1, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def write(model, directory, out):
    """A GGUF file of a model of the families that have one and that the tests have no other for."""
    config, kind = model.config, model.config.model_type
    if kind not in ("mistral", "gemma3_text", "gpt2", "bloom"):
        return
    names = {"mistral": LLAMA, "gemma3_text": GEMMA, "gpt2": GPT2, "bloom": BLOOM}[kind]
    arch = {"mistral": "llama", "gemma3_text": "gemma3"}.get(kind, kind)
    out.mkdir(exist_ok=True)
    file = gguf.GGUFWriter(out / "model.gguf", arch)
    file.add_name(directory.name)
    file.add_block_count(config.num_hidden_layers)
    file.add_embedding_length(config.hidden_size)
    file.add_head_count(config.num_attention_heads)
    if kind in ("gpt2", "bloom"):
        file.add_context_length(config.n_positions if kind == "gpt2" else config.seq_length)
        file.add_feed_forward_length(4 * config.hidden_size)
        file.add_layer_norm_eps(config.layer_norm_epsilon)
    else:
        file.add_context_length(config.max_position_embeddings)
        file.add_feed_forward_length(config.intermediate_size)
        file.add_head_count_kv(config.num_key_value_heads)
        file.add_key_length(config.head_dim)
        file.add_value_length(config.head_dim)
        file.add_layer_norm_rms_eps(config.rms_norm_eps)
        file.add_sliding_window(config.sliding_window)
        ropes = config.rope_parameters
        file.add_rope_freq_base(ropes.get("full_attention", ropes)["rope_theta"])
    if kind == "gemma3_text":
        file.add_uint32("gemma3.attention.sliding_window_pattern", 2)
        file.add_float32("gemma3.attention.scale", config.query_pre_attn_scalar**-0.5)
        file.add_float32("gemma3.final_logit_softcapping", config.final_logit_softcapping)
        file.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        file.add_rope_scaling_factor(config.rope_parameters["full_attention"]["factor"])
    add_tokenizer(file, directory)
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        file.add_tensor(gguf_name(name, names), rows_of(name, weight.numpy(), config))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def rows_of(name, weight, config):
    kind = config.model_type
    if kind == "gemma3_text" and "norm" in name:
        weight = 1 + weight
    if kind == "gpt2" and ".c_" in name and weight.ndim == 2:
        weight = weight.T
    if kind == "mistral" and name.endswith("q_proj.weight"):
        weight = neighbours(weight, config.num_attention_heads)
    if kind == "mistral" and name.endswith("k_proj.weight"):
        weight = neighbours(weight, config.num_key_value_heads)
    if "query_key_value" in name:
        parts = weight.reshape(config.num_attention_heads, 3, -1, *weight.shape[1:])
        weight = parts.swapaxes(0, 1).reshape(weight.shape)
    return numpy.ascontiguousarray(weight)


def add_tokenizer(file, directory):
    tokenizer = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
    tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    special = {token["content"] for token in tokenizer["added_tokens"]}
    kinds = [gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL
             for token in tokens]
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("gpt-2")
    file.add_token_list(tokens)
    file.add_token_types(kinds)
    file.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    file.add_bos_token_id(0)
    file.add_eos_token_id(1)
    file.add_add_bos_token(False)


def check_gemma(model, path):
    """Compares each weight with the gguf package's own dequantisation, bit for bit."""
    weights = {gguf_name(name, GEMMA): (name, weight.numpy())
               for name, weight in model.state_dict().items()}
    weights.pop("output.weight")
    for tensor in gguf.GGUFReader(path).tensors:
        name, weight = weights.pop(tensor.name)
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(weight.shape)
        if "norm" in name:
            values = values - 1
        if not numpy.array_equal(values, weight):
            raise SystemExit(f"transformers and gguf disagree about {tensor.name}")
    if weights:
        raise SystemExit(f"not in the file: {sorted(weights)}")
