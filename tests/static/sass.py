# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of the kernels in a cubin, without a disassembler.

A cubin is an ELF file; the section `.text.NAME` holds the instructions of a kernel, 16 bytes each from
sm_70 on. The low 12 bits name the operation and the form of its operands; bits 73 to 75 of an access
of memory are its width. The codes were found by compiling kernels with known numbers of each.
"""

import collections
import pathlib
import struct
from collections.abc import Iterator

INSTRUCTION_BYTES = 16
OPERATIONS = {
    0x23C: "HMMA",  # mma.sync of f16 and bf16
    0x237: "IMMA",  # mma.sync of s8
    0x9F0: "HGMMA",  # wgmma
    0xDF0: "HGMMA",  # with a in registers
    0x5B4: "UTMALDG",  # cp.async.bulk.tensor
    0x83B: "LDSM",  # ldmatrix
    0xFAE: "LDGSTS",  # cp.async
    0xB1D: "BAR",
    0x983: "LDL",  # local memory: spills and arrays that no register holds
    0x387: "STL",
    0x381: "LDG",
    0x981: "LDG",
    0x386: "STG",
    0x986: "STG",
    0x984: "LDS",
    0x388: "STS",
}
# Accesses of global memory are counted by width, too: LDG.128.
WIDE = {"LDG", "STG", "LDGSTS"}
WIDTHS = {0: 8, 1: 8, 2: 16, 3: 16, 4: 32, 5: 64, 6: 128}


def sections(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of each section of a 64-bit ELF file."""
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("no 64-bit ELF file")
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    entry_bytes, count, names_index = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + i * entry_bytes) for i in range(count)]
    names = headers[names_index][4]
    for name, _, _, _, offset, size in headers:
        start = names + name
        yield cubin[start : cubin.index(b"\0", start)].decode(), cubin[offset : offset + size]


def count_operations(code: bytes) -> collections.Counter:
    counts: collections.Counter = collections.Counter()
    for at in range(0, len(code), INSTRUCTION_BYTES):
        low, high = struct.unpack_from("<QQ", code, at)
        name = OPERATIONS.get(low & 0xFFF)
        if name is None:
            continue
        counts[name] += 1
        if name in WIDE:
            counts[f"{name}.{WIDTHS.get(high >> 9 & 7, 0)}"] += 1
    return counts


def kernels(path: pathlib.Path) -> dict[str, collections.Counter]:
    """What each kernel of a cubin holds, by mangled name."""
    return {
        name.removeprefix(".text."): count_operations(code)
        for name, code in sections(path.read_bytes())
        if name.startswith(".text.")
    }
