#!/usr/bin/env python3
"""How far fast arithmetic is from exact: mean KL divergence from the oracle, rung beside llama.cpp.

    kl.py smollm2|gemma3 ... [--rung PATH/TO/rung] [--kv f16] [--limit 1.1]

Three texts (prose, documentation, C++), at least 2,000 positions in all, the same ids and KV type for both. Without --rung
only llama.cpp is measured. Exit 1 when rung's mean divergence is more than the limit times llama.cpp's.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import numpy as np

import models
from oracle.families import Model, log_sum_exp
from oracle.peer import Peer
from oracle.rung import rung_logits

LENGTH = 720
SOURCES = models.model_path("llama-cpp-src")
TEXTS = {
    "prose": Path(__file__).resolve().parents[2] / "tests" / "models" / "prompts" / "long.txt",
    "documentation": SOURCES / "vendor" / "llama.cpp" / "docs" / "build.md",
    "code": SOURCES / "vendor" / "llama.cpp" / "src" / "llama-grammar.cpp",
}


def divergence(exact, found):
    """KL(exact || found) of each row, in nats, from logits."""
    exact = exact - log_sum_exp(exact)[:, None]
    found = found.astype(np.float64)
    found -= log_sum_exp(found)[:, None]
    return (np.exp(exact) * (exact - found)).sum(axis=1)


def measure(model, ids, candidates, block=64):
    """Divergence of each candidate's logits [n, vocabulary] at every position; the oracle's logits come in blocks."""
    hidden, out = model.hidden(ids), {name: [] for name in candidates}
    agree = {name: 0 for name in candidates}
    for first in range(0, len(ids), block):
        exact = model.logits(hidden[first:first + block])
        for name, logits in candidates.items():
            part = logits[first:first + block]
            out[name].append(divergence(exact, part))
            agree[name] += int((exact.argmax(axis=1) == part.argmax(axis=1)).sum())
    return {name: np.concatenate(parts) for name, parts in out.items()}, agree


def run(name, arguments):
    path = models.require(name)
    models.require("llama-cpp-src")
    model, peer = Model(str(path)), Peer(path)
    divergences, agreements = {}, {}
    for label, text in TEXTS.items():
        ids = peer.tokenize(text.read_bytes()[:8 * LENGTH], add_special=True)[:LENGTH]
        candidates = {"llama.cpp": peer.logits(ids, arguments.kv)}
        if arguments.rung:
            candidates["rung"] = rung_logits(arguments.rung, path, ids, ["--quant", "fast", "--kv", arguments.kv])
        values, agree = measure(model, ids, candidates)
        for who, value in values.items():
            divergences.setdefault(who, []).append(value)
            agreements[who] = agreements.get(who, 0) + agree[who]
            print("%s %-13s %4d positions  %-9s mean KL %.5f  99%% %.5f  same best token %.4f" % (
                name, label, len(ids), who, value.mean(), np.quantile(value, 0.99), agree[who] / len(ids)))
    means = {who: np.concatenate(values).mean() for who, values in divergences.items()}
    count = sum(len(value) for value in divergences["llama.cpp"])
    for who, mean in means.items():
        print("%s all           %4d positions  %-9s mean KL %.5f  same best token %.4f" % (
            name, count, who, mean, agreements[who] / count))
    if count < 2000:
        raise SystemExit("the texts give only %d positions" % count)
    if not arguments.rung:
        return True
    ratio = means["rung"] / means["llama.cpp"]
    print("%s rung / llama.cpp %.3f (limit %.2f): %s" % (
        name, ratio, arguments.limit, "ok" if ratio <= arguments.limit else "BEYOND THE LIMIT"))
    return ratio <= arguments.limit


def main():
    parser = argparse.ArgumentParser(description="Mean KL divergence from the oracle: rung's fast arithmetic and llama.cpp.",
                                     epilog="example: kl.py smollm2 gemma3 --rung build/rung")
    parser.add_argument("model", nargs="+", choices=["smollm2", "gemma3"])
    parser.add_argument("--rung", help="the rung command")
    parser.add_argument("--kv", default="f16", choices=["f16", "f32"])
    parser.add_argument("--limit", type=float, default=1.1)
    arguments = parser.parse_args()
    return 0 if all([run(name, arguments) for name in arguments.model]) else 1


if __name__ == "__main__":
    sys.exit(main())
