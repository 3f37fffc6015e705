#!/usr/bin/env python3
"""Perplexity by the oracle in float64, counted as llama.cpp's tool counts it.

    perplexity.py tiny                                   writes tests/models/tiny/perplexity.txt
    perplexity.py smollm2|gemma3 ... --rung PATH/TO/rung [--tokens 4096] [--kv q8_0 ...]

The rule: windows of c tokens, what is left over at the end is dropped; the first token of each is the begin token where the
vocabulary has one in front; positions c/2 to c-2 foretell the token behind them. The second form prints the oracle, rung
(exact and fast), and llama.cpp's logits, on the same ids of a documentation text.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import numpy as np

import models
from oracle.families import Model, log_sum_exp
from oracle.idfile import write_ids
from oracle.peer import Peer

TESTS = Path(__file__).resolve().parents[2] / "tests" / "models"
TINY_WINDOWS = {"llama": (32, 50), "gemma3": (32, 50)}


def windows(ids, length, begin):
    for first in range(0, len(ids) // length * length, length):
        window = list(ids[first:first + length])
        if begin is not None:
            window[0] = begin
        yield window


def surprise(logits, window):
    """-ln p of the tokens that the second half foretells; logits of those positions."""
    half = len(window) // 2
    logits = logits.astype(np.float64)
    rows = np.arange(len(window) - 1 - half)
    return log_sum_exp(logits)[rows] - logits[rows, np.array(window[half + 1:])]


def perplexity(parts):
    return float(np.exp(np.concatenate(parts).mean()))


def exact(model, ids, length, begin):
    return [surprise(model.logits(model.hidden(window)[length // 2:length - 1]), window)
            for window in windows(ids, length, begin)]


def of_peer(peer, ids, length, begin, kv):
    return [surprise(peer.logits(window, kv=kv)[length // 2:length - 1], window) for window in windows(ids, length, begin)]


def begin_of(peer):
    ids = peer.tokenize(b"", add_special=True)
    return int(ids[0]) if len(ids) else None


def record_tiny():
    text = (TESTS / "prompts" / "short.txt").read_bytes() + (TESTS / "prompts" / "code.txt").read_bytes()[:400]
    lines = ["# By scripts/oracle/perplexity.py tiny: model, tokens of a window, perplexity (float64), tokens scored."]
    (TESTS / "tiny" / "perplexity.text").write_bytes(text)
    for family, lengths in TINY_WINDOWS.items():
        path = TESTS / "tiny" / ("%s.gguf" % family)
        peer, model = Peer(path, vocabulary_only=True), Model(str(path))
        ids, begin = peer.tokenize(text, add_special=True), begin_of(peer)
        for length in lengths:
            parts = exact(model, ids, length, begin)
            lines.append("%s %d %.12e %d" % (family, length, perplexity(parts), sum(map(len, parts))))
            print(lines[-1])
    (TESTS / "tiny" / "perplexity.txt").write_text("\n".join(lines) + "\n")


def of_rung(rung, path, ids, length, options):
    with tempfile.TemporaryDirectory(prefix="rung-perplexity-") as folder:
        write_ids(Path(folder) / "text.ids", ids)
        command = [str(rung), "perplexity", "-m", str(path), "--ids", str(Path(folder) / "text.ids"), "-c", str(length), "--json",
                   "-q", *options]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["perplexity"]


def measure(name, arguments):
    path = models.require(name)
    text = (models.require("llama-cpp-src") / "vendor" / "llama.cpp" / "docs" / "build.md").read_bytes() * 2
    peer = Peer(path)
    ids, begin, length = peer.tokenize(text, add_special=True)[:arguments.tokens], begin_of(peer), arguments.window

    def tell(label, value):
        print("%s %-24s %10.4f  %+.3f%%" % (name, label, value, 100 * (value / truth - 1)), flush=True)
    truth = perplexity(exact(Model(str(path)), ids, length, begin))
    print("%s %-24s %10.4f" % (name, "oracle, %d tokens" % len(ids), truth), flush=True)
    if arguments.rung:
        tell("rung exact f32", of_rung(arguments.rung, path, ids, length, ["--quant", "exact", "--kv", "f32"]))
        for kv in arguments.kv:
            tell("rung fast %s" % kv, of_rung(arguments.rung, path, ids, length, ["--kv", kv]))
        for kv in arguments.kv:
            tell("rung exact %s" % kv, of_rung(arguments.rung, path, ids, length, ["--quant", "exact", "--kv", kv]))
    tell("llama.cpp f16", perplexity(of_peer(peer, ids, length, begin, "f16")))
    peer.close()


def main():
    parser = argparse.ArgumentParser(description="Perplexity by the oracle.")
    parser.add_argument("names", nargs="+", choices=["tiny", "smollm2", "gemma3"])
    parser.add_argument("--rung", help="the command to measure")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--kv", nargs="+", default=["f16"])
    arguments = parser.parse_args()
    for name in arguments.names:
        if name == "tiny":
            record_tiny()
        else:
            measure(name, arguments)


if __name__ == "__main__":
    main()
