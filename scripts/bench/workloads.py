# SPDX-License-Identifier: MIT
"""What is measured, beside whom, how often, and what the project wants of it."""
from typing import NamedTuple, Tuple

from bench.goals import Goal
from bench.machine import cores

MODELS = {"smollm2": "SmolLM2 135M", "gemma3": "Gemma 3 270M", "minilm": "MiniLM"}
FILES = {"smollm2": "SmolLM2-135M-Instruct, Q4_1 with a Q8_0 head", "gemma3": "gemma-3-270m, Q4_K_M: Q4_K, Q5_0, Q6_K, Q8_0",
         "minilm": "all-MiniLM-L6-v2, f32"}
LLAMA, GRAPHS = ("llama.cpp",), ("ONNX Runtime", "OpenVINO")
READING, SMALL_READING, FMA, DOTS = "reading memory", "reading 43 MB", "f32 multiply-adds", "int8 dot products"
LEAST_MEMORY = (Goal("memory"),)
SCALING_THREADS = 8


def ratio(wanted, stretch=None):
    return (Goal("ratio", wanted, stretch),)


def share(wanted, of):
    return (Goal("share", wanted, of=of),)


class Workload(NamedTuple):
    name: str
    model: str
    kind: str            # a key of measure.KINDS
    section: str         # of the report
    title: str
    threads: int
    tokens: int          # of a prompt or of each text, to decode, steps of the chain, or runs of a graph
    peers: Tuple = LLAMA
    sequences: int = 1   # or texts
    depth: int = 0       # positions that a decode begins behind
    size: Tuple = ()     # of a graph's inputs
    isa: str = ""        # cap of the instruction set, for the peer a build without later ones; "": none
    precision: str = "f32"
    repeats: int = 7     # rounds of all engines
    quick_repeats: int = 2
    beside: str = "read,hand_over"  # limits that are measured before each round; "": none
    goals: Tuple = ()    # all of these, and of each one of its alternatives

    def has(self, name):
        """Has all parts of a name: "prompt", "gemma3-decode", "512"."""
        parts = self.name.split("-") + [self.kind, self.section, self.isa]
        return all(part in parts for part in name.split("-"))


# ---- language models, beside llama.cpp: (ratio, stretch)

SPEED = {
    "smollm2": {"prompt-512": (7, 8), "prompt-128": (7, 8), "prompt-33": (5, 6), "prompt-512-1t": (7, None), "decode": (2.5, None),
                "decode-1t": (2, None), "decode-deep": (2.5, None), "decode-4": (4, None), "decode-16": (6, 8)},
    "gemma3": {"prompt-512": (4, None), "prompt-128": (4, None), "prompt-33": (3.5, None), "prompt-512-1t": (4, None), "decode": (1.6, None),
               "decode-1t": (1.5, None), "decode-deep": (1.6, None), "decode-4": (4, None), "decode-16": (4.5, 6)},
}
DECODE_SHARE, DEEP = 0.9, 2000


def language(model):
    all_threads, title = cores(), MODELS[model]

    def work(name, kind, words, threads, tokens, wishes=(), **more):
        goals = (ratio(*SPEED[model][name]), *wishes, LEAST_MEMORY)
        return Workload("%s-%s" % (model, name), model, kind, kind, "%s, %s" % (title, words), threads, tokens, goals=goals, **more)
    full = share(DECODE_SHARE, READING)
    for tokens in (512, 128, 33):
        yield work("prompt-%d" % tokens, "prompt", "prompt of %d" % tokens, all_threads, tokens)
    if all_threads > 1:
        yield work("prompt-512-1t", "prompt", "prompt of 512, one thread", 1, 512, repeats=5)
    yield work("decode", "decode", "decode", all_threads, 64, (full,))
    if all_threads > 1:
        yield work("decode-1t", "decode", "decode, one thread", 1, 64, repeats=5)
    yield work("decode-deep", "decode", "decode behind %d positions" % DEEP, all_threads, 64, (full,), depth=DEEP, repeats=3)
    for sequences in (4, 16):
        yield work("decode-%d" % sequences, "decode", "%d sequences" % sequences, all_threads, 32, sequences=sequences)
    yield Workload("%s-start" % model, model, "start", "start", "%s, start to first token" % title, all_threads, 32, repeats=15,
                   quick_repeats=5, beside="", goals=(ratio(1),))
    yield Workload("%s-memory" % model, model, "memory", "memory", "%s, peak memory" % title, all_threads, 64, depth=512, repeats=2,
                   quick_repeats=1, beside="", goals=(ratio(1),))


