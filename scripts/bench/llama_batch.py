#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""llama.cpp decoding several sequences at once, through its library: no program of its build does it.

    llama_batch.py MODEL --sequences N --tokens N --threads N

Every step is one call with one token for each sequence, as many as llama-batched-bench makes. Prints JSON.
"""
import argparse
import json
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # noqa: E402  the script beside this folder, not the module
from bench.process import status_bytes  # noqa: E402


class Decoder:
    def __init__(self, path, sequences, tokens, threads):
        from oracle.peer import KV_TYPES, Peer
        self.peer = Peer(path)
        self.c, self.sequences = self.peer.c, sequences
        parameters = self.c.llama_context_default_params()
        parameters.n_ctx = sequences * max(256, (tokens + 1 + 255) // 256 * 256)
        parameters.n_batch = parameters.n_ubatch = max(32, sequences)
        parameters.n_seq_max = sequences
        parameters.type_k = parameters.type_v = KV_TYPES["f16"]
        parameters.n_threads = parameters.n_threads_batch = threads
        self.context = self.c.llama_init_from_model(self.peer.model, parameters)
        if not self.context:
            raise SystemExit("llama.cpp cannot make a context")
        self.batch = self.c.llama_batch_init(sequences, 0, 1)
        self.vocabulary = self.c.llama_vocab_n_tokens(self.peer.vocabulary)

    def run(self, tokens):
        """Seconds of decoding `tokens` tokens of every sequence from empty ones."""
        c, batch = self.c, self.batch
        c.llama_memory_clear(c.llama_get_memory(self.context), True)
        generator = random.Random(1)
        start = time.perf_counter()
        for position in range(tokens):
            batch.n_tokens = self.sequences
            for i in range(self.sequences):
                batch.token[i], batch.pos[i] = generator.randrange(self.vocabulary), position
                batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = 1, i, 1
            if c.llama_decode(self.context, batch) != 0:
                raise SystemExit("llama_decode failed")
            c.llama_synchronize(self.context)
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description="Measure llama.cpp decoding several sequences at once.")
    parser.add_argument("model")
    parser.add_argument("--sequences", type=int, required=True)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    import numpy  # noqa: F401  brought along by the wrapper, not the engine's memory
    before = status_bytes("VmRSS")
    decoder = Decoder(arguments.model, arguments.sequences, arguments.tokens, arguments.threads)
    decoder.run(2)
    seconds = decoder.run(arguments.tokens)
    print(json.dumps({"tokens_per_second": arguments.sequences * arguments.tokens / seconds, "peak": status_bytes("VmHWM") - before}))


if __name__ == "__main__":
    venv.enter()
    main()
