#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Cut a GGUF model down so that it travels: the first layers, and the first rows of its vocabulary.

    cut_model.py MODEL.gguf OUT.gguf [--layers 4] [--rows 4096] [--most 20]

What is left computes what the same layers of the model compute. It has no tokeniser: prompts are ids below the number of
rows. Refused if it comes out larger than `--most` MiB. A second run writes the same bytes.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import venv  # scripts/venv.py

venv.enter()

import gguf
import numpy as np

LAYERS = ".block_count"
BY_LAYER = (".feed_forward_length", ".attention.head_count", ".attention.head_count_kv")  # lists in some files
BY_TOKEN = ("token_embd.weight", "output.weight")


def copy_keys(reader, writer, architecture, layers, rows):
    for key, field in reader.fields.items():
        if key.startswith(("GGUF.", "tokenizer.")) or key in ("general.architecture", "general.alignment"):
            continue
        value, kind = field.contents(), field.types[0]
        if key == architecture + LAYERS:
            value = layers
        elif key == architecture + ".vocab_size":
            value = rows
        elif key.endswith(BY_LAYER) and isinstance(value, list):
            value = value[:layers]
        writer.add_key_value(key, value, kind, field.types[1] if kind == gguf.GGUFValueType.ARRAY else None)
    if architecture + ".vocab_size" not in reader.fields:
        writer.add_uint32(architecture + ".vocab_size", rows)


def cut(source, target, layers, rows):
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    copy_keys(reader, writer, architecture, layers, rows)
    for tensor in reader.tensors:
        parts = tensor.name.split(".")
        if parts[0] == "blk" and int(parts[1]) >= layers:
            continue
        data = tensor.data[:rows] if tensor.name in BY_TOKEN else tensor.data
        writer.add_tensor(tensor.name, np.ascontiguousarray(data), raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description="Keep the first layers and vocabulary rows of a GGUF model.",
                                     epilog="example: cut_model.py SmolLM2.gguf build/cuts/smollm2.gguf")
    parser.add_argument("model")
    parser.add_argument("output")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rows", type=int, default=4096, help="of the vocabulary")
    parser.add_argument("--most", type=float, default=20, help="MiB")
    arguments = parser.parse_args()
    target = Path(arguments.output)
    target.parent.mkdir(parents=True, exist_ok=True)
    cut(arguments.model, target, arguments.layers, arguments.rows)
    size = target.stat().st_size / (1 << 20)
    if size > arguments.most:
        target.unlink()
        raise SystemExit("%s would have %.1f MiB, more than %g" % (target, size, arguments.most))
    print("%s: %.1f MiB" % (target, size))


if __name__ == "__main__":
    main()
