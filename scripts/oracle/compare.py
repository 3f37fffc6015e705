#!/usr/bin/env python3
"""Compare every logit of `rung logits` with the oracle's, live.

    compare.py MODEL --rung PATH/TO/rung [--prompt NAME|FILE ...] [--quant exact] [--kv f32] [--bound 1e-4]

MODEL is smollm2, gemma3 or a GGUF file. Exit 1 when a prompt is beyond the bound: max |difference| over max |logit|, or
another best token where the oracle's gap between its two best exceeds the bound.
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
from oracle.families import Model
from oracle.idfile import read_ids
from oracle.rung import rung_logits

PROMPTS = Path(__file__).resolve().parents[2] / "tests" / "models" / "prompts"
NAMES = ("short", "chat", "code", "languages", "long")


def compare(exact, found, bound):
    """Returns (relative difference, share of positions with the same best token or an excuse, number excused)."""
    if found.shape != exact.shape:
        raise SystemExit("shapes differ: rung %s, oracle %s" % (found.shape, exact.shape))
    largest = np.abs(exact).max()
    best_two = np.partition(exact, -2, axis=1)[:, -2:]
    gap = best_two[:, 1] - best_two[:, 0]
    same = exact.argmax(axis=1) == found.argmax(axis=1)
    excused = ~same & (gap < bound * largest)
    difference = np.abs(exact - found).max() if np.isfinite(found).all() else np.inf
    return difference / largest, np.mean(same | excused), int(excused.sum())


def main():
    parser = argparse.ArgumentParser(description="Compare all logits of rung with the float64 oracle.",
                                     epilog="example: compare.py gemma3 --rung build/rung --prompt long")
    parser.add_argument("model", help="smollm2, gemma3 or a GGUF file")
    parser.add_argument("--rung", required=True, help="the rung command")
    parser.add_argument("--prompt", nargs="+", help="names (%s) or id files; default: all five" % ", ".join(NAMES))
    parser.add_argument("--quant", default="exact", choices=["exact", "fast"])
    parser.add_argument("--kv", default="f32", choices=["f32", "f16"])
    parser.add_argument("--bound", type=float, default=1e-4)
    arguments = parser.parse_args()
    known = arguments.model in ("smollm2", "gemma3")
    path = models.require(arguments.model) if known else Path(arguments.model)
    if not known and not arguments.prompt:
        parser.error("--prompt with id files is needed for a GGUF file")
    model, failed = Model(str(path)), False
    for prompt in arguments.prompt or NAMES:
        file = PROMPTS / arguments.model / (prompt + ".ids") if known and prompt in NAMES else Path(prompt)
        ids = read_ids(file)
        start = time.monotonic()
        found = rung_logits(arguments.rung, path, ids, ["--quant", arguments.quant, "--kv", arguments.kv])
        seconds = time.monotonic() - start
        worst, agree, excused = compare(model.logits(model.hidden(ids)), found, arguments.bound)
        good = worst <= arguments.bound and agree == 1.0
        failed |= not good
        print("%-10s %4d positions  max |diff| / max |logit| %.3g  same best token %.4f (%d excused)  rung %.1f s  %s" % (
            Path(prompt).stem, len(ids), worst, agree, excused, seconds, "ok" if good else "BEYOND THE BOUND"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
