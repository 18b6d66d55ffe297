#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the fixtures that incipit's logits are compared with; README.md has format and reasons.

    pip install torch transformers accelerate gguf tokenizers
    make_fixtures.py --model SmolLM2-135M-Instruct.Q4_1.gguf --out tests/data/reference

Hugging Face transformers run in float64 on the dequantised weights of the GGUF files, and on tiny
random models of each family that are written next to the fixtures.
"""

import argparse
import copy
import json
import math
import pathlib
import struct

import gguf
import numpy
import tokenizers
import torch
import transformers

import tiny_gguf

CONTINUATION = 64  # greedy tokens behind each prompt
TOP = 8
# A prompt is refused where float noise could turn a greedy choice: its margin must be so many
# times the largest difference between float32 and float64 logits.
SAFE_MARGIN = 16

# Name, file in prompts/, first token, tokens (None: all); cut so that no greedy choice is close.
PROMPTS = [
    ("one", "english.txt", 0, 1),
    ("two", "chinese.txt", 0, 2),
    ("english-15", "english.txt", 20, 15),
    ("code-16", "code.txt", 0, 16),
    ("chinese-17", "chinese.txt", 8, 17),
    ("code-64", "code.txt", 5, 64),
    ("chat", "chat.txt", 0, None),
    ("english-255", "english.txt", 3, 255),
    ("chinese-256", "chinese.txt", 0, 256),
    ("code-257", "code.txt", 0, 257),
    ("manual", "manual.txt", 0, None),
]

# The same for Gemma 3; the last one is longer than its sliding window of 512 tokens.
GEMMA_PROMPTS = [
    ("one", "english.txt", 0, 1),
    ("chinese-33", "chinese.txt", 0, 33),
    ("manual-560", "manual.txt", 0, 560),
]

TINY_LENGTHS = [1, 17, 260]
TINY_WINDOW_LENGTHS = [1, 33, 300]  # of the families that came later; their windows have 32 tokens
TINY_VOCABULARY = 288


class DoubleNorm(torch.nn.Module):
    """RMSNorm without transformers' detour over float32."""

    def __init__(self, norm):
        super().__init__()
        gemma = type(norm).__name__.startswith("Gemma")
        self.weight = 1 + norm.weight if gemma else norm.weight
        self.epsilon = norm.eps if gemma else norm.variance_epsilon

    def forward(self, x):
        return self.weight * (x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon))


class DoubleRope(torch.nn.Module):
    """The model's frequencies, but angles, sines and cosines in float64."""

    def __init__(self, rope):
        super().__init__()
        self.frequencies = rope.inv_freq.double()
        self.scaling = rope.attention_scaling

    def forward(self, x, position_ids):
        angles = position_ids[..., None].double() * self.frequencies
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos() * self.scaling, angles.sin() * self.scaling


class DoubleRopes(torch.nn.Module):
    """The same for a model whose kinds of layers have frequencies of their own."""

    def __init__(self, rope):
        super().__init__()
        self.frequencies = {kind: getattr(rope, f"{kind}_inv_freq").double()
                            for kind in rope.layer_types}

    def forward(self, x, position_ids, layer_type):
        angles = position_ids[..., None].double() * self.frequencies[layer_type]
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()


def keep_softmax_in_double():
    """Some families ask for float32 whatever the scores are."""
    softmax = torch.nn.functional.softmax

    def keep(scores, dim=None, _stacklevel=3, dtype=None):
        return softmax(scores, dim=dim, dtype=None if scores.dtype == torch.float64 else dtype)

    torch.nn.functional.softmax = keep


def in_double(model):
    """A copy of the model that computes in float64 throughout."""
    rope = getattr(model.base_model, "rotary_emb", None)
    if rope is not None:
        rope = (DoubleRopes if hasattr(rope, "layer_types") else DoubleRope)(rope)
    model = copy.deepcopy(model).double()
    if rope is not None:
        model.model.rotary_emb = rope
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child).__name__.endswith("RMSNorm"):
                setattr(module, name, DoubleNorm(child))
    return model


