#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where a file includes a module that its own module may not use.

Usage: layers.py ROOT
"""

import pathlib
import re
import sys

from report import cxx_files, finish

# Module: the modules that it may use besides itself and the public headers.
ALLOWED = {
    "base": set(),
    "tensor": {"base"},
    "text": {"base"},
    "store": {"base"},
    "device": {"base", "tensor"},
    "cpu": {"base", "tensor", "device"},
    "cuda": {"base", "tensor", "device"},
    "kv": {"base", "tensor", "device", "store"},
    "model": {"base", "tensor", "device", "text"},
    "engine": {"base", "tensor", "text", "store", "device", "cpu", "cuda", "kv", "model"},
    "retrieve": {"base", "text"},
    "compress": {"base", "text", "retrieve"},
    "sampler": {"base", "text"},
}
# The one file that may name a kind of device; everybody else knows only the seam.
DEVICE_KINDS = {"cpu", "cuda"}
NAMES_DEVICES = pathlib.PurePath("lib/engine/make_device.cpp")

# What of CUDA only some files may name: a pattern, who may, and why.
CUDA_RULES = [
    (re.compile(r"\basm\b"), ("cuda/prim/",), "inline PTX belongs to cuda/prim"),
    (re.compile(r"<simt/"), ("cuda/prim/platform.cuh",), "the emulator is behind cuda/prim"),
    (re.compile(r"<cuda_runtime|\bcuda(Malloc|Free|Memcpy|Stream|Event|Graph|Launch|Get|Set)\w*\("),
     ("cuda/prim/", "cuda/runtime"), "the runtime API belongs to cuda/runtime.h"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)
MODULE_CALL = re.compile(r"incipit_(?:module|kernels)\(\s*(\w+)([^)]*)\)")
KEYWORDS = {"DEPENDS", "LIBRARIES", "HEADERS"}


def module_of(path: pathlib.PurePath) -> str | None:
    """The module of a file of lib/ or cuda/, else None."""
    if path.parts[0] == "cuda":
        return "cuda"
    return path.parts[1] if path.parts[0] == "lib" and len(path.parts) > 2 else None


def declared_depends(root: pathlib.Path, module: str) -> set[str]:
    """What the module's CMakeLists.txt lists behind DEPENDS."""
    folder = root / ("cuda" if module == "cuda" else f"lib/{module}")
    depends = set()
    for name, words in MODULE_CALL.findall((folder / "CMakeLists.txt").read_text()):
        if name != module:
            continue
        keyword = None
        for word in words.split():
            if word in KEYWORDS:
                keyword = word
            elif keyword == "DEPENDS":
                depends.add(word)
    return depends


def check_library_file(path, module, included, depends) -> list[str]:
    findings = []
    used = included.split("/")[0]
    if ".." in pathlib.PurePath(included).parts or "/" not in included:
        findings.append(f'{path}: "{included}" must be named from lib/ or include/')
    elif used not in ALLOWED[module] | {module, "incipit"}:
        findings.append(f"{path}: {module} may not include {included}")
    elif used in DEVICE_KINDS - {module} and path != NAMES_DEVICES:
        findings.append(f"{path}: only {NAMES_DEVICES} may include {included}")
    elif used not in depends | {module, "incipit"}:
        findings.append(f"{path}: {module} includes {included} but does not DEPEND on {used}")
    return findings


def check_cuda_file(path: pathlib.PurePath, text: str) -> list[str]:
    return [
        f"{path}: {why}"
        for pattern, places, why in CUDA_RULES
        if not str(path).startswith(places) and pattern.search(text)
    ]


def check(root: pathlib.Path) -> list[str]:
    findings, depends = [], {}
    for absolute in cxx_files(root):
        path = pathlib.PurePath(absolute.relative_to(root))
        module = module_of(path)
        if path.parts[0] == "lib" and module not in ALLOWED:
            findings.append(f"{path}: {module} is no module")
            continue
        if module and module not in depends:
            depends[module] = declared_depends(root, module)
            for extra in sorted(depends[module] - ALLOWED[module]):
                findings.append(f"{path.parent}/CMakeLists.txt: may not DEPEND on {extra}")
        text = absolute.read_text()
        if module == "cuda":
            findings += check_cuda_file(path, text)
        for quote, included in INCLUDE.findall(text):
            first = included.split("/")[0]
            if module and quote == '"':
                findings += check_library_file(path, module, included, depends[module])
            elif path.parts[0] in ("include", "examples") and first in ALLOWED:
                findings.append(f"{path}: only public headers may be used here, not {included}")
    return findings


if __name__ == "__main__":
    finish(check(pathlib.Path(sys.argv[1])))
