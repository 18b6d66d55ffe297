#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants a bug in a copy of a kernel and shows that the kernel's test finds it.

Usage: run.py --root ROOT --work FOLDER --name MUTATION -- COMPILER ARGUMENT...

The arguments are those that make a program of a test's source. Succeeds if the program with the bug
compiles and fails.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

from planted import MUTATIONS

TIMEOUT_S = 120


def plant(root: pathlib.Path, work: pathlib.Path, mutation) -> None:
    """Writes the file with the bug to its place below `work`."""
    text = (root / mutation.file).read_text()
    if text.count(mutation.old) != 1:
        sys.exit(f"{mutation.file} holds {mutation.old!r} {text.count(mutation.old)} times, not once: "
                 "adapt planted.py to the kernel")
    copy = work / mutation.file
    copy.parent.mkdir(parents=True)
    copy.write_text(text.replace(mutation.old, mutation.new))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    mutation = MUTATIONS[arguments.name]
    work = arguments.work / arguments.name
    shutil.rmtree(work, ignore_errors=True)
    plant(arguments.root, work, mutation)
    program = work / "mutant"
    # The copy is found before the original.
    compiler, *rest = arguments.command
    sources = [str(arguments.root / source) for source in (mutation.test, *mutation.also)]
    subprocess.run([compiler, f"-I{work}", f"-I{work}/tests", *sources, *rest, "-o", str(program)],
                   check=True)
    try:
        result = subprocess.run([program, *filter(None, [mutation.cases])], capture_output=True,
                                text=True, errors="replace", timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        print(f"{arguments.name}: found, as it never ends")
        return
    if result.returncode == 0:
        sys.exit(f"{arguments.name}: nobody noticed the bug in {mutation.file}")
    print(f"{arguments.name}: found\n{result.stdout[-2000:]}{result.stderr[-2000:]}")


if __name__ == "__main__":
    main()