def logits_of(model, ids):
    """[slice, vocabulary] for slices of positions: those of all need gigabytes in a large model."""
    if model.config.vocab_size < 100_000:
        output = model(torch.tensor([ids]), use_cache=False).logits[0]
        assert output.dtype == next(model.parameters()).dtype
        yield output.numpy()
        return
    assert getattr(model.config, "final_logit_softcapping", None) is None
    states = model.model(torch.tensor([ids]), use_cache=False).last_hidden_state[0]
    assert states.dtype == next(model.parameters()).dtype
    for first in range(0, len(ids), 64):
        yield model.lm_head(states[first : first + 64]).numpy()


def continue_greedily(model, ids):
    """The likeliest CONTINUATION tokens, whether or not one of them ends the text."""
    model.generation_config.eos_token_id = None
    tokens = torch.tensor([ids])
    made = model.generate(tokens, attention_mask=torch.ones_like(tokens), do_sample=False,
                          max_new_tokens=CONTINUATION, pad_token_id=0)[0, len(ids):].tolist()
    assert len(made) == CONTINUATION
    return made


class Fixture:
    """Cases of one model in the format of README.md."""

    def __init__(self, model, weights, fixed_ids):
        """`weights`: the file that the model was read from."""
        self.model = model
        self.double = in_double(model)
        self.weights = weights
        self.fixed_ids = fixed_ids
        self.noise = 0.0
        self.margin = math.inf
        self.cases = []

    def add(self, name, prompt):
        ids = prompt + continue_greedily(self.double, prompt)
        noise, rows = 0.0, []
        for single, double in zip(logits_of(self.model, ids[:-1]),
                                  logits_of(self.double, ids[:-1])):
            noise = max(noise, numpy.abs(single - double).max())
            rows += [self._row(row) for row in double]
        assert [row[1][0] for row in rows[len(prompt) - 1 :]] == ids[len(prompt) :]
        margins = [row[2][0] - row[2][1] for row in rows[len(prompt) - 1 :]]
        self.noise = max(self.noise, float(noise))
        self.margin = min(self.margin, *margins)
        self.cases.append((name, len(prompt), ids, rows))
        print(f"  {name}: {len(prompt)} tokens, float32 is off by {noise:.2e}, "
              f"smallest greedy margin {min(margins):.2e} at {int(numpy.argmin(margins))}",
              flush=True)

    def _row(self, row):
        top = numpy.argsort(-row, kind="stable")[:TOP]
        log_sum_exp = row.max() + math.log(numpy.exp(row - row.max()).sum())
        return log_sum_exp, top.tolist(), row[top].tolist(), row[self.fixed_ids].tolist()

    def write(self, path):
        if self.margin < SAFE_MARGIN * self.noise:
            raise SystemExit(f"{path}: a greedy margin of {self.margin:.2e} is too small for a "
                             f"noise of {self.noise:.2e}; choose another prompt")
        vocabulary = self.model.config.vocab_size
        out = [b"incipref", struct.pack("<IIII", 1, vocabulary, TOP, len(self.fixed_ids)),
               struct.pack("<fQ", self.noise, self.weights.stat().st_size),
               struct.pack(f"<{len(self.fixed_ids)}i", *self.fixed_ids),
               struct.pack("<I", len(self.cases))]
        for name, prompt, ids, rows in self.cases:
            encoded = name.encode()
            out += [struct.pack("<I", len(encoded)), encoded,
                    struct.pack("<II", prompt, len(ids)), struct.pack(f"<{len(ids)}i", *ids)]
            for log_sum_exp, top_ids, top, fixed in rows:
                out += [struct.pack("<f", log_sum_exp), struct.pack(f"<{TOP}i", *top_ids),
                        struct.pack(f"<{TOP + len(fixed)}f", *top, *fixed)]
        path.write_bytes(b"".join(out))
        print(f"{path.name}: {path.stat().st_size} bytes, float32 is off by {self.noise:.2e}, "
              f"smallest greedy margin {self.margin:.2e}")


