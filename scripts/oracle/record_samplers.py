#!/usr/bin/env python3
"""What llama.cpp's own samplers leave of rows of logits: tests/unit/expect/samplers.txt.

    record_samplers.py

Each case: one step with its options, or several, a text that went before, a row of logits (made from a seed by the rule
below, so that only the seed is stored), and the tokens left with their logits. Only steps that draw nothing; XTC is recorded
with probability 1. Rows have no ties at a border, where the order is not defined there.
"""
import ctypes
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import numpy as np

from oracle.peer import load_declarations

OUT = Path(__file__).resolve().parents[2] / "tests" / "unit" / "expect" / "samplers.txt"
TEXT = [7, 3, 4, 5, 9, 8, 3, 3, 4, 11, 5, 3, 4, 1, 2, 6, 1, 2, 6, 1, 2]
CASES = [  # (count, options)
    (50, {"repeat_penalty": 1.5}), (50, {"presence_penalty": 0.75}), (50, {"frequency_penalty": 0.5, "repeat_last_n": 8}),
    (50, {"repeat_penalty": 0.8, "presence_penalty": -0.5, "frequency_penalty": 0.25, "repeat_last_n": 15}),
    (50, {"dry_multiplier": 0.8}), (50, {"dry_multiplier": 1.2, "dry_base": 2.0, "dry_allowed_length": 1}),
    (50, {"dry_multiplier": 0.5, "dry_base": 1.5, "dry_allowed_length": 3, "dry_last_n": 9}),
    (50, {"dry_multiplier": 0.5, "dry_base": 1.0, "dry_allowed_length": 0}),
    (200, {"top_n_sigma": 1.0}), (200, {"top_n_sigma": 0.3}), (200, {"top_k": 1}), (200, {"top_k": 13}),
    (200, {"typical_p": 0.2}), (200, {"typical_p": 0.9}), (200, {"top_p": 0.3}), (200, {"top_p": 0.95}),
    (200, {"min_p": 0.05}), (200, {"min_p": 0.4}), (200, {"xtc_threshold": 0.02}), (200, {"xtc_threshold": 0.1}),
    (300, {"repeat_penalty": 1.2, "dry_multiplier": 0.6, "top_n_sigma": 2.5, "top_k": 60, "typical_p": 0.95, "top_p": 0.9,
           "min_p": 0.03, "xtc_threshold": 0.03}),
    (300, {"top_k": 40, "top_p": 0.95, "min_p": 0.05}),
]


def row(seed, count):
    """A linear congruential generator: the test makes the same numbers. Multiples of 1/256 in [-6, 6)."""
    out, state = [], seed
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(((state >> 40) % 3072 - 1536) / 256.0)
    return np.array(out, np.float32)


def chain(c, options):
    """Steps in the default order, each told the text where it asks for it."""
    get = options.get
    steps = []
    if {"repeat_penalty", "presence_penalty", "frequency_penalty"} & set(options):
        steps.append(c.llama_sampler_init_penalties(1 << 16, get("repeat_last_n", 64), get("repeat_penalty", 1.0),
                                                    get("frequency_penalty", 0.0), get("presence_penalty", 0.0)))
    if "dry_multiplier" in options:
        steps.append(c.llama_sampler_init_dry(None, options["dry_multiplier"], get("dry_base", 1.75),
                                              get("dry_allowed_length", 2), get("dry_last_n", 4096), None, 0))
    if "top_n_sigma" in options:
        steps.append(c.llama_sampler_init_top_n_sigma(options["top_n_sigma"]))
    if "top_k" in options:
        steps.append(c.llama_sampler_init_top_k(options["top_k"]))
    if "typical_p" in options:
        steps.append(c.llama_sampler_init_typical(options["typical_p"], 0))
    if "top_p" in options:
        steps.append(c.llama_sampler_init_top_p(options["top_p"], 0))
    if "min_p" in options:
        steps.append(c.llama_sampler_init_min_p(options["min_p"], 0))
    if "xtc_threshold" in options:
        steps.append(c.llama_sampler_init_xtc(1.0, options["xtc_threshold"], 0, 1))
    return steps


def left(c, options, logits):
    data = (c.llama_token_data * len(logits))()
    for i, value in enumerate(logits):
        data[i].id, data[i].logit, data[i].p = i, float(value), 0.0
    array = c.llama_token_data_array(data, len(logits), -1, False)
    for step in chain(c, options):
        for token in TEXT:
            c.llama_sampler_accept(step, token)
        c.llama_sampler_apply(step, ctypes.byref(array))
        c.llama_sampler_free(step)
    return sorted((array.data[i].id, array.data[i].logit) for i in range(array.size) if array.data[i].logit > -np.inf)


def main():
    c = load_declarations()
    quiet = c.llama_log_callback(lambda level, text, data: None)
    c.llama_log_set(quiet, None)
    lines = ["# By scripts/oracle/record_samplers.py: what llama.cpp's samplers leave. A case: seed, number of logits, number left;",
             "# options by name; ids left with their logits. The text before: %s" % " ".join(map(str, TEXT))]
    for seed, (count, options) in enumerate(CASES, 1):
        kept = left(c, options, row(seed, count))
        lines.append("case %d %d %d" % (seed, count, len(kept)))
        lines.append("options %d %s" % (len(options), " ".join("%s %r" % pair for pair in options.items())))
        lines += [" ".join("%d:%.9g" % pair for pair in kept[first:first + 16]) for first in range(0, len(kept), 16)]
        print(lines[-1][:100] if kept else "", len(kept), options)
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
