#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records what the `gguf` package makes of block formats, for tests/unit/test_types.c.

    python3 scripts/oracle/record_blocks.py tests/formats/data/blocks.bin

The file holds one record per type, all numbers little-endian:
    name[16]  u32 elements, bytes per block  u32 blocks  u32 encoded
    u64 decode hash   of STREAM_BLOCKS blocks of the random stream (seed: 1 + type's place), made into floats
    u64 encode hash   of ENCODE_BLOCKS blocks made by the package from the stream's floats; 0 where it has no encoder
    blocks * bytes    random blocks, the first with extreme scales
    f32[blocks * elements]  what they mean
Hashes are FNV-1a over the bytes, NaNs made 0x7fc00000 first. The stream is xorshift64*, 8 bytes a step, as in tests/test.h.
"""
import struct
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T, quants

STREAM_BLOCKS = 512
ENCODE_BLOCKS = 512
# The type and the places of its half floats in a block.
TYPES = [
    ("f16", T.F16, []), ("bf16", T.BF16, []),
    ("q4_0", T.Q4_0, [0]), ("q4_1", T.Q4_1, [0, 2]), ("q5_0", T.Q5_0, [0]), ("q5_1", T.Q5_1, [0, 2]),
    ("q8_0", T.Q8_0, [0]), ("q2_k", T.Q2_K, [80, 82]), ("q3_k", T.Q3_K, [108]), ("q4_k", T.Q4_K, [0, 2]),
    ("q5_k", T.Q5_K, [0, 2]), ("q6_k", T.Q6_K, [208]), ("iq1_s", T.IQ1_S, [0]), ("iq1_m", T.IQ1_M, []),
    ("iq2_xxs", T.IQ2_XXS, [0]), ("iq2_xs", T.IQ2_XS, [0]), ("iq2_s", T.IQ2_S, [0]), ("iq3_xxs", T.IQ3_XXS, [0]),
    ("iq3_s", T.IQ3_S, [0]), ("iq4_nl", T.IQ4_NL, [0]), ("iq4_xs", T.IQ4_XS, [0]), ("tq1_0", T.TQ1_0, [52]),
    ("tq2_0", T.TQ2_0, [64]), ("mxfp4", T.MXFP4, []),
]
# Zero, minus zero, smallest and largest denormal, smallest normal, one, largest, infinity, NaN, and negative ones.
SCALES = [0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x3C00, 0x7BFF, 0x7C00, 0x7E00, 0x8001, 0xFBFF, 0xFC00]
MASK = (1 << 64) - 1


class Stream:
    def __init__(self, seed):
        self.state = seed

    def next(self):
        s = self.state
        s ^= s >> 12
        s ^= (s << 25) & MASK
        s ^= s >> 27
        self.state = s
        return (s * 0x2545F4914F6CDD1D) & MASK

    def bytes(self, n):
        words = np.array([self.next() for _ in range((n + 7) // 8)], dtype="<u8")
        return words.view(np.uint8)[:n].copy()


def fnv(data):
    h = 0xCBF29CE484222325
    for b in bytes(data):
        h = ((h ^ b) * 0x100000001B3) & MASK
    return h


def canonical(x):
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32).copy()
    bits[np.isnan(bits.view(np.float32))] = 0x7FC00000
    return bits


def decode(raw, type_, elements, size):
    if type_ in (T.F16,):
        return raw.view(np.float16).astype(np.float32).ravel()
    rows = raw.reshape(-1, size * 64) if raw.size % (size * 64) == 0 else raw.reshape(1, -1)
    return quants.dequantize(rows, type_).astype(np.float32).ravel()


def stream_floats(stream, blocks, elements):
    """Block b: integers of 6 bits (many ties) or 24 bits, times 2^e; exact in f32."""
    out = np.empty((blocks, elements), dtype=np.float32)
    for b in range(blocks):
        shift = 58 if b % 2 else 40
        half = 1 << (63 - shift)
        e = b % 23 - 32
        for j in range(elements):
            out[b, j] = np.float32(((stream.next() >> shift) - half) * 2.0**e)
    return out


def main():
    np.seterr(all="ignore")
    out = bytearray()
    for place, (name, type_, halves) in enumerate(TYPES):
        elements, size = GGML_QUANT_SIZES[type_]
        stream = Stream(1 + place)
        raw = stream.bytes(STREAM_BLOCKS * size)
        decode_hash = fnv(canonical(decode(raw, type_, elements, size)).tobytes())
        encode_hash = 0
        if name in ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "tq1_0", "tq2_0", "mxfp4"):
            floats = stream_floats(Stream(100 + place), ENCODE_BLOCKS, elements)
            encode_hash = fnv(quants.quantize(floats, type_).tobytes())
        blocks = 64 if elements == 1 else 16 if elements == 32 else 6
        shown = stream.bytes(blocks * size).reshape(blocks, size)
        for b in range(blocks):
            for i, at in enumerate(halves):
                if b < len(SCALES) and (elements == 32 or b < blocks - 1):
                    scale = SCALES[(b * (1 if elements == 32 else 2) + 5 * i) % len(SCALES)]
                    shown[b, at : at + 2] = [scale & 255, scale >> 8]
            if name == "mxfp4":
                shown[b, 0] = [0, 1, 2, 127, 128, 252, 254, 255][b % 8]
        values = canonical(decode(shown.ravel(), type_, elements, size))
        out += struct.pack("<16sIIIIQQ", name.encode(), elements, size, blocks, int(encode_hash != 0), decode_hash,
                           encode_hash)
        out += shown.tobytes() + values.tobytes()
    with open(sys.argv[1], "wb") as f:
        f.write(out)


if __name__ == "__main__":
    main()
