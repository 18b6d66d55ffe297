#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes random rows of every quantised type and the values that the gguf package reads from them.

    pip install gguf
    make_blocks.py --out tests/data/tensor

blocks.bin has the types that kernels compute with, stored_blocks.bin those that are converted when
they are read. A file is, for each type: its name (a byte with the length, then the letters), the number of
elements as u32, the row as GGUF stores it, and its values as f32. Little-endian.
"""

import argparse
import pathlib
import struct

import gguf
import numpy

ELEMENTS = 768

# Offsets of the f16 numbers in a block; all else is integers of any value.
SCALES = {
    "Q8_0": [0],
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
}

# Types that no kernel computes with, in a file of their own.
STORED = {"Q2_K": [80, 82], "Q3_K": [108], "Q8_K": [], "IQ4_NL": [0]}


def dequantize(blocks: numpy.ndarray, name: str) -> numpy.ndarray:
    if name != "Q8_K":
        return gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[name])
    # The package does not read it: a scale in f32, and the codes.
    return blocks[:, :4].copy().view("<f4") * blocks[:, 4:260].copy().view(numpy.int8).astype("<f4")


def random_blocks(rng, name: str) -> numpy.ndarray:
    kind = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (ELEMENTS // elements, size), dtype=numpy.uint8)
    if name == "Q8_K":
        scales = rng.normal(size=len(blocks)) * 10.0 ** rng.uniform(-7, 2, len(blocks))
        blocks[:, :4] = scales.astype("<f4").view(numpy.uint8).reshape(-1, 4)
    for at in {**SCALES, **STORED}[name]:
        # From subnormal ones to large ones, of both signs.
        scales = rng.normal(size=len(blocks)) * 10.0 ** rng.uniform(-7, 2, len(blocks))
        blocks[:, at : at + 2] = scales.astype("<f2").view(numpy.uint8).reshape(-1, 2)
    return blocks


def write(path: pathlib.Path, names, rng) -> None:
    content = bytearray()
    for name in names:
        blocks = random_blocks(rng, name)
        values = dequantize(blocks, name)
        assert values.size == ELEMENTS and numpy.isfinite(values).all()
        content += struct.pack("<B", len(name)) + name.encode() + struct.pack("<I", ELEMENTS)
        content += blocks.tobytes() + values.astype("<f4").tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="tests/data/tensor")
    out = parser.parse_args().out
    write(out / "blocks.bin", SCALES, numpy.random.default_rng(20260801))
    write(out / "stored_blocks.bin", STORED, numpy.random.default_rng(20261130))


if __name__ == "__main__":
    main()
