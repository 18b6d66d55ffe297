#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps what a fuzzer found worth keeping in one file, which the tests run again.

    tests/fuzz/pack_corpus.py pack DIRECTORY tests/data/fuzz/NAME.corpus [BYTES]
    tests/fuzz/pack_corpus.py unpack tests/data/fuzz/NAME.corpus DIRECTORY

`pack` takes the smallest inputs, together at most BYTES (40,000). In the file each stands behind its
length, 4 bytes, the lowest first.
"""

import pathlib
import struct
import sys


def pack(directory, packed, limit):
    inputs = sorted((path.read_bytes() for path in directory.iterdir()), key=lambda b: (len(b), b))
    data = b""
    for one in inputs:
        if len(data) + 4 + len(one) > limit:
            break
        data += struct.pack("<I", len(one)) + one
    packed.write_bytes(data)


def unpack(packed, directory):
    data = packed.read_bytes()
    directory.mkdir(parents=True, exist_ok=True)
    number = 0
    while data:
        (size,) = struct.unpack_from("<I", data)
        (directory / f"{number:04}").write_bytes(data[4:4 + size])
        data = data[4 + size:]
        number += 1


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("pack", "unpack"):
        sys.exit(__doc__)
    source, target = map(pathlib.Path, sys.argv[2:4])
    if sys.argv[1] == "unpack":
        unpack(source, target)
    else:
        pack(source, target, int(sys.argv[4]) if len(sys.argv) > 4 else 40_000)


if __name__ == "__main__":
    main()
