#!/usr/bin/env python3
"""Write the id files of the five prompts from their texts.

    make_prompts.py smollm2|gemma3 ...

Ids come from llama.cpp's tokeniser, special tokens parsed, BOS added where the file asks for it. The chat prompt goes on
with the oracle's own greedy answer, so that a test which feeds it is forced along the oracle's text. Run only when a text
changes; the id files are committed, and `record.py` reads them.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import models
from oracle.families import Model
from oracle.idfile import write_ids
from oracle.peer import Peer

PROMPTS = Path(__file__).resolve().parents[2] / "tests" / "models" / "prompts"
NAMES = ("short", "chat", "code", "languages", "long")
LONGEST = 600
ANSWER = 48


def greedy(model, ids, count):
    """The oracle's continuation, whole forward passes each time."""
    ids = list(ids)
    for _ in range(count):
        ids.append(int(model.logits(model.hidden(ids)[-1:]).argmax()))
    return ids


def main():
    parser = argparse.ArgumentParser(description="Write the id files of the five prompts from their texts.")
    parser.add_argument("model", nargs="+", choices=["smollm2", "gemma3"])
    for name in parser.parse_args().model:
        path = models.require(name)
        peer, model = Peer(path, vocabulary_only=True), Model(path)
        for prompt in NAMES:
            own = PROMPTS / ("%s.%s.txt" % (prompt, name))
            text = (own if own.exists() else PROMPTS / (prompt + ".txt")).read_bytes()
            ids = peer.tokenize(text, special=True, add_special=True)[:LONGEST]
            if prompt == "chat":
                ids = greedy(model, ids, ANSWER)
                print(peer.detokenize(ids).decode(errors="replace"))
            (PROMPTS / name).mkdir(exist_ok=True)
            write_ids(PROMPTS / name / (prompt + ".ids"), ids)
            print("%s %s: %d ids" % (name, prompt, len(ids)))


if __name__ == "__main__":
    main()
