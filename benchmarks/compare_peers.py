#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares incipit with other programs that run the same model file on the CPU.

All run the same workload (`incipit-bench standard`) one after the other, round by round, so that a
machine whose speed changes changes it for all of them; the medians of the rounds are compared. Run
`--setup` first: it installs the peers from the Python package index.
"""

import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

from peers import install, llama_cpp, report

ROOT = pathlib.Path(__file__).resolve().parent.parent
DRIVERS = ROOT / "benchmarks" / "peers"

# `default` is what a user gets who sets nothing but the threads. The others are where a peer is
# fastest: in some of the workload's parts the one, in some the other.
LLAMA_SETTINGS = {
    "default": [],
    "no flash attention, BF16 KV": ["-fa", "off", "-ctk", "bf16", "-ctv", "bf16"],
}
OPENVINO_SETTINGS = {
    "default": [],
    "BF16 KV": ["KV_CACHE_PRECISION=bf16", "INFERENCE_PRECISION_HINT=bf16"],
}
SETTINGS = {"llama.cpp": LLAMA_SETTINGS, "openvino": OPENVINO_SETTINGS}


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--setup", action="store_true", help="install the peers into --venv, and end")
    add("--venv", type=pathlib.Path, required=True, help="folder of the peers, outside the tree")
    add("--peers", nargs="+", choices=SETTINGS, default=list(SETTINGS), help="default: all")
    add("--model", type=pathlib.Path, help="GGUF file")
    add("--document", type=pathlib.Path, help="text of about 4,000 tokens")
    add("--threads", type=int, default=2, help="of each program (default: 2)")
    add("--rounds", type=int, default=3, help="(default: 3)")
    add("--json", type=pathlib.Path, help="write all figures to this file")
    add("--svg", type=pathlib.Path, help="draw the ratios into this file")
    add(
        "--bench",
        type=pathlib.Path,
        default=ROOT / "build" / "release" / "benchmarks" / "incipit-bench",
        help="incipit-bench (default: the release preset's)",
    )
    add("--bench-options", default="", help='more options of it, such as "--kv-type int8"')
    add(
        "--cpu-path",
        choices=("auto", "avx2"),
        default="auto",
        help="avx2: our kernels for machines without AVX-512, and llama.cpp built for those",
    )
    options = parser.parse_args(arguments)
    if not options.setup and not (options.model and options.document):
        parser.error("--model and --document are needed to measure")
    if options.rounds < 1 or options.threads < 1:
        parser.error("--rounds and --threads must be at least 1")
    if options.cpu_path == "avx2" and "openvino" in options.peers:
        parser.error("--cpu-path avx2 needs --peers llama.cpp: OpenVINO has one build for all")
    return options


def run_json(*command: object) -> dict:
    words = [str(word) for word in command]
    out = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)


def run_incipit(options: argparse.Namespace) -> dict:
    command = (options.bench, "standard", "--model", options.model)
    workload = ("--document", options.document, "--threads", options.threads, "--json", "-")
    path = ("--cpu-path", options.cpu_path)
    return run_json(*command, *workload, *path, *shlex.split(options.bench_options))


def run_peer(options: argparse.Namespace, peer: str, setting: str, texts: str) -> report.Figures:
    more = SETTINGS[peer][setting]
    if peer == "llama.cpp":
        programs = install.llama_programs(options.venv, options.cpu_path)
        return llama_cpp.measure(programs, options.model, options.threads, more)
    driver = (install.python_of(options.venv), "-B", DRIVERS / "openvino_driver.py")
    return run_json(*driver, options.model, texts, options.threads, *more)


def measure(options: argparse.Namespace) -> tuple[list[dict], dict[str, dict[str, list]]]:
    """Our documents, one per round, and the peers' figures by peer, setting and round."""
    ours = []
    theirs = {peer: {setting: [] for setting in SETTINGS[peer]} for peer in options.peers}
    with tempfile.TemporaryDirectory() as folder:
        texts = str(pathlib.Path(folder) / "texts.json")
        command = [options.bench, "texts", "--document", options.document, "--json", texts]
        subprocess.run([str(word) for word in command], check=True)
        for number in range(1, options.rounds + 1):
            print(f"round {number} of {options.rounds}: incipit", file=sys.stderr)
            ours.append(run_incipit(options))
            for peer, settings in theirs.items():
                for setting, runs in settings.items():
                    print(f"round {number}: {peer}, {setting}", file=sys.stderr)
                    runs.append(run_peer(options, peer, setting, texts))
    return ours, theirs


def summarize(options: argparse.Namespace, ours: list[dict], theirs: dict) -> dict:
    """The document that --json writes."""
    figures = report.medians(ours)
    columns = report.columns_of(
        {
            peer: {setting: report.medians(runs) for setting, runs in settings.items()}
            for peer, settings in theirs.items()
        }
    )
    return {
        "machine": ours[0]["machine"],
        "model": ours[0]["model"],
        "settings": ours[0]["settings"],
        "threads": options.threads,
        "rounds": options.rounds,
        "versions": install.versions(options.venv, options.peers),
        "incipit": figures,
        "peers": columns,
        "ratios": {name: report.ratios(figures, column) for name, column in columns.items()},
        "runs": {"incipit": [{key: run[key] for key in report.KEYS} for run in ours], **theirs},
    }


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    if options.setup:
        install.install(options.venv, options.peers, options.cpu_path)
        return
    ours, theirs = measure(options)
    document = summarize(options, ours, theirs)
    machine = document["machine"]
    print(
        f"{machine['cpu']}, {options.threads} threads, {options.model.name}, medians of "
        f"{options.rounds}; in brackets how many times as fast incipit is\n"
    )
    print(report.table(document["incipit"], document["peers"]))
    if options.json:
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if options.svg:
        title = f"How many times as fast incipit is: {options.model.name}, {machine['cpu']}"
        options.svg.write_text(
            report.chart(document["incipit"], document["peers"], title), encoding="utf-8"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
