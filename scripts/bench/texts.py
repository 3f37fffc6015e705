# SPDX-License-Identifier: MIT
"""Prompts and texts of given lengths, cut from a committed text."""
import random
from pathlib import Path

PROMPTS = Path(__file__).resolve().parents[2] / "tests" / "models" / "prompts"


def ids_of(model, count):
    """The first `count` ids of the long text (scripts/oracle/make_prompts.py wrote them down)."""
    ids = (PROMPTS / model / "long.ids").read_text().split()
    if len(ids) < count:
        raise ValueError("the long text has %d tokens for %s, not %d" % (len(ids), model, count))
    return [int(word) for word in ids[:count]]


def text_of(tokenize, count):
    """Words of the long text that make exactly `count` tokens, and their ids; a word more or less moves the count by one or
    two, so that another first word is tried where no number of words fits."""
    words = (PROMPTS / "long.txt").read_text(encoding="utf-8").split()
    closest = None
    for start in range(8):
        low, high = start + 1, min(len(words), start + count + 8)
        while low < high:  # the most words with at most `count` tokens
            middle = (low + high + 1) // 2
            if len(tokenize(" ".join(words[start:middle]))) <= count:
                low = middle
            else:
                high = middle - 1
        text = " ".join(words[start:low])
        ids = tokenize(text)
        if closest is None or abs(len(ids) - count) < abs(len(closest[1]) - count):
            closest = (text, ids)
        if len(ids) == count or count > 64:  # a long text need not be exact, only the same for both engines
            break
    return closest


def sentences(count, seed=1):
    """Lines of 3 to some 75 words of the long text, short and long ones equally often by the logarithm."""
    rng = random.Random(seed)
    words = (PROMPTS / "long.txt").read_text(encoding="utf-8").split()
    out = []
    for _ in range(count):
        length = int(3 * 25 ** rng.random())
        start = rng.randrange(len(words) - length)
        out.append(" ".join(words[start:start + length]))
    return out


def random_ids(model_words, texts, length, seed=1):
    """Texts of exactly so many ids, [CLS] and [SEP] of `model_words` at their ends."""
    rng = random.Random(seed)
    first, last, low, high = model_words
    return [[first] + [rng.randrange(low, high) for _ in range(length - 2)] + [last] for _ in range(texts)]
