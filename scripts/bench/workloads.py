# SPDX-License-Identifier: MIT
"""What is measured, how often, and what the project wants of it."""
import os
from typing import NamedTuple, Optional

MODELS = {"smollm2": "SmolLM2 135M", "gemma3": "Gemma 3 270M"}
FILES = {"smollm2": "SmolLM2-135M-Instruct, Q4_1 with a Q8_0 head", "gemma3": "gemma-3-270m, Q4_K_M: Q4_K, Q5_0, Q6_K, Q8_0"}
GOALS = {  # ratios to llama.cpp at all threads
    "smollm2-prompt-512": 7, "smollm2-prompt-128": 7, "smollm2-prompt-33": 5, "smollm2-decode": 2.5,
    "smollm2-decode-deep": 2.5, "smollm2-decode-4": 4, "smollm2-decode-16": 6,
    "gemma3-prompt-512": 4, "gemma3-prompt-128": 4, "gemma3-prompt-33": 3.5, "gemma3-decode": 1.6,
    "gemma3-decode-deep": 1.6, "gemma3-decode-4": 4, "gemma3-decode-16": 4.5,
    "smollm2-prompt-512-1t": 7, "smollm2-decode-1t": 2, "gemma3-prompt-512-1t": 4, "gemma3-decode-1t": 1.5,
    "smollm2-start": 1, "gemma3-start": 1, "smollm2-memory": 1, "gemma3-memory": 1,
}


class Workload(NamedTuple):
    name: str
    model: str
    kind: str            # prompt, decode, start, memory
    title: str
    threads: int
    tokens: int          # of the prompt, or to decode
    sequences: int = 1
    depth: int = 0       # positions that a decode begins at
    repeats: int = 7     # pairs of measurements
    quick_repeats: int = 2

    @property
    def goal(self) -> Optional[float]:
        return GOALS.get(self.name)

    def has(self, name):
        """Has all parts of a name: "prompt", "gemma3-decode", "512"."""
        parts = self.name.split("-") + [self.kind]
        return all(part in parts for part in name.split("-"))


def cores():
    return len(os.sched_getaffinity(0))


def of_model(model):
    all_threads = cores()
    title = MODELS[model]
    for tokens in (512, 128, 33):
        yield Workload("%s-prompt-%d" % (model, tokens), model, "prompt", "%s, prompt of %d" % (title, tokens), all_threads, tokens)
    if all_threads > 1:
        yield Workload("%s-prompt-512-1t" % model, model, "prompt", "%s, prompt of 512, one thread" % title, 1, 512, repeats=5)
    yield Workload("%s-decode" % model, model, "decode", "%s, decode" % title, all_threads, 64)
    if all_threads > 1:
        yield Workload("%s-decode-1t" % model, model, "decode", "%s, decode, one thread" % title, 1, 64, repeats=5)
    yield Workload("%s-decode-deep" % model, model, "decode", "%s, decode behind 512 positions" % title, all_threads, 64, depth=512)
    for sequences in (4, 16):
        yield Workload("%s-decode-%d" % (model, sequences), model, "decode", "%s, %d sequences" % (title, sequences), all_threads, 32,
                       sequences=sequences)
    yield Workload("%s-start" % model, model, "start", "%s, start to first token" % title, all_threads, 32, repeats=21, quick_repeats=5)
    yield Workload("%s-memory" % model, model, "memory", "%s, peak memory" % title, all_threads, 64, depth=512, repeats=2,
                   quick_repeats=1)


def choose(names):
    """Those called exactly like a name, else those that have all its parts; without names all. In the order of the report."""
    everything = [workload for model in MODELS for workload in of_model(model)]
    exact = {workload.name for workload in everything}
    return [w for w in everything if not names or w.name in names or any(name not in exact and w.has(name) for name in names)]
