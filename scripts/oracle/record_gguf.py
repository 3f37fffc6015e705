#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/formats/data/foreign.gguf with the `gguf` package: a file that our writer had no part in.

    python3 scripts/oracle/record_gguf.py tests/formats/data/foreign.gguf
"""
import sys

import gguf
import numpy as np


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


if __name__ == "__main__":
    main()
