#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the machine code of the CUDA kernels to what it was written for.

Usage: check_kernels.py NVCC ROOT ARCHITECTURE

Compiles what launches kernels for one architecture, say 80 or 90a, and compares each kernel with budgets.json:
no spills, no local memory, no more registers than allowed, at least so many instructions of a kind.
A budget's name may be followed by a part of the mangled name: then it is for those kernels only. A
budget `only` for an architecture is of a kernel that no other one has. Each
kernel may come from one source only, as it would be in the library twice.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import sass

ENTRY = re.compile(r"Compiling entry function '(\w+)' for")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")
# Instructions that a kernel must not have: they are slow, and no source of ours asks for them.
FORBIDDEN = ("LDL", "STL")
# What ptxas says where it does not let products of warpgroups run beside anything else.
SERIALIZED = re.compile(r"wgmma.mma_async instructions are serialized.*'(\w+)'")
DEFINITIONS = {"90a": ("-DINCIPIT_CUDA_SM_90A",)}  # as the library has it
SOURCES = ("cuda/cuda_device.cpp", "cuda/launch/*.cpp", "cuda/launch/*.cu")


def compile_for(nvcc: str, root: pathlib.Path, source: pathlib.Path, architecture: str,
                cubin: pathlib.Path) -> str:
    """Makes the cubin; returns what ptxas tells of it."""
    command = [nvcc, "-x", "cu", "-std=c++20", "--diag-suppress=554", "--fmad=false",
               f"-arch=sm_{architecture}", *DEFINITIONS.get(architecture, ()), "-cubin", "-Xptxas=-v", f"-I{root}", f"-I{root}/lib",
               f"-I{root}/include", str(source), "-o", str(cubin)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{result.stderr}")
    return result.stderr


def facts_of(report: str) -> dict[str, dict[str, int]]:
    """Registers and bytes of local memory of each kernel in a report of ptxas -v."""
    facts: dict[str, dict[str, int]] = {}
    current: dict[str, int] = {}
    for line in report.splitlines():
        if match := ENTRY.search(line):
            current = facts.setdefault(match[1], {})
        elif match := SPILLS.search(line):
            current["local"] = sum(map(int, match.groups()))
        elif match := REGISTERS.search(line):
            current["registers"] = int(match[1])
    return facts


def short_name(mangled: str) -> str:
    """rms_norm_kernel of _ZN7incipit4cuda15rms_norm_kernelIf...: the last of the nested names."""
    name, rest = mangled, mangled.removeprefix("_ZN")
    while match := re.match(r"\d+", rest):
        end = match.end() + int(match[0])
        name, rest = rest[match.end() : end], rest[end:]
    return name


def budget_of(mangled: str, budgets: dict) -> str:
    """The name of a kernel's budget: that of its instance before that of its template."""
    name = short_name(mangled)
    for key in budgets:
        if key.startswith(f"{name} ") and key.split(" ")[1] in mangled:
            return key
    return name


def check_kernel(mangled: str, fact: dict[str, int], counts, budget, architecture: int) -> list[str]:
    findings = []
    if budget is None:
        return [f"{mangled}: budgets.json has no entry {short_name(mangled)}"]
    if fact["local"] > 0:
        findings.append(f"{mangled}: {fact['local']} bytes of local memory or spills")
    if fact["registers"] > budget["registers"]:
        findings.append(f"{mangled}: {fact['registers']} registers, allowed {budget['registers']}")
    if fact["registers"] < budget.get("registers_least", 0):
        findings.append(f"{mangled}: {fact['registers']} registers, which it hands out as "
                        f"{budget['registers_least']}: it would wait for the rest for ever")
    for name in FORBIDDEN:
        if counts[name] > 0:
            findings.append(f"{mangled}: {counts[name]} x {name}")
    least_of = budget.get("least", {})
    if architecture < 80 and "BF16" in mangled and "HMMA" in least_of:
        least_of = {}  # there are no such products: the kernel only traps
    for name, least in least_of.items():
        if counts[name] < least:
            findings.append(f"{mangled}: {counts[name]} x {name}, expected {least} at least")
    return findings


def main(nvcc: str, root: pathlib.Path, architecture: str) -> None:
    budgets = json.loads((pathlib.Path(__file__).parent / "budgets.json").read_text())
    findings, seen, source_of = [], set(), {}
    sources = [path for pattern in SOURCES for path in sorted(root.glob(pattern))]
    with tempfile.TemporaryDirectory() as folder:
        for source in sources:
            cubin = pathlib.Path(folder) / f"{source.name}.cubin"
            report = compile_for(nvcc, root, source, architecture, cubin)
            facts = facts_of(report)
            findings += [f"{name}: products of warpgroups are serialized"
                         for name in SERIALIZED.findall(report)]
            for mangled, counts in sass.kernels(cubin).items():
                name = budget_of(mangled, budgets)
                seen.add(name)
                print(f"{source.name} {name}: {facts[mangled]['registers']} registers, "
                      f"{dict(sorted(counts.items()))}")
                findings += check_kernel(mangled, facts[mangled], counts, budgets.get(name),
                                         int(architecture.rstrip("a")))
                if source_of.setdefault(mangled, source) != source:
                    findings.append(f"{mangled}: in {source_of[mangled].name} and {source.name}")
    wanted = {name for name, budget in budgets.items()
              if budget.get("only", architecture) == architecture}
    findings += [f"budgets.json: there is no kernel {name}" for name in sorted(wanted - seen)]
    for finding in findings:
        print(f"sm_{architecture}: {finding}")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3])