def spread_ids(vocabulary, count):
    return [(2 * i + 1) * vocabulary // (2 * count) for i in range(count)]


def check_dequantised(model, path):
    """Compares each weight with the gguf package's own dequantisation, bit for bit."""
    weights = model.state_dict()
    config = model.config
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm",
             "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    checked = {"lm_head.weight"} if config.tie_word_embeddings else set()
    for tensor in gguf.GGUFReader(path).tensors:
        parts = tensor.name.split(".")
        name = f"{names[parts[-2]]}.weight"
        if parts[0] == "blk":
            name = f"model.layers.{parts[1]}.{name}"
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if parts[-2] in ("attn_q", "attn_k"):
            # Row 2i + j of a head in the file is row j * head_dim / 2 + i of the model.
            heads = config.num_attention_heads if parts[-2] == "attn_q" else \
                config.num_key_value_heads
            values = values.reshape(heads, -1, 2, values.shape[-1]).swapaxes(1, 2)
        values = values.reshape(weights[name].shape)
        if not numpy.array_equal(values, weights[name].numpy()):
            raise SystemExit(f"transformers and gguf disagree about {tensor.name}")
        checked.add(name)
    if checked != set(weights):
        raise SystemExit(f"not in the file: {sorted(set(weights) - checked)}")


def real_fixture(path, out):
    arguments = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(dtype=torch.float32, **arguments)
    check_dequantised(model.eval(), path)
    # transformers drop the digit splitting that the file's pre-tokeniser "smollm" stands for.
    encoder = transformers.AutoTokenizer.from_pretrained(**arguments).backend_tokenizer
    encoder.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Digits(individual_digits=True),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)])
    fixture = Fixture(model, path, spread_ids(model.config.vocab_size, 32))
    for name, file, first, count in PROMPTS:
        text = (out / "prompts" / file).read_text(encoding="utf-8")
        ids = encoder.encode(text).ids[first:][:count]
        if count is not None and len(ids) != count:
            raise SystemExit(f"{file} has no {count} tokens from {first} on")
        fixture.add(name, ids)
    fixture.write(out / "smollm2.bin")


def gemma_fixture(path, out):
    """Gemma 3 270M, from its GGUF file."""
    arguments = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(dtype=torch.float32, **arguments)
    tiny_gguf.check_gemma(model.eval(), path)
    encoder = transformers.AutoTokenizer.from_pretrained(**arguments)
    fixture = Fixture(model, path, spread_ids(model.config.vocab_size, 8))
    for name, file, first, count in GEMMA_PROMPTS:
        text = (out / "prompts" / file).read_text(encoding="utf-8")
        ids = encoder(text, add_special_tokens=False).input_ids[first:][: count - 1]
        if len(ids) != count - 1:
            raise SystemExit(f"{file} has no {count} tokens from {first} on")
        fixture.add(name, [model.config.bos_token_id] + ids)
    fixture.write(out / "gemma3.bin")


def tiny_configs():
    """Name, seed, data type and config: each family, LLaMA-3's RoPE, tied and untied, heads narrower and
    wider than width / heads."""
    shape = {"vocab_size": TINY_VOCABULARY, "hidden_size": 32, "intermediate_size": 64,
             "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "max_position_embeddings": 512, "bos_token_id": 0, "eos_token_id": 1}
    llama3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
              "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    plain = {"rope_type": "default", "rope_theta": 10000.0}
    yield "tiny-llama", 1, torch.float32, transformers.LlamaConfig(
        **shape, head_dim=16, rope_parameters=llama3, tie_word_embeddings=False)
    yield "tiny-qwen2", 1, torch.bfloat16, transformers.Qwen2Config(
        **shape, rope_parameters=plain, tie_word_embeddings=True)
    yield "tiny-qwen3", 1, torch.float16, transformers.Qwen3Config(
        **{**shape, "num_key_value_heads": 1}, head_dim=16, rope_parameters=plain,
        tie_word_embeddings=False)


def later_configs():
    """Likewise, of the families that came later: windows in all and in some layers, two bases of
    RoPE, learned positions, ALiBi of a number of heads that is no power of two, norms of each
    kind and at each place."""
    ends = {"vocab_size": TINY_VOCABULARY, "bos_token_id": 0, "eos_token_id": 1}
    shape = {**ends, "hidden_size": 32, "num_attention_heads": 4, "max_position_embeddings": 512}
    yield "tiny-mistral", 8, torch.float32, transformers.MistralConfig(
        **shape, intermediate_size=48, num_hidden_layers=2, num_key_value_heads=2, head_dim=16,
        sliding_window=32, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    yield "tiny-gemma3", 1, torch.float32, transformers.Gemma3TextConfig(
        **shape, intermediate_size=48, num_hidden_layers=3, num_key_value_heads=1, head_dim=16,
        sliding_window=32, query_pre_attn_scalar=24, final_logit_softcapping=8.0,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0}})
    yield "tiny-gpt2", 1, torch.float32, transformers.GPT2Config(
        **ends, n_embd=32, n_layer=2, n_head=4, n_positions=512)
    yield "tiny-opt", 1, torch.float32, transformers.OPTConfig(
        **shape, ffn_dim=64, num_hidden_layers=2)
    yield "tiny-opt-post", 1, torch.float32, transformers.OPTConfig(
        **shape, ffn_dim=64, num_hidden_layers=2, do_layer_norm_before=False,
        word_embed_proj_dim=16)
    yield "tiny-bloom", 1, torch.float32, transformers.BloomConfig(
        **ends, hidden_size=36, n_layer=2, n_head=6, seq_length=512)


