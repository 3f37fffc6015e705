#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/formats/data/foreign.gguf with the `gguf` package: a file that our writer had no part in. With a folder, also
the seeds of the fuzz target.

    python3 scripts/oracle/record_gguf.py tests/formats/data/foreign.gguf [tests/fuzz/corpus/fuzz_gguf]
"""
import shutil
import struct
import sys
from pathlib import Path

import gguf
import numpy as np


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def header(tensors, keys, version=3):
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys)


def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + value


def tensor(name, ne, type_, offset):
    return text(name) + struct.pack("<I%dQIQ" % len(ne), len(ne), *ne, type_, offset)


def padded(data, tail, to=32):
    return data + b"\0" * (-len(data) % to) + tail


def seeds(folder):
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8]
    singles = b"".join(key("k%d" % k, k, b"\1" * n) for k, n in enumerate(sizes) if n)
    arrays = b"".join(key("a%d" % k, 9, struct.pack("<IQ", k, 3) + b"\1" * (3 * n)) for k, n in enumerate(sizes) if n)
    texts = key("s", 8, text("one")) + key("t", 9, struct.pack("<IQ", 8, 3) + text("a") + text("") + text("bcd"))
    types = [0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 34, 35, 39]
    directory = b"".join(tensor("w%d" % t, [256], t, 2048 * i) for i, t in enumerate(types))
    files = {
        "empty": header(0, 0),
        "version2": header(0, 1, 2) + key("general.alignment", 4, struct.pack("<I", 64)),
        "singles": header(0, 11) + singles,
        "arrays": header(0, 11) + arrays,
        "texts": header(0, 2) + texts,
        "types": padded(header(len(types), 0) + directory, b"\1" * (2048 * len(types))),
        "order": padded(header(3, 0) + tensor("c", [2, 4], 0, 64) + tensor("a", [], 0, 0) + tensor("b", [1, 1, 1, 8], 24, 32),
                        b"\0" * 96),
        "overlap": padded(header(3, 0) + tensor("c", [8], 0, 32) + tensor("a", [16], 0, 0) + tensor("b", [8], 0, 64),
                          b"\0" * 96),
        "twice": header(0, 2) + key("k", 0, b"\1") + key("k", 0, b"\1"),
        "split": header(0, 1) + key("split.count", 2, b"\2\0"),
        "nan": padded(header(1, 0) + tensor("w", [32, 2], 2, 0), b"\0" * 18 + b"\xff" * 18),
        "bigendian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
        "nested": header(0, 1) + key("k", 9, struct.pack("<IQIQ", 9, 1, 0, 0)),
        "huge": padded(header(1, 0) + tensor("w", [1 << 22, (1 << 42) + 1], 0, 0), b"\0" * 32),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    shutil.copy(sys.argv[1], folder / "foreign")


def main():
    w = gguf.GGUFWriter(sys.argv[1], "llama")
    w.add_block_count(2)
    w.add_uint8("test.u8", 200)
    w.add_int8("test.i8", -100)
    w.add_uint16("test.u16", 60000)
    w.add_int16("test.i16", -30000)
    w.add_int32("test.i32", -2000000000)
    w.add_uint64("test.u64", 2**63 + 5)
    w.add_int64("test.i64", -(2**62))
    w.add_float32("test.f32", 0.1)
    w.add_float64("test.f64", 0.1)
    w.add_bool("test.bool", True)
    w.add_string("test.text", "gr\u00fc\u00df Gott")
    w.add_array("test.ints", [1, -2, 3])
    w.add_array("test.floats", [0.5, 1.5])
    w.add_array("test.texts", ["a", "", "ccc"])
    w.add_tensor("token_embd.weight", np.arange(64 * 3, dtype=np.float32).reshape(3, 64))
    w.add_tensor("blk.0.attn_q.weight", gguf.quants.quantize(np.arange(64, dtype=np.float32).reshape(2, 32),
                                                            gguf.GGMLQuantizationType.Q8_0),
                 raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    w.add_tensor("output_norm.weight", np.array([1.0, 2.0, 3.0], dtype=np.float16))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    if len(sys.argv) > 2:
        seeds(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
