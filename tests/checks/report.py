# SPDX-License-Identifier: Apache-2.0
"""What all checks share: the files of the tree, tools, and how a finding is reported."""

import pathlib
import subprocess
import sys

SOURCE_FOLDERS = ("include", "lib", "cuda", "examples", "tests", "benchmarks")
CXX_SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}


def cxx_files(root: pathlib.Path) -> list[pathlib.Path]:
    return sorted(
        path
        for folder in SOURCE_FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in CXX_SUFFIXES
    )


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def finish(findings: list[str]) -> None:
    """Prints one line per finding; the exit code says whether there are any."""
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)
