# SPDX-License-Identifier: Apache-2.0
"""Runs the standard workload on llama.cpp's own benchmarks.

They make up their tokens, and neither sample nor detokenise: what is left out is in their favour.
"""

import json
import pathlib
import statistics
import subprocess

REPEAT = 3
DEPTH = 4096  # tokens that stand for the document
CONTEXT = 8192  # for the document and 16 samples


def output_of(*command: object) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def seconds_of(rows: str) -> dict[tuple[int, int], float]:
    """Median seconds by (prompt tokens, generated tokens), from llama-bench's JSON."""
    return {
        (row["n_prompt"], row["n_gen"]): 1e-9 * statistics.median(row["samples_ns"])
        for row in json.loads(rows)
    }


def decode_speed(lines: str) -> float:
    """Tokens per second of all samples, from the last line of llama-batched-bench's JSON lines."""
    rows = [line for line in lines.splitlines() if line.startswith("{")]
    return json.loads(rows[-1])["speed_tg"]


def measure(
    programs: pathlib.Path, model: pathlib.Path, threads: int, more: list[str]
) -> dict[str, float]:
    """Figures by key; `more` are options that the programs have in common."""
    common = ("-m", model, "-t", threads)

    def run_bench(*options: object) -> dict[tuple[int, int], float]:
        command = (programs / "llama-bench", *common, "-r", REPEAT, "-o", "json", *more)
        return seconds_of(output_of(*command, *options))

    def run_batched(samples: int) -> float:
        command = (programs / "llama-batched-bench", *common, "-c", CONTEXT, "-b", 2048)
        shared_prefix = ("-ub", 512, "-npp", DEPTH, "-ntg", 64, "-npl", samples, "-pps", "-kvu")
        return decode_speed(
            output_of(*command, *shared_prefix, "--output-format", "jsonl", *more)
        )

    short = run_bench("-p", f"512,{DEPTH}", "-n", 128)
    deep = run_bench("-p", "64,16", "-n", 64, "-d", DEPTH)
    return {
        "prefill_512_tok_s": 512 / short[512, 0],
        "prefill_4096_s": short[DEPTH, 0],
        "ttft_64_ms": 1e3 * deep[64, 0],
        "ttft_16_ms": 1e3 * deep[16, 0],
        "decode_1_tok_s": 128 / short[0, 128],
        "decode_1_at_4096": 64 / deep[0, 64],
        "decode_8_at_4096": run_batched(8),
        "decode_16_at_4096": run_batched(16),
    }
