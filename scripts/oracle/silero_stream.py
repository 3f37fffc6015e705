#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A minute of speech through Silero, streamed at both rates by examples/vad.c and by ONNX Runtime.

    silero_stream.py [--vad build/release/examples/vad] [--seconds N]

Every 32 ms take the state that the last ones gave, so errors would add up. The speech is that of the tests, said again
and again at other loudness with noise; at 8,000 Hz every second sample of it. Prints the largest difference of a
probability; exit 1 where it is above 1e-4.
"""
import argparse
import subprocess
import sys
import tempfile
import wave
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py
from models import cache_root

ROOT = Path(__file__).resolve().parents[2]
SPEECH = ROOT / "tests/models/expect/examples/speech.wav"
BOUND = 1e-4


def speech(np, seconds, rate):
    with wave.open(str(SPEECH)) as file:
        once = (np.frombuffer(file.readframes(file.getnframes()), np.uint8).astype(np.float64) - 128) / 128
    rng, parts, count = np.random.default_rng(7), [], 0
    while count < seconds * 16000:
        parts.append(once * rng.uniform(0.1, 1) + 0.003 * rng.standard_normal(len(once)))
        count += len(once)
    sound = np.concatenate(parts)[:seconds * 16000:16000 // rate]
    return np.clip(np.round(sound * 32767), -32768, 32767).astype("<i2")


def listen(np, session, sound, rate):
    fresh, before = rate * 32 // 1000, rate // 250
    state, heard, rows = np.zeros((2, 1, 128), np.float32), np.zeros(before, np.float32), []
    for at in range(0, len(sound) - fresh + 1, fresh):
        heard = np.concatenate([heard[-before:], sound[at:at + fresh].astype(np.float32) / 32768])
        p, state = session.run(None, {"input": heard[None], "state": state, "sr": np.array(rate, np.int64)})
        rows.append(float(p[0, 0]))
    return np.array(rows)


def main():
    import numpy as np
    import onnxruntime
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vad", type=Path, default=ROOT / "build/release/examples/vad")
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    model = cache_root() / "models" / "silero_vad.onnx"
    session, bad = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]), False
    for rate in (16000, 8000):
        sound = speech(np, options.seconds, rate)
        with tempfile.NamedTemporaryFile(suffix=".wav") as file:
            with wave.open(file.name, "wb") as out:
                out.setnchannels(1), out.setsampwidth(2), out.setframerate(rate)
                out.writeframes(sound.tobytes())
            done = subprocess.run([str(options.vad), "--each", str(model), file.name], capture_output=True, text=True, check=True)
        mine, want = np.array(done.stdout.split(), np.float64), listen(np, session, sound, rate)
        if len(mine) != len(want):
            print("%5d Hz: %d probabilities, ONNX Runtime gives %d" % (rate, len(mine), len(want)))
            bad = True
            continue
        error = float(np.abs(mine - want).max())
        bad |= error > BOUND
        print("%5d Hz, %d s: %d probabilities from %.4f to %.4f, largest difference %.1e" % (
            rate, options.seconds, len(want), want.min(), want.max(), error))
    return 1 if bad else 0


if __name__ == "__main__":
    venv.enter("bench")
    sys.exit(main())
