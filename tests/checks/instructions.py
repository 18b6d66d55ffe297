#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where a function for every x86-64 CPU holds instructions that not every one has.

AVX may only be found in functions of the namespaces `avx2` and `avx512`, which run after a look at
what the CPU can do.

Usage: instructions.py OBJDUMP STATIC_LIBRARY
"""

import re
import subprocess
import sys

from report import finish

FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
INSTRUCTION = re.compile(r"^\s+[0-9a-f]+:\t(?:(?:lock|rep|repz|repnz|bnd|notrack|data16) )*(\w+)(.*)")
# All mnemonics of AVX and later vector extensions begin with v; the few older ones that do too:
OLDER = {"verr", "verw", "vmcall", "vmmcall", "vmfunc"}
WIDE_REGISTER = re.compile(r"%[yz]mm\d|%k[0-7]\b")
DISPATCHED = re.compile(r"\bavx(2|512)::")


def check(lines) -> list[str]:
    findings, function, wide = {}, "?", 0
    for line in lines:
        if named := FUNCTION.match(line):
            function = named.group(1)
        elif found := INSTRUCTION.match(line):
            mnemonic, operands = found.groups()
            is_wide = mnemonic.startswith("v") and mnemonic not in OLDER
            if not is_wide and not WIDE_REGISTER.search(operands):
                continue
            wide += 1
            if not DISPATCHED.search(function):
                findings.setdefault(function, line.strip())
    return [f"{name}: {example}" for name, example in findings.items()]


def main(objdump: str, library: str) -> None:
    command = [objdump, "-d", "-C", "--no-show-raw-insn", library]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        findings = check(process.stdout)
    if process.returncode != 0:
        findings.append(f"{objdump} failed")
    finish(findings)


if __name__ == "__main__":
    main(*sys.argv[1:])
