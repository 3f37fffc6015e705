#!/usr/bin/env python3
"""Write the files that the tests of the example programs read, and what ONNX Runtime makes of them.

    $(python3 scripts/venv.py bench) scripts/oracle/make_examples.py

Into tests/models/expect/examples: speech.wav (two words that Kokoro says, with silence around them), words.png (block
letters), and one text a program with its results. Models come from scripts/models.py; tests/models/test_examples.c
runs the programs and compares.
"""
import struct
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import venv  # noqa: E402

venv.enter("bench")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402

from models import model_path  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "tests/models/expect/examples"
HEAD = "# what ONNX Runtime gives; written by scripts/oracle/make_examples.py\n"
SAID = [50, 43, 158, 54, 57, 158, 16, 65, 76, 158, 54, 46, 156, 47, 158, 44]
FILES = ["tests/models/expect/examples/words.png", "tests/models/expect/examples/speech.wav", "LICENSE",
         "tests/fuzz/corpus/fuzz_onnx/net.onnx", "tests/templates/conversations.json"]


def session(name):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(str(model_path(name)), options, providers=["CPUExecutionProvider"])


def say(kokoro, tokens):
    style = np.load(model_path("kokoro-voice"))[len(tokens) - 1]
    return kokoro.run(None, {"tokens": np.array([[0, *tokens, 0]], np.int64), "style": style.astype(np.float32),
                             "speed": np.ones(1, np.float32)})[0].reshape(-1)


def levels(sound):
    """Decibels of twenty equal parts."""
    parts = sound[:len(sound) // 20 * 20].reshape(20, -1).astype(np.float64)
    return 10 * np.log10((parts ** 2).mean(1) + 1e-8)


def resample(sound, up, down):
    n = len(sound) * up // down
    spectrum = np.fft.rfft(sound)[:n // 2 + 1]
    return np.fft.irfft(spectrum, n) * up / down


def make_speech():
    kokoro = session("kokoro")
    sound = say(kokoro, SAID)
    (OUT / "speak.txt").write_text(HEAD + "samples %d\n" % len(sound) + " ".join("%.2f" % x for x in levels(sound)) + "\n")
    word = resample(sound / np.abs(sound).max() * 0.8, 2, 3)
    rng = np.random.default_rng(1)
    def quiet(seconds):
        return np.zeros(int(16000 * seconds))
    whole = np.concatenate([quiet(0.5), word, quiet(0.7), word, quiet(0.6)])
    whole = whole + 0.002 * rng.standard_normal(len(whole))
    data = np.clip(np.round(whole * 127) + 128, 0, 255).astype(np.uint8).tobytes()
    data += b"\x80" * (len(data) & 1)
    (OUT / "speech.wav").write_bytes(b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack(
        "<IHHIIHH", 16, 1, 1, 16000, 16000, 1, 8) + b"data" + struct.pack("<I", len(data)) + data)
    return (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128


def listen(sound):
    silero = session("silero-vad")
    state, before, rows = np.zeros((2, 1, 128), np.float32), np.zeros(64, np.float32), []
    for at in range(0, len(sound) - 511, 512):
        heard = np.concatenate([before, sound[at:at + 512]])
        p, state = silero.run(None, {"input": heard[None], "state": state, "sr": np.array(16000, np.int64)})
        rows.append(float(p[0, 0]))
        before = heard[-64:]
    (OUT / "vad.txt").write_text(HEAD + "".join("%.6f\n" % p for p in rows))


LETTERS = {"A": "7e1111117e", "B": "7f49494936", "C": "3e41414122", "E": "7f49494941", "H": "7f0808087f",
           "O": "3e4141413e", "P": "7f09090906"}
WORDS = [("PEACH", 40, 40), ("BEACH", 260, 40), ("COACH", 40, 130), ("HOPE", 260, 130)]


def make_picture():
    """Letters of 5 x 7 squares, smoothed, as a PNG of 8 bits a channel."""
    size = 6
    page = np.full((220, 480), 255.0)
    places = []
    for word, left, top in WORDS:
        places.append((left, top, len(word) * 6 * size - size, 7 * size))
        for letter in word:
            for c, bits in enumerate(bytes.fromhex(LETTERS[letter])):
                for row in range(7):
                    if bits >> row & 1:
                        page[top + row * size:top + (row + 1) * size, left + c * size:left + (c + 1) * size] = 20
            left += 6 * size
    for axis in (0, 1):
        for _ in range(3):
            page = (np.roll(page, 1, axis) + 2 * page + np.roll(page, -1, axis)) / 4
    rgb = np.repeat(page.round().astype(np.uint8)[:, :, None], 3, 2)
    raw = b"".join(b"\0" + row.tobytes() for row in rgb)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    (OUT / "words.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", rgb.shape[1], rgb.shape[0], 8, 2, 0, 0, 0)) +
        chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))
    return rgb, places


def scaled(part, width, height):
    """Bilinear, centres of pixels; planes from -1 to 1."""
    def axis(n, have):
        at = np.maximum((np.arange(n) + 0.5) * have / n - 0.5, 0)
        low = at.astype(int)
        return low, np.minimum(low + 1, have - 1), (at - low).astype(np.float32)
    x0, x1, wx = axis(width, part.shape[1])
    y0, y1, wy = axis(height, part.shape[0])
    part = part.astype(np.float32)
    rows = part[y0] * (1 - wy)[:, None, None] + part[y1] * wy[:, None, None]
    out = rows[:, x0] * (1 - wx)[None, :, None] + rows[:, x1] * wx[None, :, None]
    return (out[:, :, ::-1].transpose(2, 0, 1)[None] / 127.5 - 1).astype(np.float32)


def read_words(rgb, places):
    reader = session("ppocr-rec")
    characters = {p.key: p.value for p in onnx.load(str(model_path("ppocr-rec"))).metadata_props}["character"].split("\n")
    characters = [""] + characters + [" "]
    lines = []
    for left, top, width, height in places:
        grow = 8
        part = rgb[top - grow:top + height + grow, left - grow:left + width + grow]
        best = reader.run(None, {"x": scaled(part, -(-part.shape[1] * 48 // part.shape[0]), 48)})[0][0].argmax(1)
        text = "".join(characters[k] for i, k in enumerate(best) if k and (i == 0 or best[i - 1] != k))
        lines.append("%d %d %d %d %s" % (left, top, width, height, text))
    found = session("ppocr-det").run(None, {"x": scaled(rgb, 480, 224)})[0]
    (OUT / "ocr.txt").write_text(HEAD + "# of the map %.4f is text\n" % (found > 0.3).mean() + "\n".join(lines) + "\n")


def guess():
    import json
    labels = json.loads(model_path("magika-labels").read_text())["target_labels_space"]
    magika = session("magika")
    lines = []
    for name in FILES:
        data = (ROOT / name).read_bytes()
        front, back = data[:4096], data[-4096:]
        front, back = (front.strip(), back.strip()) if len(data) <= 4096 else (front.lstrip(), back.rstrip())
        front, back = list(front[:1024]), list(back[-1024:])
        row = front + [256] * (1024 - len(front)) + [256] * (1024 - len(back)) + back
        scores = magika.run(None, {"bytes": np.array([row], np.int32)})[0][0]
        lines.append("%s %s %.4f" % (name, labels[scores.argmax()], scores.max()))
    (OUT / "filetype.txt").write_text(HEAD + "\n".join(lines) + "\n")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    listen(make_speech())
    read_words(*make_picture())
    guess()


if __name__ == "__main__":
    main()
