#!/usr/bin/env python3
"""Record what devices with arithmetic of their own are compared with (tests/models/test_cuda_model.c, test_cuda_cut.c).

    record_device.py [--cut MODEL.gguf]

Writes tests/models/expect/device/:
  FAMILY.ids           a text that is longer than a block of keys, for the tiny models
  FAMILY.logits.npy    <f8 [positions, vocabulary], the oracle's logits at the positions that POSITIONS names
  FAMILY.kv16.npy      the same with keys and values rounded to f16, as a cache in f16 keeps them
and with --cut, of SmolLM2 as scripts/cut_model.py cuts it (4 layers, 4096 rows):
  smollm2-cut.ids and .top_ids, .top_logits, .lse, .max_abs, .column_logits, as record.py writes them for whole models.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import numpy as np

from oracle import families
from oracle.families import Model
from oracle.idfile import read_ids, write_ids
from oracle.record import COLUMNS, digest, fixed_columns

TESTS = Path(__file__).resolve().parents[2] / "tests" / "models"
OUT = TESTS / "expect" / "device"
LENGTH = 150
# The first, both sides of a block of 64 keys, of the tile of 128 rows, and the end.
POSITIONS = [0, 1, 7, 62, 63, 64, 65, 99, 126, 127, 128, 129, 146, 147, 148, 149]
CUT_EVERY, CUT_LENGTH = 5, 200


def rounded(x):
    return x.astype(np.float16).astype(np.float64)


def record_tiny(family):
    model = Model(str(TESTS / "tiny" / (family + ".gguf")))
    rng = np.random.default_rng(7)
    ids = rng.integers(6, model.vocabulary, LENGTH)
    write_ids(OUT / (family + ".ids"), ids)
    plain = families.attention
    logits = {}
    for name, attention in (("logits", plain),
                            ("kv16", lambda q, k, v, *rest: plain(q, rounded(k), rounded(v), *rest))):
        families.attention = attention
        logits[name] = model.logits(model.hidden(ids)[POSITIONS])
        np.save(OUT / ("%s.%s.npy" % (family, name)), logits[name].astype("<f8"))
    families.attention = plain
    largest = np.abs(logits["logits"]).max()
    print("%s: rounding keys and values moves logits by %.2g of the largest" % (
        family, np.abs(logits["kv16"] - logits["logits"]).max() / largest))


def record_cut(path):
    model = Model(path)
    ids = [i for i in read_ids(TESTS / "prompts" / "smollm2" / "long.ids") if i < model.vocabulary][:CUT_LENGTH]
    write_ids(OUT / "smollm2-cut.ids", ids)
    columns = fixed_columns(model.vocabulary)
    found = digest(model.logits(model.hidden(ids)[CUT_EVERY - 1::CUT_EVERY]), columns)
    found["columns"] = columns
    for name, array in found.items():
        np.save(OUT / ("smollm2-cut.%s.npy" % name), array)
    print("smollm2-cut: %d ids, %d positions, %d columns" % (len(ids), len(found["lse"]), COLUMNS))


def main():
    parser = argparse.ArgumentParser(description="Record expectations for tests of devices.",
                                     epilog="example: record_device.py --cut build/cuts/smollm2.gguf")
    parser.add_argument("--cut", metavar="MODEL.gguf", help="a cut of SmolLM2, to be recorded as well")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    for family in ("llama", "gemma3"):
        record_tiny(family)
    if arguments.cut:
        record_cut(arguments.cut)


if __name__ == "__main__":
    main()
