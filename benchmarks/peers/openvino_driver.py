#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the standard workload on OpenVINO GenAI and prints its figures as JSON.

Usage: openvino_driver.py MODEL.gguf TEXTS.json THREADS [PROPERTY=VALUE ...]

TEXTS.json is what `incipit-bench texts` writes; PROPERTY=VALUE are properties of OpenVINO's CPU
plugin. Prefix caching is on, and sampling is that of incipit-bench.
"""

import json
import statistics
import sys
import time

import openvino_genai


class Pipeline:
    def __init__(self, model: str, threads: int, properties: dict[str, str]):
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.enable_prefix_caching = True
        scheduler.cache_size = 2  # GB
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(
            model, scheduler, "CPU", {"INFERENCE_NUM_THREADS": threads, **properties}
        )

    def tokens(self, text: str) -> int:
        tokenizer = self.pipeline.get_tokenizer()
        return tokenizer.encode(text, add_special_tokens=False).input_ids.shape[1]

    def seconds(self, text: str, samples: int, new_tokens: int) -> float:
        """How long it takes to make `samples` texts of exactly `new_tokens`."""
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = config.min_new_tokens = new_tokens
        config.ignore_eos = True
        config.apply_chat_template = False
        config.num_return_sequences = samples
        if samples > 1:
            config.do_sample = True
            config.temperature, config.top_p, config.rng_seed = 0.8, 0.95, 1
        begin = time.perf_counter()
        self.pipeline.generate([text], [config])
        return time.perf_counter() - begin

    def decode_speed(self, text: str, samples: int, new_tokens: int) -> float:
        """Tokens per second of all samples together, from their second token on."""
        self.seconds(text, 1, 1)
        first = self.seconds(text, 1, 1)
        return samples * (new_tokens - 1) / (self.seconds(text, samples, new_tokens) - first)


def measure(pipeline: Pipeline, texts: dict) -> dict[str, float]:
    """The calls of incipit-bench's `standard`, in its order."""

    def median(values) -> float:
        return statistics.median(list(values))

    document, questions = texts["document"], texts["long_questions"]
    pipeline.seconds(texts["warm_up"], 1, 4)
    figures = {}
    tokens = pipeline.tokens(texts["short_prompts"][0])
    figures["prefill_512_tok_s"] = median(
        tokens / pipeline.seconds(prompt, 1, 1) for prompt in texts["short_prompts"]
    )
    figures["prefill_4096_s"] = median(
        pipeline.seconds(opening + document + questions[0], 1, 1) for opening in texts["openings"]
    )
    pipeline.seconds(document + questions[0], 1, 1)
    figures["ttft_64_ms"] = median(
        1e3 * pipeline.seconds(document + question, 1, 1) for question in questions[1:]
    )
    figures["ttft_16_ms"] = median(
        1e3 * pipeline.seconds(document + question, 1, 1) for question in texts["short_questions"]
    )
    figures["decode_1_tok_s"] = median(
        pipeline.decode_speed(texts["story"], 1, 129) for _ in range(3)
    )
    for samples in (1, 8, 16):
        figures[f"decode_{samples}_at_4096"] = median(
            pipeline.decode_speed(document + question, samples, 64) for question in questions[:3]
        )
    return figures


def main(model: str, texts: str, threads: str, *properties: str) -> None:
    pipeline = Pipeline(model, int(threads), dict(word.split("=", 1) for word in properties))
    with open(texts, encoding="utf-8") as file:
        print(json.dumps(measure(pipeline, json.load(file))))


if __name__ == "__main__":
    main(*sys.argv[1:])
