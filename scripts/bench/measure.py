# SPDX-License-Identifier: MIT
"""One workload: engines in turn, A B A B, with the machine's moving figures taken before each pair."""
import tempfile
import time
from pathlib import Path

from bench import machine, process, texts
from bench.figures import Shape, Spread

FEWEST = 2  # pairs, however late it is


class Bench:
    """What all workloads of a run share."""

    def __init__(self, build, engines, paths, quick, deadline, say):
        self.limits_program = Path(build) / "bench" / "limits"
        self.engines, self.paths, self.quick, self.deadline, self.say = engines, paths, quick, deadline, say
        self.folder = tempfile.TemporaryDirectory(prefix="rung-bench-")
        self.shapes, self.files, self.starts = {}, {}, {}

    def shape(self, model):
        if model not in self.shapes:
            self.shapes[model] = Shape(self.paths[model])
        return self.shapes[model]

    def ids_file(self, model, count):
        """A file with the ids of a prompt."""
        key = ("ids", model, count)
        if key not in self.files:
            path = Path(self.folder.name) / ("%s-%d.ids" % (model, count))
            path.write_text(" ".join(map(str, texts.ids_of(model, count))) + "\n")
            self.files[key] = path
        return self.files[key]

    def text(self, model, count):
        """A prompt of `count` tokens, its ids, and a file with it."""
        key = ("text", model, count)
        if key not in self.files:
            rung = self.engines[0]
            text, ids = texts.text_of(lambda t: rung.tokenize(self.paths[model], t), count)
            path = Path(self.folder.name) / ("%s-%d.txt" % (model, count))
            path.write_text(text, encoding="utf-8")
            self.files[key] = (text, ids, path)
        return self.files[key]


def _repeats(bench, workload):
    return workload.quick_repeats if bench.quick else workload.repeats


def _pairs(bench, workload, take):
    """Calls take(engine) for each engine in turn, as often as asked or time allows; rows of {engine name: value}, with the
    limits that were measured right before."""
    rows, wanted, began = [], _repeats(bench, workload), time.monotonic()
    for turn in range(wanted):
        spent = time.monotonic() - began
        if turn >= min(FEWEST, wanted) and time.monotonic() + spent / turn > bench.deadline:
            break
        time.sleep(bench.pause)
        row = {"limits": machine.beside(bench.limits_program, bench.threads), "load": machine.load()}
        for engine in bench.engines if turn % 2 == 0 else reversed(bench.engines):
            row[engine.name] = take(engine)
        rows.append(row)
    return rows


def _summary(bench, workload, rows, value, larger_is_better=True):
    """Spreads of each engine's figure and of the paired ratio of rung to each peer (above 1: rung is better)."""
    out = {"name": workload.name, "title": workload.title, "kind": workload.kind, "model": workload.model, "threads": workload.threads,
           "tokens": workload.tokens, "sequences": workload.sequences, "depth": workload.depth, "goal": workload.goal,
           "engines": {}, "ratio": {}, "load": Spread.of([row["load"] for row in rows])}
    for engine in bench.engines:
        out["engines"][engine.name] = Spread.of([value(row[engine.name]) for row in rows])
    own = bench.engines[0].name
    for peer in bench.engines[1:]:
        ratios = [value(row[own]) / value(row[peer.name]) for row in rows]
        out["ratio"][peer.name] = Spread.of(ratios if larger_is_better else [1 / ratio for ratio in ratios])
    read = [row["limits"].best("read", workload.threads) for row in rows]
    hand_over = [row["limits"].get("hand_over", 2) for row in rows]
    out["read"] = Spread.of([figure for figure in read if figure])
    out["hand_over"] = Spread.of([figure.median for figure in hand_over if figure])
    return out


def speed(bench, workload):
    """Prompts and decoding: tokens per second, and the share of what bounds them."""
    model, path = workload.model, bench.paths[workload.model]
    ids = bench.ids_file(model, workload.depth) if workload.depth else None
    take = (lambda engine: engine.prompt(workload, path)) if workload.kind == "prompt" else (lambda engine: engine.decode(workload, path, ids))
    rows = _pairs(bench, workload, take)
    out = _summary(bench, workload, rows, lambda rate: rate)
    shape, threads = bench.shape(model), workload.threads
    out["share"] = {}
    if workload.kind == "prompt":
        out["bound"] = "int8 dot products" if bench.limits.best("dot_int8", threads) else "f32 multiply-adds"
        peak = bench.limits.best("dot_int8", threads) or bench.limits.best("fma_f32", threads)
        each = shape.prompt_operations(workload.tokens) / workload.tokens
        for engine in bench.engines if peak else []:
            out["share"][engine.name] = Spread.of([row[engine.name] * each / peak for row in rows])
        return out
    out["bound"] = "reading memory"
    each = shape.decode_bytes(workload.tokens, workload.sequences, workload.depth) / (workload.tokens * workload.sequences)
    for engine in bench.engines:
        out["share"][engine.name] = Spread.of([row[engine.name] * each / row["limits"].best("read", threads) for row in rows])
    return out


def start(bench, workload):
    """Whole processes, from exec to the first token. Whether both say the same is shown: best tokens may lie close together."""
    path = bench.paths[workload.model]
    text, ids, _ = bench.text(workload.model, workload.tokens)
    commands = {engine.name: engine.start_command(workload, path, text) for engine in bench.engines}
    for command in commands.values():
        process.observe(command)  # the file is in the page cache for both
    rows = _pairs(bench, workload, lambda engine: process.observe(commands[engine.name]))
    out = _summary(bench, workload, rows, lambda done: done.total, larger_is_better=False)
    out["first"] = {engine.name: Spread.of([row[engine.name].first for row in rows]) for engine in bench.engines}
    out["prompt_tokens"] = len(ids)
    said = {engine.name: rows[0][engine.name].output.decode(errors="replace").strip() for engine in bench.engines}
    out["said"] = said
    out["says_same"] = len(set(said.values())) == 1
    return out


def memory(bench, workload):
    """Most resident memory of whole processes that read and write the same, and rung's promise in figures."""
    path = bench.paths[workload.model]
    _, ids, text_file = bench.text(workload.model, workload.depth)
    commands = {engine.name: engine.long_command(workload, path, text_file) for engine in bench.engines}
    rows = _pairs(bench, workload, lambda engine: process.observe(commands[engine.name], watch_memory=True))
    out = _summary(bench, workload, rows, lambda done: done.peak, larger_is_better=False)
    out["prompt_tokens"] = len(ids)
    out["promise"] = bench.engines[0].memory(workload, path)
    return out


KINDS = {"prompt": speed, "decode": speed, "start": start, "memory": memory}
