# SPDX-License-Identifier: MIT
"""Sections of the report: title, what is to be said, units, and columns that only they have."""
from typing import Callable, NamedTuple

MEGA = 1e6


def _nothing(_results):
    return []


class Section(NamedTuple):
    name: str      # of its workloads, and of its plot's file
    title: str
    unit: str      # of an engine's column
    plot: str
    axis: str
    text: Callable
    scale: float = 1.0
    more: Callable = _nothing  # results -> [(head, cell of a result)]
    classes: bool = False      # memory by class below it


def _spread(found, scale):
    return "%.3g (%.3g to %.3g)" % tuple(found[i] * scale for i in (1, 0, 2)) if found else "-"


def _by_engine(result, found, form):
    return ", ".join("%s %s" % (name, form(value)) for name, value in found.items() if value is not None) or "-"


def _start_columns(_results):
    return [("ms to the first byte", lambda r: _by_engine(r, r["extra"]["first"], lambda v: _spread(v, 1e3))),
            ("says the same", lambda r: "yes" if r["extra"]["says_same"] else "no")]


def _memory_columns(_results):
    def promised(p):
        return "%.1f" % ((p["predicted_most"] + p["host_most"]) / MEGA)
    return [("predicted + host, MB", lambda r: promised(r["extra"]["promise"])),
            ("VmHWM growth, MB", lambda r: "%.1f" % ((r["extra"]["promise"]["most"] - r["extra"]["promise"]["before"]) / MEGA))]


def _difference(_results):
    return [("largest difference", lambda r: "-" if r["extra"]["difference"] is None else "%.1e" % r["extra"]["difference"])]


def _encode_columns(results):
    """An error is stated where an engine was asked for less than f32."""
    return _difference(results) + [("error against f32", lambda r: _by_engine(r, r["extra"]["error"], lambda v: "%.1e" % v) if "error" in r["extra"]
                                    else "-")]


def _texts_columns(results):
    return [("tokens a second", lambda r: _by_engine(r, r["extra"]["rate"], lambda v: "%.0f" % v))] + _difference(results)


def _tokens_columns(_results):
    return [("same ids", lambda r: "yes" if r["extra"]["same_ids"] else "no")]


def _prompts(_results):
    return "Share: multiplications and additions of all matrix products and of attention, against the peak named beside it."


def _decoding(results):
    deep = sorted({r["depth"] for r in results if r["depth"]})
    return ("Share: bytes of weights, once for each step of all sequences, and of the keys and values that rows see, against the read bandwidth "
            "measured right before. From an empty state%s. A share above 100%% means that part of what is read came from a cache." % (
                " unless a depth is named: there sequences already hold so many positions" if deep else ""))


def _older(_results):
    return ("Rung held to AVX2 by `RUNG_MAX_ISA=avx2`, llama.cpp built for AVX2, FMA, F16C and BMI2 and nothing later. Limits are those "
            "of the same instructions.")


def _start(results):
    return ("Whole processes with a prompt of %d tokens and one token made, `rung generate` against `llama-completion --no-warmup`. File in the "
            "page cache." % results[0]["extra"]["prompt_tokens"])


def _memory(results):
    return ("VmHWM of whole processes: load, prompt of %d, %d tokens decoded, context of 2048, keys and values as f16. Beside it the promise: what was "
            "predicted before loading plus class `host`, and how far VmHWM rose from just before the load (`bench/memory.c`)." % (
                results[0]["extra"]["prompt_tokens"], results[0]["tokens"]))


def _encode(_results):
    return ("One batch of texts of equal length, ids in, one vector of length one for each out, engines loaded. The peers run the same weights as an "
            "ONNX graph of plain operators with open batch and length (`scripts/oracle/bert_onnx.py`), with all their optimisations. Shares: "
            "operations of all matrix products and of attention against f32 multiply-adds, and the bytes of all layers' weights, once, against reading "
            "43 MB again and again. The largest difference is that of a number of a vector; so is the error of bf16, against rung in f32.")


def _texts(results):
    extra = results[0]["extra"]
    return ("%d lines of mixed length, %d tokens in all, the longest of %d: text in, vectors out. Loaded engines cut the lines into tokens and run them "
            "each time; whole processes load and write a file too, and their memory is that of the process, a peer's interpreter included. The "
            "peers use `tokenizers`, sort by length, and pad batches of the size that was fastest of several." % (
                extra["texts"], extra["tokens"], extra["longest"]))


def _overhead(results):
    steps = results[0]["extra"]["steps"]
    fewer = ["%s makes %d kernels of them all the same and is measured by those" % (name, count) for name, count in steps.items() if count]
    return ("Eight ops in turn on 16 elements, each on the result of the one before it, nothing fused or folded, graph optimisations of the peers off. "
            "Time of a run by the number of steps%s." % ("; " + "; ".join(fewer) if fewer else ""))


def _graph(_results):
    return ("The files as their packages ship them, MiniLM as `scripts/oracle/bert_onnx.py` writes it; inputs made up "
            "(`scripts/oracle/onnx_feeds.py`), outputs compared: largest difference over largest value. Seconds of a run by an engine that is loaded; "
            "memory is that of the process, a peer's interpreter included. Kokoro enlarges every rounding (`scripts/oracle/onnx_models.py`), so that "
            "its sound is compared elsewhere.")


def _scaling(_results):
    return "Weights are made up (`scripts/bench/generated.py`), so that no file and no peer is needed: rung beside itself with one thread."


def _tokens(_results):
    return ("`scripts/bench_tokens.py`: 1 MB of prose, code and words of many scripts in documents of 4 KB, beside Hugging Face's `tokenizers` with the "
            "same ids. The first rows are vocabularies of GGUF files, by the names of llama.cpp's; the others are `tokenizer.json` files.")


RATE, MILLISECONDS = "tokens per second", "milliseconds, less is better"
SECTIONS = (
    Section("prompt", "Prompts", "tok/s", "Reading a prompt", RATE, _prompts),
    Section("decode", "Decoding", "tok/s", "Decoding", RATE, _decoding),
    Section("avx2", "AVX2 only", "tok/s", "With AVX2 and nothing later", RATE, _older),
    Section("scaling", "More threads", "tok/s", "Reading a prompt, generated weights", RATE, _scaling),
    Section("encode", "Encoders", "ms", "One batch of an encoder", MILLISECONDS, _encode, 1e3, _encode_columns),
    Section("graph", "Models as ONNX graphs", "ms", "One run of a graph", MILLISECONDS, _graph, 1e3, _difference),
    Section("texts", "Sentences of mixed length", "ms", "Sentences of mixed length", MILLISECONDS, _texts, 1e3, _texts_columns),
    Section("start", "Start to first token", "ms to the end", "Start to first token, whole process", MILLISECONDS, _start, 1e3, _start_columns),
    Section("memory", "Memory", "MB", "Most resident memory", "MB, less is better", _memory, 1 / MEGA, _memory_columns, classes=True),
    Section("overhead", "Overhead of a step", "us a step", "A step beside its work", "microseconds, less is better", _overhead, 1e6, _difference),
    Section("tokens", "Tokenisers", "MB/s", "Cutting text into tokens", "megabytes per second", _tokens, 1.0, _tokens_columns),
)