def older(model):
    """With AVX2 and nothing later, for both."""
    def work(name, kind, words, tokens, wanted):
        return Workload("%s-%s-avx2" % (model, name), model, kind, "avx2", "%s, %s" % (MODELS[model], words), cores(), tokens, isa="avx2",
                        repeats=5, goals=(ratio(wanted), LEAST_MEMORY))
    yield work("prompt-512", "prompt", "prompt of 512", 512, 2)
    yield work("decode", "decode", "decode", 64, 1)


def scaling():
    """The shape of a model with weights made up: needs no file, and no peer where there is none."""
    yield Workload("smollm2-shape-scaling", "smollm2-shape", "scaling", "scaling", "SmolLM2's shape, prompt of 512, %d threads" % SCALING_THREADS,
                   SCALING_THREADS, 512, peers=("rung, one thread",), repeats=5, goals=(ratio(6),))


# ---- encoders, beside what runs ONNX graphs

FEW_TOKENS, MANY_TOKENS = 64, 1024  # up to here reading the weights bounds it, from there on multiplying


def encoder_goals(tokens):
    if tokens <= FEW_TOKENS:
        return ((*ratio(1.3), *share(0.95, SMALL_READING)), LEAST_MEMORY)
    return (ratio(1.1),) + ((share(0.88, FMA),) if tokens >= MANY_TOKENS else ()) + (LEAST_MEMORY,)


def encoders():
    all_threads, beside = cores(), "read_43mb,fma_f32,hand_over"
    for texts, length in ((1, 8), (1, 37), (1, 64), (1, 128), (1, 512), (8, 37), (8, 128)):
        yield Workload("minilm-%dx%d" % (texts, length), "minilm", "encode", "encode", "MiniLM f32, %d x %d" % (texts, length), all_threads,
                       length, GRAPHS, sequences=texts, repeats=5, beside=beside, goals=encoder_goals(texts * length))
    for texts, length in ((1, 128), (8, 128)):
        yield Workload("minilm-%dx%d-bf16" % (texts, length), "minilm", "encode", "encode", "MiniLM bf16, %d x %d" % (texts, length),
                       all_threads, length, GRAPHS[1:], sequences=texts, precision="bf16", repeats=5, beside="read_43mb,dot_bf16,hand_over",
                       goals=(ratio(1.1), LEAST_MEMORY))
    for name, kind, words in (("sentences", "texts", "engines loaded"), ("sentences-process", "embed", "whole processes")):
        yield Workload("minilm-" + name, "minilm", kind, "texts", "%d sentences, %s" % (SENTENCES, words), all_threads, 0, GRAPHS,
                       sequences=SENTENCES, repeats=3, quick_repeats=1, beside=beside, goals=(ratio(1.5), LEAST_MEMORY))


# ---- other models as ONNX graphs: sizes, and runs of a measurement

GRAPH_SIZES = {
    "silero": ("Silero VAD", 2000, ((1, 16000), (1, 8000), (5, 16000))),
    "magika": ("Magika", 20, ((1,), (8,))),
    "ppocr-det": ("PP-OCR detector", 10, ((1, 320, 320), (1, 640, 640), (1, 736, 1280))),
    "ppocr-rec": ("PP-OCR recogniser", 10, ((1, 48, 96), (1, 48, 320), (6, 48, 320), (6, 48, 1000))),
    "kokoro": ("Kokoro", 2, ((20,), (60,), (150,))),
    "minilm": ("MiniLM as a graph", 20, ((1, 8), (1, 37), (1, 128), (1, 512), (8, 128))),
}


def graphs():
    for model, (title, runs, sizes) in GRAPH_SIZES.items():
        for size in sizes:
            text = "x".join(map(str, size))
            yield Workload("onnx-%s-%s" % (model, text), model, "graph", "graph", "%s, %s" % (title, text), cores(), runs, GRAPHS[:1], size=size,
                           repeats=3, beside="fma_f32,hand_over", goals=(ratio(0.67), LEAST_MEMORY))


SENTENCES = 1000


def others():
    yield Workload("overhead", "", "overhead", "overhead", "1,000 dependent steps on 16 elements, one thread", 1, 1000, GRAPHS, repeats=7,
                   beside="hand_over", goals=((Goal("below", 0.2e-6, unit="us a step", scale=1e6),), (Goal("peers"),), LEAST_MEMORY))
    yield Workload("tokenisers", "", "tokens", "tokens", "Tokenisers, one thread", 1, 0, ("tokenizers",), repeats=2, quick_repeats=1)


def everything():
    for model in ("smollm2", "gemma3"):
        yield from language(model)
        yield from older(model)
    yield from encoders()
    yield from graphs()
    yield from others()
    if cores() >= SCALING_THREADS:
        yield from scaling()


def choose(names):
    """Those called exactly like a name, else those that have all its parts; without names all. In the order of the report."""
    known = list(everything())
    exact = {workload.name for workload in known}
    return [w for w in known if not names or w.name in names or any(name not in exact and w.has(name) for name in names)]
