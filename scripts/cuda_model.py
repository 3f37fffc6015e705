#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a GGUF file of a llama shape with random weights: what speed is measured on where no model can be fetched.

    cuda_model.py SHAPE TYPE FILE      SHAPE: llama7 (7.24 G parameters), smollm2 (135 M), tiny7 (two layers of llama7) or
                                       small (two layers for tests of bits);
                                       TYPE: q4_k, q8_0, f16, bf16, f32

Needs numpy alone. There is no tokeniser in the file: prompts are ids. A second run writes the same bytes.
"""
import struct
import sys

import numpy as np

SHAPES = {  # layers, width, heads, key/value heads, feed forward, vocabulary, rope base, tied
    "llama7": (32, 4096, 32, 8, 14336, 32000, 10000.0, False),
    "tiny7": (2, 4096, 32, 8, 14336, 32000, 10000.0, False),
    "small": (2, 512, 8, 2, 1536, 1000, 10000.0, False),
    "smollm2": (30, 576, 9, 3, 1536, 49152, 100000.0, True),
}
TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "bf16": (30, 1, 2), "q8_0": (8, 32, 34), "q4_k": (12, 256, 144)}
ALIGN, SLICE = 32, 1 << 24


def text(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def value(v):
    if isinstance(v, str):
        return struct.pack("<I", 8) + text(v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    return struct.pack("<II", 4, v)


def blocks(rng, kind, count, k):
    """`count` blocks whose numbers have about the deviation 1 / sqrt(k)."""
    spread = 1 / np.sqrt(k)
    if kind == "f32":
        return (rng.standard_normal(count, dtype=np.float32) * spread).tobytes()
    if kind == "f16":
        return (rng.standard_normal(count, dtype=np.float32) * spread).astype("<f2").tobytes()
    if kind == "bf16":
        return ((rng.standard_normal(count, dtype=np.float32) * spread).view(np.uint32) >> 16).astype("<u2").tobytes()
    out = rng.integers(0, 256, (count, TYPES[kind][2]), dtype=np.uint8)

    def half(at, numbers):
        out[:, at:at + 2] = numbers.astype("<f2").view(np.uint8).reshape(count, 2)
    if kind == "q8_0":
        half(0, spread / 74 * rng.uniform(0.7, 1.3, count))
    else:  # value = d * scale * level - dmin * minimum, scales and minima 0..63, levels 0..15
        d = spread / (32 * 5) * rng.uniform(0.7, 1.3, count)
        half(0, d)
        half(2, d * 7.5)
    return out.tobytes()


def tensors(shape, kind):
    layers, width, heads, kv, feed, vocabulary, _, tied = SHAPES[shape]
    head = width // heads
    small = "q8_0" if TYPES[kind][1] > 1 and width % TYPES[kind][1] else kind

    def fit(k):
        return kind if k % TYPES[kind][1] == 0 else small
    yield "token_embd.weight", (vocabulary, width), fit(width)
    for i in range(layers):
        p = "blk.%d." % i
        yield p + "attn_norm.weight", (width,), "norm"
        yield p + "ffn_norm.weight", (width,), "norm"
        yield p + "attn_q.weight", (heads * head, width), fit(width)
        yield p + "attn_k.weight", (kv * head, width), fit(width)
        yield p + "attn_v.weight", (kv * head, width), fit(width)
        yield p + "attn_output.weight", (width, heads * head), fit(width)
        yield p + "ffn_gate.weight", (feed, width), fit(width)
        yield p + "ffn_up.weight", (feed, width), fit(width)
        yield p + "ffn_down.weight", (width, feed), fit(feed)
    yield "output_norm.weight", (width,), "norm"
    if not tied:
        yield "output.weight", (vocabulary, width), fit(width)


def size_of(dims, kind):
    number, block, bytes_ = TYPES["f32" if kind == "norm" else kind]
    return int(np.prod(dims)) // block * bytes_


def main():
    shape, kind, path = sys.argv[1:]
    layers, width, heads, kv, feed, vocabulary, base, _ = SHAPES[shape]
    listed = list(tensors(shape, kind))
    keys = {"general.architecture": "llama", "general.alignment": ALIGN, "llama.context_length": 8192,
            "llama.embedding_length": width, "llama.block_count": layers, "llama.feed_forward_length": feed,
            "llama.attention.head_count": heads, "llama.attention.head_count_kv": kv,
            "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.freq_base": base,
            "llama.rope.dimension_count": width // heads, "llama.vocab_size": vocabulary}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(keys))
    for key, v in keys.items():
        head += text(key) + value(v)
    at = 0
    for name, dims, k in listed:
        head += text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in reversed(dims))
        head += struct.pack("<IQ", TYPES["f32" if k == "norm" else k][0], at)
        at += (size_of(dims, k) + ALIGN - 1) // ALIGN * ALIGN
    rng = np.random.default_rng(1)
    pieces = {}  # numbers repeat after a few megabytes: drawing all of them would take minutes
    with open(path, "wb") as f:
        f.write(head + b"\0" * (-len(head) % ALIGN))
        for name, dims, k in listed:
            if k == "norm":
                data = rng.uniform(0.6, 1.4, dims).astype("<f4").tobytes()
                f.write(data + b"\0" * (-len(data) % ALIGN))
                continue
            left = size_of(dims, k)
            if (k, dims[-1]) not in pieces:
                _, block, bytes_ = TYPES[k]
                pieces[k, dims[-1]] = blocks(rng, k, SLICE // bytes_ + 1, dims[-1])
            piece, unit = pieces[k, dims[-1]], TYPES[k][2]
            start = int(rng.integers(0, 1000)) * unit  # so that rows of different tensors differ
            pad = -left % ALIGN
            while left:
                part = piece[start:start + left]
                f.write(part)
                left -= len(part)
                start = 0
            f.write(b"\0" * pad)
    print("%s: %s, %.2f GB" % (path, kind, at / 1e9))


if __name__ == "__main__":
    main()
