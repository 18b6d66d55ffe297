#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where a source file is too long, or lacks its licence line or include guard.

Usage: sources.py ROOT
"""

import pathlib
import re
import sys

from report import SOURCE_FOLDERS, finish

MAX_LINES = 500
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake"}
LICENSE_LINE = "SPDX-License-Identifier: Apache-2.0"
CXX = {".h", ".cpp", ".cu", ".cuh"}


def guard_of(path: pathlib.PurePath) -> str:
    """INCIPIT_KV_BLOCK_POOL_H_ for lib/kv/block_pool.h."""
    parts = list(path.parts)
    if parts[0] in ("lib", "include"):
        parts = parts[1:]
    if parts[0] == "incipit":
        parts = parts[1:]
    return re.sub(r"\W", "_", "INCIPIT_" + "/".join(parts)).upper() + "_"


def check_file(path: pathlib.PurePath, text: str) -> list[str]:
    findings, lines = [], text.splitlines()
    if len(lines) > MAX_LINES:
        findings.append(f"{path}: {len(lines)} lines; cut it in two ideas ({MAX_LINES} at most)")
    if path.suffix in CXX and (not lines or lines[0] != f"// {LICENSE_LINE}"):
        findings.append(f"{path}: the first line must be `// {LICENSE_LINE}`")
    if path.suffix in {".py", ".sh"} and LICENSE_LINE not in "\n".join(lines[:2]):
        findings.append(f"{path}: `# {LICENSE_LINE}` is missing at the top")
    # A file *.inl.h is a piece of its includer and may be included twice.
    if path.suffix in {".h", ".cuh"} and not path.name.endswith(".inl.h"):
        guard = guard_of(path)
        if f"#ifndef {guard}\n#define {guard}\n" not in text:
            findings.append(f"{path}: include guard {guard} is missing")
    if any(line != line.rstrip() for line in lines):
        findings.append(f"{path}: white space at the end of a line")
    if text and not text.endswith("\n"):
        findings.append(f"{path}: no newline at the end")
    return findings


def check(root: pathlib.Path) -> list[str]:
    findings = []
    for folder in (*SOURCE_FOLDERS, "cmake"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES or path.name == "CMakeLists.txt":
                findings += check_file(pathlib.PurePath(path.relative_to(root)), path.read_text())
    return findings


if __name__ == "__main__":
    finish(check(pathlib.Path(sys.argv[1])))
