#!/usr/bin/env python3
"""BERT-like encoders in float64, written from the papers and from what sentence-transformers' files say, independently of
the library.

    bert.py minilm --record                   writes tests/models/expect/minilm
    bert.py minilm --rung PATH [--lines N]    compares the command's vectors with these, on lines of many lengths

Model(directory).vectors(lists of ids) gives one row per list.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import numpy as np
from safetensors.numpy import load_file

import models


def erf(x):
    """The error function to a relative error of some 1e-15: a series below 3, else a continued fraction (Abramowitz and Stegun 7.1)."""
    a = np.abs(x)
    near = np.minimum(a, 3.0)
    term, total = near.copy(), near.copy()
    for n in range(1, 80):
        term = term * near * near * 2 / (2 * n + 1)
        total += term
    series = 2 / np.sqrt(np.pi) * np.exp(-near * near) * total
    far = np.maximum(a, 3.0)
    fraction = np.zeros_like(far)
    for n in range(120, 0, -1):
        fraction = (n / 2) / (far + fraction)
    tail = 1 - np.exp(-far * far) / (np.sqrt(np.pi) * (far + fraction))
    return np.sign(x) * np.where(a < 3, series, tail)


ACTIVATIONS = {
    "gelu": lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))),
    "gelu_new": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))),
    "relu": lambda x: np.maximum(x, 0),
}


class Model:
    def __init__(self, directory):
        directory = Path(directory)
        self.config = json.loads((directory / "config.json").read_text())
        weights = load_file(str(directory / "model.safetensors"))
        prefix = {"bert": "bert.", "roberta": "roberta.", "xlm-roberta": "roberta."}[self.config["model_type"]]
        self.weights = {k.removeprefix(prefix): v.astype(np.float64) for k, v in weights.items()}
        self.pooling, self.unit, self.longest = "mean", False, self.config["max_position_embeddings"]
        if (directory / "modules.json").exists():
            modules = json.loads((directory / "modules.json").read_text())
            modes = json.loads((directory / modules[1]["path"] / "config.json").read_text())
            self.pooling = next(k.removeprefix("pooling_mode_") for k, v in modes.items() if v is True)
            self.unit = len(modules) > 2
        if (directory / "sentence_bert_config.json").exists():
            self.longest = json.loads((directory / "sentence_bert_config.json").read_text())["max_seq_length"]

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x, name):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred ** 2).mean(-1, keepdims=True)
        return centred / np.sqrt(variance + self.config["layer_norm_eps"]) * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def hidden(self, ids):
        """Rows of the last layer for one text."""
        w, c = self.weights, self.config
        first = c["pad_token_id"] + 1 if c["model_type"].endswith("roberta") else 0
        heads, width = c["num_attention_heads"], c["hidden_size"]
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][first:first + len(ids)]
        x = self.norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(c["num_hidden_layers"]):
            p = "encoder.layer.%d." % layer
            q, k, v = (self.linear(x, p + "attention.self." + n).reshape(len(ids), heads, -1).transpose(1, 0, 2) for n in ("query", "key", "value"))
            score = q @ k.transpose(0, 2, 1) / np.sqrt(width // heads)
            weight = np.exp(score - score.max(-1, keepdims=True))
            y = (weight / weight.sum(-1, keepdims=True)) @ v
            y = self.linear(y.transpose(1, 0, 2).reshape(len(ids), width), p + "attention.output.dense")
            x = self.norm(x + y, p + "attention.output.LayerNorm")
            y = ACTIVATIONS[c["hidden_act"]](self.linear(x, p + "intermediate.dense"))
            x = self.norm(x + self.linear(y, p + "output.dense"), p + "output.LayerNorm")
        return x

    def vector(self, ids, pooling=None, unit=None, dims=None):
        pooling, unit = pooling or self.pooling, self.unit if unit is None else unit
        if not len(ids):
            return np.zeros(dims or self.config["hidden_size"])
        x = self.hidden(np.asarray(ids))
        x = {"mean_tokens": x.mean(0), "mean": x.mean(0), "cls_token": x[0], "lasttoken": x[-1], "max_tokens": x.max(0)}[pooling][:dims]
        return x / max(np.sqrt((x ** 2).sum()), 1e-12) if unit else x

    def vectors(self, lists, **options):
        return np.array([self.vector(ids, **options) for ids in lists])


# ---- recorded and live comparisons

TESTS = Path(__file__).resolve().parents[2] / "tests" / "models"
WORDS = "the of cat river and quickly house blue under seven machine learning model vector distance query answer small large 1984 café naïve Zürich".split()


def tokenizer_of(directory):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(Path(directory) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def lines_of_many_lengths(count, longest, seed=1):
    """Lines of 1 to about `longest` tokens, short and long ones equally often by the logarithm."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, max(1, int(np.exp(rng.uniform(0, np.log(longest * 0.8))))))) for _ in range(count)]


def record(directory):
    """Writes tests/models/expect/minilm/: the ids and the vector of every line of lines.txt."""
    folder = TESTS / "expect" / "minilm"
    tokenizer = tokenizer_of(directory)
    ids = [tokenizer.encode(line).ids for line in (folder / "lines.txt").read_text().splitlines()]
    (folder / "lines.ids").write_text("".join(" ".join(map(str, line)) + "\n" for line in ids))
    np.save(folder / "vectors.npy", Model(directory).vectors(ids).astype("<f8"))
    print("%d lines of %s tokens" % (len(ids), ", ".join(str(len(line)) for line in ids)))


def compare(directory, rung, count, longest, bound):
    model, tokenizer = Model(directory), tokenizer_of(directory)
    lines = lines_of_many_lengths(count, longest)
    ids = [tokenizer.encode(line).ids for line in lines]
    keep = [i for i, line in enumerate(ids) if len(line) <= longest]
    lines, ids = [lines[i] for i in keep], [ids[i] for i in keep]
    with tempfile.TemporaryDirectory() as folder:
        text, found = Path(folder) / "lines.txt", Path(folder) / "vectors.npy"
        text.write_text("".join(line + "\n" for line in lines))
        subprocess.run([rung, "embed", "-m", str(directory), "-f", str(text), "-o", str(found), "-c", str(longest), "-q"], check=True)
        got = np.load(found)
    worst, start = 0.0, time.monotonic()
    for i, line in enumerate(ids):
        worst = max(worst, np.abs(model.vector(line) - got[i]).max()) if np.isfinite(got[i]).all() else np.inf
        if time.monotonic() - start > 10:
            print("%d of %d, largest difference so far %.3g" % (i + 1, len(ids), worst), flush=True)
            start = time.monotonic()
    print("%d lines of %d to %d tokens: largest difference %.3g" % (len(ids), min(map(len, ids)), max(map(len, ids)), worst))
    return worst <= bound


def main():
    parser = argparse.ArgumentParser(description="BERT-like encoders in float64: record, or compare with rung embed.",
                                     epilog="example: bert.py minilm --rung build/release/rung --lines 1000")
    parser.add_argument("model", help="minilm, or a folder")
    parser.add_argument("--record", action="store_true", help="write tests/models/expect/minilm")
    parser.add_argument("--rung", help="the command to compare with")
    parser.add_argument("--lines", type=int, default=100)
    parser.add_argument("--longest", type=int, default=512, help="most tokens of a line")
    parser.add_argument("--bound", type=float, default=1e-5)
    options = parser.parse_args()
    directory = models.require("minilm") if options.model == "minilm" else Path(options.model)
    if options.record:
        record(directory)
    if options.rung and not compare(directory, options.rung, options.lines, options.longest, options.bound):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
