#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Do two engines compute the same? Logits of one text, position by position.

    agree.py NAME --rung PATH --ids FILE --threads N

Prints JSON: mean KL divergence from llama.cpp's distribution to rung's in nats, its 99% quantile, share of equal best tokens.
"""
import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # noqa: E402  the script beside this folder, not the module


def log_softmax(logits):
    import numpy as np
    logits = logits.astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def compare(path, rung, ids, threads, block=32):
    import numpy as np
    from oracle.peer import Peer
    from oracle.rung import rung_logits
    ours = rung_logits(rung, path, ids, ["--quant", "fast", "--kv", "f16", "-t", str(threads)])
    theirs = Peer(path).logits(ids, "f16", threads)
    divergence, same = [], 0
    for first in range(0, len(ids), block):
        a, b = log_softmax(theirs[first:first + block]), log_softmax(ours[first:first + block])
        divergence.append((np.exp(a) * (a - b)).sum(axis=1))
        same += int((a.argmax(axis=1) == b.argmax(axis=1)).sum())
    divergence = np.concatenate(divergence)
    return {"positions": len(ids), "mean_kl": float(divergence.mean()), "kl_99": float(np.quantile(divergence, 0.99)),
            "same_best": same / len(ids)}


def main():
    parser = argparse.ArgumentParser(description="Compare rung's logits of one text with llama.cpp's.")
    parser.add_argument("model", help="as scripts/models.py knows it")
    parser.add_argument("--rung", required=True)
    parser.add_argument("--ids", required=True, type=Path)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    import models
    ids = [int(word) for word in arguments.ids.read_text().split()]
    print(json.dumps(compare(models.require(arguments.model), arguments.rung, ids, arguments.threads)))


if __name__ == "__main__":
    venv.enter()
    main()
