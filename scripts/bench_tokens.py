#!/usr/bin/env python3
"""Speed of tokenisers beside Hugging Face's `tokenizers`, one thread each, the same text and the same ids.

    bench_tokens.py PROGRAM            PROGRAM is bench/tokens of a release build
    bench_tokens.py PROGRAM --only qwen2

The text is 1 MB: this project's documents and sources, and words of many scripts, in documents of some 4 KB. Vocabularies are
those of the llama-cpp-python sources (scripts/models.py fetch llama-cpp-src) and MiniLM's; `tokenizers` gets them with the
steps that record_vocabs.py checks. Both read the text several times, in turn, and the best time of each counts.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent))
import venv

venv.enter()

import models
from oracle import record_vocabs
from oracle.texts import WORDS
from oracle.weights import Weights

ROOT = Path(__file__).resolve().parents[1]
BYTES, DOCUMENT = 1000000, 4000


def documents():
    """Prose, code and other scripts, a third each."""
    def take(paths, most):
        text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
        return text[:most]
    rng = random.Random("rung token speed")
    words = [word for word in WORDS if not word.isascii()] + ["and", "the", "of"]
    scripts = ""
    while len(scripts.encode()) < BYTES // 3:
        scripts += " ".join(rng.choice(words) for _ in range(12)) + rng.choice([". ", ", ", "\n", "\n\n"])
    prose = take(sorted(ROOT.glob("docs/*.md")) + [ROOT / "README.md", ROOT / "CONTRIBUTING.md"], BYTES // 3)
    prose = (prose * 10)[:BYTES // 3]
    code = take(sorted((ROOT / "src").rglob("*.c")), BYTES // 3)
    out = []
    for text in (prose, code, scripts):
        at = 0
        while at < len(text):
            out.append(text[at:at + DOCUMENT])
            at += DOCUMENT
    rng.shuffle(out)
    return out


def digest(ids):
    value = 0xCBF29CE484222325
    for number in ids:
        value = (value ^ number) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return "%016x" % value


def peers():
    """name, the file that the program reads, tokenizers' object"""
    from tokenizers import AddedToken, Tokenizer
    folder = models.require("llama-cpp-src") / "vendor" / "llama.cpp" / "models"
    for name in ("gpt-2", "qwen2", "llama-bpe", "starcoder", "deepseek-llm", "falcon", "gemma-4", "bert-bge"):
        def make(path=folder / ("ggml-vocab-%s.gguf" % name)):
            weights = Weights(path)
            second = record_vocabs.SECOND[weights.get("tokenizer.ggml.model")](weights)
            second.tokenizer.add_tokens([AddedToken(token, normalized=False) for token, kind in zip(second.tokens, second.kinds)
                                         if kind == record_vocabs.USER_DEFINED])
            return second.tokenizer
        yield name, folder / ("ggml-vocab-%s.gguf" % name), make
    minilm = Path(models.require("minilm")) / "tokenizer.json"
    yield "minilm (json)", minilm, lambda: Tokenizer.from_file(str(minilm))
    for path in sorted((ROOT / "tests" / "tokens" / "json").glob("*.json")):
        if path.stem == "precompiled":  # its table is not in the file
            continue
        yield path.stem + " (json)", path, lambda path=path: Tokenizer.from_file(str(path))


def compare(program, file, texts, make, path, rounds):
    """Megabytes a second of both in every round, and whether the ids are the same."""
    tokenizer, ours, theirs = make(), [], []
    size = sum(len(text.encode()) for text in texts)
    tokenizer.encode_special_tokens = True
    tokenizer.no_padding()
    tokenizer.no_truncation()
    for _ in range(rounds):
        start = time.perf_counter()
        encoded = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
        theirs.append(size / (time.perf_counter() - start) / 1e6)
        line = subprocess.run([program, str(path), file.name, "3"], stdout=subprocess.PIPE, check=True).stdout.split()
        ours.append(float(line[0]))
    return ours, theirs, line[2].decode() == digest(number for one in encoded for number in one.ids)


def main():
    parser = argparse.ArgumentParser(description="Tokenisers beside Hugging Face's, one thread.", epilog="example: bench_tokens.py build/release/bench/tokens")
    parser.add_argument("program")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object for each, with all rounds")
    arguments = parser.parse_args()
    texts = documents()
    size = sum(len(text.encode()) for text in texts)
    if not arguments.json:
        print("%-20s %10s %12s %7s   (%.2f MB, %d documents)" % ("tokeniser", "rung MB/s", "tokenizers", "ratio", size / 1e6, len(texts)))
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(b"\0".join(text.encode() for text in texts))
        file.flush()
        for name, path, make in peers():
            if arguments.only not in name:
                continue
            ours, theirs, same = compare(arguments.program, file, texts, make, path, arguments.rounds)
            if arguments.json:
                print(json.dumps({"name": name, "rung": ours, "tokenizers": theirs, "same": same}), flush=True)
                continue
            print("%-20s %10.2f %12.2f %7.2f   %s" % (name, max(ours), max(theirs), max(ours) / max(theirs), "same ids" if same else "OTHER IDS"),
                  flush=True)


if __name__ == "__main__":
    main()
