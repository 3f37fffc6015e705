#!/usr/bin/env python3
"""Record what the oracle says about the five prompts, for the C tests.

    record.py smollm2|gemma3 ...

Writes tests/models/expect/MODEL/PROMPT.*.npy; tests/models/README.md describes them.
"""
import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import numpy as np

import models
from oracle.families import Model, log_sum_exp
from oracle.idfile import read_ids

TESTS = Path(__file__).resolve().parents[2] / "tests" / "models"
NAMES = ("short", "chat", "code", "languages", "long")
TOP, COLUMNS = 32, 64


def fixed_columns(vocabulary):
    """The same 64 ids for every position, spread evenly: (2 i + 1) * vocabulary / 128."""
    return ((2 * np.arange(COLUMNS) + 1) * vocabulary // (2 * COLUMNS)).astype(np.int32)


def digest(logits, columns):
    """What is kept of logits [positions, vocabulary]: name of the array -> array."""
    # Ties (there are none in practice) go to the lower id: a stable sort of the negated values.
    top = np.argpartition(-logits, TOP, axis=1)[:, :TOP]
    order = np.lexsort((top, -np.take_along_axis(logits, top, axis=1)), axis=1)
    top = np.take_along_axis(top, order, axis=1)
    return {
        "top_ids": top.astype("<i4"),
        "top_logits": np.take_along_axis(logits, top, axis=1).astype("<f8"),
        "lse": log_sum_exp(logits).astype("<f8"),
        "max_abs": np.abs(logits).max(axis=1).astype("<f8"),
        "column_logits": np.ascontiguousarray(logits[:, columns], "<f8"),
    }


def record(name):
    model = Model(models.require(name))
    folder = TESTS / "expect" / name
    folder.mkdir(parents=True, exist_ok=True)
    columns = fixed_columns(model.vocabulary)
    np.save(folder / "columns.npy", columns)
    for prompt in NAMES:
        start = time.monotonic()
        ids = read_ids(TESTS / "prompts" / name / (prompt + ".ids"))
        hidden = model.hidden(ids)
        parts = [digest(model.logits(hidden[first:first + 128]), columns) for first in range(0, len(ids), 128)]
        for key in parts[0]:
            np.save(folder / ("%s.%s.npy" % (prompt, key)), np.ascontiguousarray(np.concatenate([part[key] for part in parts])))
        print("%s %s: %d positions, %.1f s" % (name, prompt, len(ids), time.monotonic() - start))


def main():
    parser = argparse.ArgumentParser(description="Record the oracle's results on the five prompts.",
                                     epilog="example: record.py smollm2 gemma3")
    parser.add_argument("model", nargs="+", choices=["smollm2", "gemma3"])
    for name in parser.parse_args().model:
        record(name)


if __name__ == "__main__":
    main()
