#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares how long a prompt of 4,096 tokens takes to come back from the page cache.

incipit restores it from a folder into a new engine: keys compared, checksums checked. llama.cpp
loads its state file into a new context, unchecked. Both run by turns, so that a machine whose speed
changes changes it for both; the ratio of each pair counts.

llama.cpp is the one that `compare_peers.py --setup --venv FOLDER` has built.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from peers import install

ROOT = pathlib.Path(__file__).resolve().parent.parent


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--venv", type=pathlib.Path, required=True, help="folder of the peers")
    add("--model", type=pathlib.Path, required=True, help="GGUF file")
    add("--threads", type=int, default=2, help="of each program (default: 2)")
    add("--rounds", type=int, default=15, help="pairs (default: 15)")
    add(
        "--realtime",
        action="store_true",
        help="run both by `chrt -r 10`, so that what else the machine does hardly counts",
    )
    add("--json", type=pathlib.Path, help="write all figures to this file")
    add(
        "--program",
        type=pathlib.Path,
        default=ROOT / "build" / "release" / "benchmarks" / "cache_restore",
        help="cache_restore (default: the release preset's)",
    )
    return parser.parse_args(arguments)


def build_peer(venv: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Compiles the peer's half against the libraries that --setup has built."""
    source, libraries = install.llama_source(venv), install.llama_programs(venv, "auto")
    program = folder / "llama_state"
    includes = [f"-I{source / part / 'include'}" for part in ("", "ggml")]
    words = ["c++", "-std=c++20", "-O2", *includes]
    words += [str(ROOT / "benchmarks" / "peers" / "llama_state.cpp"), "-o", str(program)]
    words += [f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lllama", "-lggml", "-lggml-base"]
    subprocess.run(words, check=True)
    return program


def run_once(*command: object) -> dict:
    """What one call measured once. Where the machine is so busy that incipit rather computes, the
    call fails, and is made again."""
    words = [str(word) for word in command]
    for last in (False, False, True):
        run = subprocess.run(words, check=last, stdout=subprocess.PIPE, text=True)
        if run.returncode == 0:
            break
    figures = json.loads(run.stdout)
    return {"load_ms": figures["load_ms"][0], "cpu_ms": figures["cpu_ms"][0]}


def measure(options: argparse.Namespace, folder: pathlib.Path) -> list[dict]:
    peer = build_peer(options.venv, folder)
    ours = [options.program, "--model", options.model, "--folder", folder / "cache"]
    ours += ["--threads", options.threads, "--repeat", 1]
    theirs = [peer, options.model, folder / "state", options.threads, 1]
    if options.realtime:
        ours, theirs = ["chrt", "-r", 10, *ours], ["chrt", "-r", 10, *theirs]
    for command in (ours, theirs):  # the files come into being, and into the page cache
        run_once(*command)
    pairs = []
    for number in range(1, options.rounds + 1):
        pair = {
            "incipit": run_once(*ours),
            "llama.cpp": run_once(*theirs),
            "load_average": os.getloadavg()[0],
        }
        print(f"{number}: {json.dumps(pair)}", file=sys.stderr)
        pairs.append(pair)
    return pairs


def summarize(pairs: list[dict]) -> dict:
    def median(of) -> float:
        return statistics.median(of(pair) for pair in pairs)

    document = {
        name: {key: median(lambda pair: pair[name][key]) for key in ("load_ms", "cpu_ms")}
        for name in ("incipit", "llama.cpp")
    }
    document["ratio"] = median(lambda pair: pair["incipit"]["load_ms"] / pair["llama.cpp"]["load_ms"])
    document["load_average"] = median(lambda pair: pair["load_average"])
    document["pairs"] = pairs
    return document


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    with tempfile.TemporaryDirectory() as folder:
        document = summarize(measure(options, pathlib.Path(folder)))
    for name in ("incipit", "llama.cpp"):
        row = document[name]
        print(f"{name:10} {row['load_ms']:6.1f} ms, processor time {row['cpu_ms']:6.1f} ms")
    print(
        f"incipit takes {document['ratio']:.2f} times as long (median of {len(document['pairs'])} "
        f"pairs, load average {document['load_average']:.1f})"
    )
    if options.json:
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
