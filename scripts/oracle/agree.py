#!/usr/bin/env python3
"""Does llama.cpp agree with the oracle? Run once when a family is added, to trust the oracle; not part of the tests.

    agree.py MODEL.gguf --ids FILE

llama.cpp rounds activations to 8 bits when weights are quantised, so it is far from exact on such files. The check
therefore writes the same weights as F32 to a temporary file and compares on that: what is left is float32 rounding and
llama.cpp's half-precision table for GELU. The difference on the quantised file is printed beside it, for scale.
"""
import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import gguf
import numpy as np
from gguf.quants import dequantize

from oracle.families import Model, log_sum_exp
from oracle.idfile import read_ids
from oracle.peer import Peer


def write_as_f32(source, target):
    """Copy a GGUF file with all tensors widened to F32."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.get_field("general.architecture").contents())
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), kind, sub_type=inner)
    writer.add_file_type(0)
    for tensor in reader.tensors:
        writer.add_tensor_info(tensor.name, [int(n) for n in reversed(tensor.shape)], np.dtype(np.float32),
                               int(np.prod(tensor.shape)) * 4)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:
        writer.write_tensor_data(dequantize(tensor.data, tensor.tensor_type))
    writer.close()


def report(label, exact, other):
    exact_log = exact - log_sum_exp(exact)[:, None]
    other = other.astype(np.float64)
    other_log = other - log_sum_exp(other)[:, None]
    print("%-28s max |diff| / max |logit| %.3g   top-1 %.4f   mean KL %.3g" % (
        label, np.abs(exact - other).max() / np.abs(exact).max(),
        np.mean(exact.argmax(axis=1) == other.argmax(axis=1)),
        np.mean((np.exp(exact_log) * (exact_log - other_log)).sum(axis=1))))


def main():
    parser = argparse.ArgumentParser(description="Compare the oracle with llama.cpp on the same weights.",
                                     epilog="example: agree.py MODEL.gguf --ids tests/models/prompts/smollm2/long.ids")
    parser.add_argument("model")
    parser.add_argument("--ids", required=True, nargs="+", help="files of token ids")
    arguments = parser.parse_args()
    oracle, peer = Model(arguments.model), Peer(arguments.model)
    with tempfile.TemporaryDirectory(prefix="rung-agree-") as folder:
        widened = str(Path(folder) / "f32.gguf")
        write_as_f32(arguments.model, widened)
        peer_f32 = Peer(widened)
        for path in arguments.ids:
            ids = read_ids(path)
            exact = oracle.logits(oracle.hidden(ids))
            print("%s: %d positions" % (path, len(ids)))
            report("  F32 weights, KV f32", exact, peer_f32.logits(ids, "f32", flash=False))
            report("  file's weights, KV f32", exact, peer.logits(ids, "f32", flash=False))
            report("  file's weights, KV f16", exact, peer.logits(ids, "f16"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
