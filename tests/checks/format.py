#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where clang-format would change a file; skips (code 77) without clang-format 14.

Usage: format.py ROOT
"""

import concurrent.futures
import pathlib
import re
import shutil
import sys

from report import cxx_files, finish, output_of

SKIPPED = 77
VERSION = "14"  # others format a few constructs differently


def find_clang_format() -> str | None:
    for name in (f"clang-format-{VERSION}", "clang-format"):
        program = shutil.which(name)
        if program and re.search(rf"version {VERSION}\.", output_of(program, "--version")):
            return program
    return None


def main(root: pathlib.Path) -> None:
    program = find_clang_format()
    if program is None:
        print(f"skipped: clang-format {VERSION} is not installed")
        sys.exit(SKIPPED)

    def differs(path: pathlib.Path) -> bool:
        # Not --dry-run, which reports comments of `namespace incipit::inline v0` without reason.
        return output_of(program, str(path)) != path.read_text()

    files = cxx_files(root)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        different = pool.map(differs, files)
        finish([f"{path.relative_to(root)}: please run clang-format -i"
                for path, differs_now in zip(files, different) if differs_now])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
