#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where code in README.md or docs/ is not that of the file it is said to come from.

A line `<!-- FILE -->` in front of a fenced code block says that the block is that file without its
licence line. README.md must hold examples/readme.cpp.

Usage: snippets.py ROOT
"""

import pathlib
import re
import sys

from report import finish

SNIPPET = re.compile(r"^<!-- (\S+) -->\n+```[^\n]*\n(.*?)^```$", re.M | re.S)
LICENSE_LINE = re.compile(r"^(//|#) SPDX-License-Identifier: [^\n]*\n\n?")
REQUIRED = {"README.md": "examples/readme.cpp"}


def check(root: pathlib.Path) -> list[str]:
    findings = []
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        name = str(page.relative_to(root))
        if not page.is_file():
            findings.append(f"{name} is missing")
            continue
        shown = SNIPPET.findall(page.read_text())
        for file, code in shown:
            if not (root / file).is_file():
                findings.append(f"{name}: {file} does not exist")
            elif code != LICENSE_LINE.sub("", (root / file).read_text(), count=1):
                findings.append(f"{name}: the code of {file} differs from the file")
        if REQUIRED.get(name, "") not in ["", *(file for file, _ in shown)]:
            findings.append(f"{name}: the code of {REQUIRED[name]} is missing")
    return findings


if __name__ == "__main__":
    finish(check(pathlib.Path(sys.argv[1])))
