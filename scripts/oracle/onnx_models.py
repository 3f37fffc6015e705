#!/usr/bin/env python3
"""Compare real ONNX models with ONNX Runtime: largest error over largest value of every output, at five sizes each.

    onnx_models.py [--tool build/release/rung] [--repeat N | --bits] [MODEL ...]

MODEL: magika, ppocr-det, ppocr-rec, silero, minilm, kokoro; all by default. Each size runs from one compiled template
whose dimensions are open (rung run), so what is compared is the same program at five sizes. With --repeat the median
times of both stand beside the errors. With --bits the bits of each size from one compiled file, made for the largest, are
compared with those of a compile for the size, and nothing with ONNX Runtime. Exit: 0 if all are within the bound (1e-4; see
LIMITS) or the same, 1 if not.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import venv  # noqa: E402

venv.enter("bench")

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402

from models import cache_root, say  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
BOUND = 1e-4
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


def kokoro(tokens):
    ids = np.concatenate([[0], rng.integers(16, 150, tokens - 2), [0]])[None]
    return {"tokens": ids.astype(np.int64), "style": 0.1 * rng.standard_normal((1, 256)).astype(np.float32),
            "speed": np.ones(1, np.float32)}


MODELS = {
    "magika": ("magika-standard_v3_3.onnx", [{"bytes": rng.integers(0, 257, (n, 2048)).astype(np.int32)} for n in (1, 2, 3, 5, 8)]),
    "ppocr-det": ("ch_PP-OCRv4_det_infer.onnx", [picture(1, h, w) for h, w in ((320, 320), (64, 96), (96, 64), (160, 224), (640, 640))]),
    "ppocr-rec": ("ch_PP-OCRv4_rec_infer.onnx", [picture(n, 48, w) for n, w in ((1, 96), (1, 320), (2, 64), (3, 200), (6, 320))]),
    "silero": ("silero_vad.onnx", [silero(n, rate) for n, rate in ((1, 16000), (1, 8000), (2, 16000), (3, 8000), (5, 16000))]),
    "minilm": (None, [bert(n, length) for n, length in ((1, 8), (1, 37), (2, 19), (1, 128), (8, 64))]),
    "kokoro": ("kokoro-82m-int8.onnx", [kokoro(n) for n in (8, 20, 33, 60, 100)]),
}


def path_of(name):
    file = MODELS[name][0]
    if file:
        return cache_root() / "models" / file
    made = cache_root() / "onnx" / "minilm.onnx"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, str(Path(__file__).parent / "bert_onnx.py"),
                        str(cache_root() / "models" / "all-MiniLM-L6-v2"), str(made), "--rows"], check=True)
    return made


def symbols_of(session, feeds):
    """The extents of open dimensions in one set of inputs, by the names that Rung gives them."""
    out = {}
    for value in session.get_inputs():
        for axis, (name, extent) in enumerate(zip(value.shape, feeds[value.name].shape)):
            if not isinstance(name, int) or name <= 0:
                plain = isinstance(name, str) and name != "?"
                out[name if plain else "%s_%d" % (value.name, axis)] = extent
    return out


def same_bits(tool, path, session, all_feeds):
    """How many sizes get other bits from one compiled file, made for the largest, than from a compile for just that size."""
    most = {}
    for feeds in all_feeds:
        for name, extent in symbols_of(session, feeds).items():
            most[name] = max(most.get(name, 0), extent)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        made = folder + "/model.rung"
        ceiling = [word for pair in most.items() for word in ("--ceiling", "%s=%d" % pair)]
        subprocess.run([str(tool), "compile", "-m", str(path), "-o", made, "--pack", *ceiling], check=True, capture_output=True)
        for feeds in all_feeds:
            one, own = run_rung(tool, made, feeds, 1)[0], run_rung(tool, path, feeds, 1)[0]
            bad += any(one[key].shape != own[key].shape or one[key].tobytes() != own[key].tobytes() for key in own)
    return bad


def run_rung(tool, model, feeds, repeat):
    with tempfile.TemporaryDirectory() as folder:
        command = [str(tool), "run", "-m", str(model), "-o", folder + "/out", "--json", "--repeat", str(repeat)]
        if "sr" in feeds:  # Silero squeezes an axis if it is 1, and has a graph for each rate: both must be known
            command += ["--bind", "input_1=%d" % feeds["input"].shape[1]]
        for name, value in feeds.items():
            np.save("%s/%s.npy" % (folder, name), np.array(value, order="C"))
            command += ["-i", "%s=%s/%s.npy" % (name, folder, name)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[-600:])
        seconds = json.loads(done.stdout)["seconds"]
        return {path.stem: np.load(path) for path in Path(folder, "out").iterdir()}, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build/release/rung")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--bits", action="store_true", help="one compiled file for all sizes: the bits of a compile for each?")
    parser.add_argument("model", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    bad = 0
    for name in options.model:
        path = path_of(name)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 2
        session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
        if options.bits:
            if name == "silero":  # a graph for each rate and length: batches are what is open
                continue
            wrong = same_bits(options.tool, path, session, MODELS[name][1])
            print("%-10s %d sizes from one compile, %d with other bits than from their own" % (name, len(MODELS[name][1]), wrong))
            bad += wrong
            continue
        for feeds in MODELS[name][1]:
            label = " ".join("x".join(map(str, v.shape)) for v in feeds.values() if v.ndim > 1)
            want = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
            times = []
            for _ in range(options.repeat):
                start = time.perf_counter()
                session.run(None, feeds)
                times.append(time.perf_counter() - start)
            try:
                got, seconds = run_rung(options.tool, path, feeds, options.repeat)
            except RuntimeError as error:
                print("%-10s %-28s %s" % (name, label, error))
                bad += 1
                continue
            for key, value in want.items():
                mine = got[key.replace("/", "_")]
                if mine.shape != value.shape:
                    print("%-10s %-28s %s: shape %s instead of %s" % (name, label, key, mine.shape, value.shape))
                    bad += 1
                    continue
                error = np.abs(mine.astype(np.float64) - value).max() / max(np.abs(value).max(), 1e-30)
                good = error <= BOUND
                bad += not good
                print("%-10s %-28s %-16s error %.2e%s   rung %.2f ms, ONNX Runtime %.2f ms" % (
                    name, label, key[:16], error, "" if good else "  TOO LARGE", seconds * 1e3, sorted(times)[len(times) // 2] * 1e3))
                sys.stdout.flush()
    say("%d outside the bound" % bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
