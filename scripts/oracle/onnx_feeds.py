# SPDX-License-Identifier: MIT
"""Inputs for real ONNX models, made up but of the kind that they are for: what comparisons and measurements run them on."""
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import models  # noqa: E402

rng = np.random.default_rng(7)


GLYPHS = ("7e11 1111 7e", "7f49 4949 36", "3e41 4141 22", "7f49 4949 41", "7f08 0808 7f", "3e41 4141 3e", "7f09 0909 06")


def picture(batch, height, width):
    """Lines of block letters on paper: a detector that sees no text gives zeros, which compare with nothing."""
    page = np.full((height, width), 0.9, np.float32)
    size = 2 if height < 100 else 3
    for top in range(height // 8, height - 7 * size, 14 * size):
        left, k = width // 10, top
        while left + 6 * size < width * 0.9:
            columns = bytes.fromhex(GLYPHS[k % len(GLYPHS)].replace(" ", ""))
            for c, bits in enumerate(columns):
                for row in range(7):
                    if bits >> row & 1:
                        page[top + row * size:top + (row + 1) * size, left + c * size:left + (c + 1) * size] = -0.8
            left, k = left + 6 * size, k + 1
    return {"x": np.broadcast_to(page, (batch, 3, height, width)) + 0.02 * rng.standard_normal((batch, 3, height, width), np.float32)}


def speech(samples):
    t = np.arange(samples) / 16000
    return (0.3 * np.sin(2 * np.pi * 140 * t) * (1 + np.sin(2 * np.pi * 3 * t)) + 0.05 * rng.standard_normal(samples)).astype(np.float32)


def silero(batch, rate):
    # the recurrent state that the model itself makes of noise: zeros would hide the recurrent weights
    return {"input": np.stack([speech(576 if rate == 16000 else 288) for _ in range(batch)]),
            "state": 0.1 * rng.standard_normal((2, batch, 128)).astype(np.float32), "sr": np.array(rate, np.int64)}


def bert(batch, length):
    mask = np.ones((batch, length), np.int64)
    mask[-1, length // 2 + 1:] = 0
    return {"input_ids": rng.integers(1000, 20000, (batch, length)), "attention_mask": mask,
            "token_type_ids": np.zeros((batch, length), np.int64)}


def magika(batch):
    return {"bytes": rng.integers(0, 257, (batch, 2048)).astype(np.int32)}


VOICE = "kokoro-voice"  # of scripts/models.py: styles by number of tokens, [510, 1, 256]


def kokoro(tokens):
    """Phonemes at random in a real voice: with a style at random the model gives noise that any rounding turns over."""
    ids = np.concatenate([[0], rng.integers(16, 150, tokens - 2), [0]])[None]
    return {"tokens": ids.astype(np.int64), "style": np.load(models.require(VOICE))[tokens].astype(np.float32), "speed": np.ones(1, np.float32)}


def make(name, size):
    makers = {"magika": magika, "ppocr-det": picture, "ppocr-rec": picture, "silero": silero, "minilm": bert, "kokoro": kokoro}
    return makers[name](*size)


FILES = {"magika": "magika", "ppocr-det": "ppocr-det", "ppocr-rec": "ppocr-rec", "silero": "silero-vad", "kokoro": "kokoro"}


def path_of(name):
    """The model's file; MiniLM is written as a graph first."""
    if name != "minilm":
        return Path(models.require(FILES[name]))
    made = models.cache_root() / "onnx" / "minilm-rows.onnx"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, str(Path(__file__).parent / "bert_onnx.py"), str(models.require("minilm")), str(made), "--rows"], check=True)
    return made


def save(feeds, folder):
    """Writes NAME.npy for each input and returns the flags that give them to `rung run`."""
    flags = []
    if "sr" in feeds:  # Silero squeezes an axis if it is 1, and has a graph for each rate: both must be known
        flags += ["--bind", "input_1=%d" % feeds["input"].shape[1]]
    for name, value in feeds.items():
        np.save("%s/%s.npy" % (folder, name), np.array(value, order="C"))
        flags += ["-i", "%s=%s/%s.npy" % (name, folder, name)]
    return flags