def randomise(model, generator):
    """Weights that make each part of the model matter: sharp attention, uneven norms, biases."""
    gemma = model.config.model_type.startswith("gemma")
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        inputs = weight.shape[0] if ".c_" in name else weight.shape[-1]  # GPT-2's are transposed
        if "bias" in name:
            weight.data = 0.5 * noise
        elif "norm" in name or "ln_" in name:
            weight.data = (0 if gemma else 1) + 0.3 * noise
        elif any(part in name for part in ("embed", "wte", "wpe")):
            weight.data = 0.3 * noise
        elif any(part in name for part in ("q_proj", "k_proj", "c_attn", "query_key_value")):
            weight.data = 1.5 * noise / math.sqrt(inputs)
        else:
            weight.data = noise / math.sqrt(inputs)


def write_tokenizer(directory, config):
    """The 256 bytes, two special tokens and merges up to the vocabulary, none of which matters."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    special = ["<|endoftext|>", "<|im_end|>"]
    merges = [("Ġ", letter) for letter in alphabet if "a" <= letter <= "z"]
    merges += [("t", "h"), ("i", "n"), ("e", "r"), ("a", "n")]
    tokens = special + alphabet + [left + right for left, right in merges]
    assert len(tokens) == config.vocab_size
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(
        vocab={token: index for index, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(directory / "tokenizer.json"), pretty=False)
    (directory / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": special[0], "eos_token": special[1], "add_bos_token": False}))


def tiny_fixture(name, seed, dtype, config, out, lengths):
    directory = out / name
    generator = torch.Generator().manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    randomise(model, generator)
    model.tie_weights()
    model.to(dtype).save_pretrained(directory)
    write_tokenizer(directory, config)
    weights = directory / "model.safetensors"
    weights.chmod(0o644)
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    fixture = Fixture(model.eval(), weights, spread_ids(config.vocab_size, 8))
    for length in lengths:
        ids = torch.randint(config.vocab_size, (length,), generator=generator)
        fixture.add(f"{name}-{length}", ids.tolist())
    fixture.write(directory / "logits.bin")
    tiny_gguf.write(model, directory, out / f"{name}-gguf")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, help="the GGUF file of SmolLM2")
    parser.add_argument("--gemma", type=pathlib.Path, help="that of Gemma 3")
    parser.add_argument("--only", help="no other tiny model; an empty name: none")
    parser.add_argument("--out", type=pathlib.Path, required=True,
                        help="tests/data/reference; its prompts/ are read")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    transformers.utils.logging.disable_progress_bar()
    keep_softmax_in_double()
    for configs, lengths in (tiny_configs(), TINY_LENGTHS), (later_configs(), TINY_WINDOW_LENGTHS):
        for name, seed, dtype, config in configs:
            if arguments.only in (None, name):
                tiny_fixture(name, seed, dtype, config, arguments.out, lengths)
    if arguments.gemma is not None:
        gemma_fixture(arguments.gemma, arguments.out)
    if arguments.model is not None:
        real_fixture(arguments.model, arguments.out)


if __name__ == "__main__":
    main()
