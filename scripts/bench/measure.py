# SPDX-License-Identifier: MIT
"""One workload: engines in turn, A B A B, with the machine's moving figures taken before each round."""
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import models
import peers
from bench import checks, engines, generated, goals, machine, process, texts
from bench.engines import Taken
from bench.figures import EncoderShape, Shape, Spread
from bench.served import Served
from bench.workloads import DOTS, FEW_TOKENS, FMA, READING, SMALL_READING

FEWEST = 2      # rounds, however late it is
SLICE, QUICK_SLICE = 0.5, 0.2  # seconds that a loaded engine's turn takes at least
SCRIPTS = Path(__file__).resolve().parents[1]
CLS_SEP = (101, 102, 1000, 30000)  # of BERT's vocabularies: the ends, and where words lie


class Skipped(Exception):
    """A workload that cannot be measured here; the text says why."""


class Bench:
    """What all workloads of a run share."""

    def __init__(self, build, with_peers, quick, say):
        self.build, self.with_peers, self.quick, self.say = Path(build), with_peers, quick, say
        self.limits_program = self.build / "bench" / "limits"
        self.folder = tempfile.TemporaryDirectory(prefix="rung-bench-")
        self.made, self.until, self.pause = {}, 0.0, 0.0
        self.rung = self.engine("rung", "")

    def once(self, key, make):
        """What a key stands for, made when it is first asked for."""
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def engine(self, name, isa):
        makers = {"rung": lambda: engines.Rung(self.build, isa), "rung, one thread": lambda: engines.Rung(self.build, isa, name),
                  "llama.cpp": lambda: engines.LlamaCpp(peers.programs(isa or "native"))}
        return self.once((name, isa), makers.get(name) or (lambda: engines.GraphEngine(name)))

    def engines_of(self, workload):
        own = [self.engine("rung", workload.isa)]
        return own + [self.engine(name, workload.isa) for name in workload.peers] if self.with_peers else own

    def path(self, name):
        return Path(self.folder.name) / name

    def model(self, name):
        return self.once(("model", name), lambda: models.require(name))

    def shape(self, model):
        return self.once(("shape", model), lambda: Shape(self.model(model)))

    def limits(self, isa=""):
        return self.once(("limits", isa), lambda: machine.measure(self.limits_program, machine.cores(), quick=self.quick, isa=isa))

    def ids_file(self, model, count):
        """A file with the ids of a prompt."""
        def make():
            path = self.path("%s-%d.ids" % (model, count))
            path.write_text(" ".join(map(str, texts.ids_of(model, count))) + "\n")
            return path
        return self.once(("ids", model, count), make)

    def text(self, model, count):
        """A prompt of `count` tokens, its ids, and a file with it."""
        def make():
            text, ids = texts.text_of(lambda t: self.rung.tokenize(self.model(model), t), count)
            path = self.path("%s-%d.txt" % (model, count))
            path.write_text(text, encoding="utf-8")
            return text, ids, path
        return self.once(("text", model, count), make)

    def encoder(self, model):
        """Where an encoder lies, for rung and for the peers."""
        def make():
            folder, graph = Path(self.model(model)), self.path(model + ".onnx")
            if self.with_peers:  # a process of its own: the graph is large, and peaks of children begin with ours
                process.run([sys.executable, SCRIPTS / "oracle" / "bert_onnx.py", folder, graph])
            longest = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
            return SimpleNamespace(folder=folder, graph=graph, tokenizer=folder / "tokenizer.json", longest=longest, shape=EncoderShape(folder))
        return self.once(("encoder", model), make)

    def lines(self, name, lines):
        def make():
            path = self.path(name)
            path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
            return path
        return self.once(("lines", name), make)

    def sentences(self, workload):
        count = workload.sequences // 4 if self.quick else workload.sequences
        return count, self.lines("sentences-%d.txt" % count, texts.sentences(count))


# ---- rounds and what is made of them

def _rounds(bench, workload, take):
    """Calls take(engine) for each engine in turn, as often as asked or time allows; rows of {engine name: what it gave}, with
    the limits that were measured right before."""
    rows, wanted, began = [], workload.quick_repeats if bench.quick else workload.repeats, time.monotonic()
    for turn in range(wanted):
        spent = time.monotonic() - began
        if turn >= min(FEWEST, wanted) and time.monotonic() + spent / turn > bench.until:
            break
        time.sleep(bench.pause)
        limits = machine.measure(bench.limits_program, machine.cores(), workload.beside, True, workload.isa) if workload.beside else machine.Limits.none()
        row = {"limits": limits, "load": machine.load()}
        order = bench.engines_of(workload)
        for engine in order if turn % 2 == 0 else reversed(order):
            row[engine.name] = take(engine)
        rows.append(row)
    return rows


def _summary(bench, workload, rows, value=lambda taken: taken.value, peak=lambda taken: taken.peak, larger_is_better=True):
    """Spreads of each engine's figure and of its ratio to rung's of the same round (above 1: rung is better)."""
    names = [engine.name for engine in bench.engines_of(workload)]
    out = {key: getattr(workload, key) for key in ("name", "title", "kind", "section", "model", "threads", "tokens", "sequences", "depth", "isa")}
    out.update(peers=names[1:], shares={}, extra={}, load=Spread.of([row["load"] for row in rows]))
    out["engines"] = {name: Spread.of([value(row[name]) for row in rows]) for name in names}
    out["peak"] = {name: Spread.of([peak(row[name]) for row in rows if peak(row[name])]) for name in names}
    out["ratio"] = {}
    for name in names[1:]:
        ratios = [value(row["rung"]) / value(row[name]) for row in rows]
        out["ratio"][name] = Spread.of(ratios if larger_is_better else [1 / ratio for ratio in ratios])
    out["beside"] = {}
    for name in workload.beside.split(","):
        found = [row["limits"].get(name, 2 if name == "hand_over" else workload.threads) for row in rows]
        out["beside"][name] = Spread.of([one.median if name == "hand_over" else one.high for one in found if one])
    return out


def _share(out, rows, workload, label, limit, reached):
    """Adds each engine's share of a limit: reached(what it gave) per second against the row's limit."""
    shares = {}
    for name in out["engines"]:
        known = [(row, limit(row)) for row in rows]
        shares[name] = Spread.of([reached(row[name]) / most for row, most in known if most])
    if any(shares.values()):
        out["shares"][label] = shares


def _finished(out, workload):
    """Judged when everything else is known."""
    out["goals"] = goals.judge_all(workload.goals, out)
    return [out]


# ---- language models

def _prompt_share(bench, workload, out, rows):
    limits, threads = bench.limits(workload.isa), workload.threads
    dots = limits.best("dot_int8", threads)
    each = bench.shape(workload.model).prompt_operations(workload.tokens) / workload.tokens
    _share(out, rows, workload, DOTS if dots else FMA, lambda row: dots or limits.best("fma_f32", threads), lambda taken: taken.value * each)


def prompt(bench, workload):
    """Tokens per second, and the share of what bounds them."""
    path = bench.model(workload.model)
    rows = _rounds(bench, workload, lambda engine: engine.prompt(workload, path))
    out = _summary(bench, workload, rows)
    _prompt_share(bench, workload, out, rows)
    return _finished(out, workload)


def decode(bench, workload):
    path = bench.model(workload.model)
    rows = _rounds(bench, workload, lambda engine: engine.decode(workload, path))
    out = _summary(bench, workload, rows)
    read = bench.shape(workload.model).decode_bytes(workload.tokens, workload.sequences, workload.depth)
    each = read / (workload.tokens * workload.sequences)
    _share(out, rows, workload, READING, lambda row: row["limits"].best("read", workload.threads), lambda taken: taken.value * each)
    return _finished(out, workload)


def scaling(bench, workload):
    """Rung with several threads beside rung with one, on weights that are made up."""
    path = bench.once(("generated", workload.model), lambda: generated.write(bench.path(workload.model + ".gguf")))

    def take(engine):
        return engine.prompt(workload if engine.name == "rung" else workload._replace(threads=1), path)
    return _finished(_summary(bench, workload, _rounds(bench, workload, take), peak=lambda taken: None), workload)


def start(bench, workload):
    """Whole processes, from exec to the first token. Whether both say the same is shown: best tokens may lie close together."""
    path, (text, ids, _) = bench.model(workload.model), bench.text(workload.model, workload.tokens)
    commands = {engine.name: engine.start_command(workload, path, text) for engine in bench.engines_of(workload)}
    for command in commands.values():
        process.observe(command)  # the file is in the page cache for all
    rows = _rounds(bench, workload, lambda engine: process.observe(commands[engine.name]))
    out = _summary(bench, workload, rows, lambda done: done.total, lambda done: None, larger_is_better=False)
    first = {name: Spread.of([row[name].first for row in rows]) for name in commands}
    said = {name: rows[0][name].output.decode(errors="replace").strip() for name in commands}
    out["extra"] = {"first": first, "prompt_tokens": len(ids), "said": said, "says_same": len(set(said.values())) == 1}
    return _finished(out, workload)


def memory(bench, workload):
    """Most resident memory of whole processes that read and write the same, and rung's promise in figures."""
    path, (_, ids, text_file) = bench.model(workload.model), bench.text(workload.model, workload.depth)
    commands = {engine.name: engine.long_command(workload, path, text_file) for engine in bench.engines_of(workload)}
    rows = _rounds(bench, workload, lambda engine: process.observe(commands[engine.name]))
    out = _summary(bench, workload, rows, lambda done: done.peak, lambda done: None, larger_is_better=False)
    out["extra"] = {"prompt_tokens": len(ids), "promise": bench.rung.memory(workload, path)}
    return _finished(out, workload)


# ---- engines that stay loaded

def _served(bench, workload, commands, load, divide, result_width):
    """Loads every engine, compares their results, lets them take turns. divide(engine's answer): what a second is of."""
    seconds = QUICK_SLICE if bench.quick else SLICE
    with ExitStack() as stack:
        open_engines = {}
        for engine in bench.engines_of(workload):
            served = stack.enter_context(Served(commands[engine.name], engine.env))
            if load:
                served.ask(*load)
            open_engines[engine.name] = served
        files = {name: bench.path("result-" + name.replace(" ", "-")) for name in open_engines}
        for name, served in open_engines.items():
            served.ask("save", files[name])
        difference = checks.largest_difference(files, result_width)
        counts = {}

        def take(engine):
            found = open_engines[engine.name].ask("time", seconds)
            counts[engine.name] = found.get("steps")
            return Taken(divide(found), None)
        rows = _rounds(bench, workload, take)
        peaks = {name: served.peak() for name, served in open_engines.items()}
    return rows, peaks, {"difference": difference, "steps": counts}


def _served_summary(bench, workload, rows, peaks, extra, **more):
    out = _summary(bench, workload, rows, peak=lambda taken: None, **more)
    out["peak"] = {name: Spread.of([peak]) for name, peak in peaks.items()}
    out["extra"] = extra
    out["agrees"] = extra["difference"] is None or extra["difference"] <= checks.MOST_DIFFERENCE[workload.precision]
    return out


def _errors(bench, workload, files, path, names):
    """How far the vectors that each engine has just saved are from rung's in f32, which are within 1e-5 of a float64 oracle."""
    exact = bench.path("result-f32")
    with Served(bench.rung.encode_command(workload._replace(precision="f32"), files)) as served:
        served.ask("ids", path)
        served.ask("save", exact)
    return {name: checks.largest_difference({"rung": exact, name + " narrow": bench.path("result-" + name.replace(" ", "-"))},
                                            files.shape.width) for name in names}


def encode(bench, workload):
    """Texts of equal length as ids: seconds of one batch."""
    files = bench.encoder(workload.model)
    size = "%dx%d" % (workload.sequences, workload.tokens)
    ids = [" ".join(map(str, line)) for line in texts.random_ids(CLS_SEP, workload.sequences, workload.tokens)]
    if workload.precision != "f32":
        why = bench.rung.refuses(workload, files, bench.lines("one.txt", ["a line"]))
        if why:
            raise Skipped(why)
    commands = {engine.name: engine.encode_command(workload, files) for engine in bench.engines_of(workload)}
    rows, peaks, extra = _served(bench, workload, commands, ("ids", bench.lines("ids-" + size, ids)), lambda found: found["seconds"],
                                 files.shape.width)
    if workload.precision != "f32":
        extra["error"] = _errors(bench, workload, files, bench.lines("ids-" + size, ids), commands)
    out = _served_summary(bench, workload, rows, peaks, extra, larger_is_better=False)
    operations, weights = files.shape.operations(workload.sequences, workload.tokens), files.shape.weight_bytes
    threads, product = workload.threads, "fma_f32" if workload.precision == "f32" else "dot_bf16"
    _share(out, rows, workload, FMA if product == "fma_f32" else "bf16 dot products", lambda row: row["limits"].best(product, threads),
           lambda taken: operations / taken.value)
    if workload.precision == "f32" and workload.sequences * workload.tokens <= FEW_TOKENS:
        _share(out, rows, workload, SMALL_READING, lambda row: row["limits"].best("read_43mb", threads), lambda taken: weights / taken.value)
    return _finished(out, workload)


def _tokens_of(bench, files, path):
    """Tokens of each line, without padding."""
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(files.tokenizer))
    tokenizer.no_padding()
    tokenizer.enable_truncation(files.longest)
    return [len(encoded.ids) for encoded in tokenizer.encode_batch(path.read_text(encoding="utf-8").splitlines())]


def _tokens_share(bench, workload, out, rows, files, lengths, seconds):
    operations = sum(files.shape.operations(1, length) for length in lengths)
    _share(out, rows, workload, FMA, lambda row: row["limits"].best("fma_f32", workload.threads), lambda taken: operations / seconds(taken))
    out["extra"].update(texts=len(lengths), tokens=sum(lengths), longest=max(lengths),
                        rate={name: sum(lengths) / found[1] for name, found in out["engines"].items()})


def _batch(bench, workload, engine):
    """Texts of a batch that are fastest for a peer, tried out in a process that takes no part: it takes more memory."""
    def try_out():
        files, (_, path) = bench.encoder(workload.model), bench.sentences(workload)
        with Served(engine.texts_command(workload, files, 0)) as served:
            return served.ask("text", path)["batch"]
    return 0 if engine.name == "rung" else bench.once(("batch", engine.name), try_out)


def sentences(bench, workload):
    """Texts of mixed length, tokenising included, by engines that are loaded: seconds of all."""
    files, (_, path) = bench.encoder(workload.model), bench.sentences(workload)
    commands = {engine.name: engine.texts_command(workload, files, _batch(bench, workload, engine)) for engine in bench.engines_of(workload)}
    rows, peaks, extra = _served(bench, workload, commands, ("text", path), lambda found: found["seconds"], files.shape.width)
    out = _served_summary(bench, workload, rows, peaks, extra, larger_is_better=False)
    _tokens_share(bench, workload, out, rows, files, _tokens_of(bench, files, path), lambda taken: taken.value)
    return _finished(out, workload)


def embed(bench, workload):
    """The same as whole processes: the command, and a program around each peer, with the batch that was best for it."""
    files, (_, path) = bench.encoder(workload.model), bench.sentences(workload)
    out_files, commands = {}, {}
    for engine in bench.engines_of(workload):
        out_files[engine.name] = bench.path("vectors-%s.npy" % engine.name.replace(" ", "-"))
        commands[engine.name] = engine.embed_command(workload, files, path, out_files[engine.name], _batch(bench, workload, engine))
    rows = _rounds(bench, workload, lambda engine: process.observe(commands[engine.name]))
    difference = checks.largest_difference(out_files, files.shape.width)
    out = _served_summary(bench, workload, [{**row, **{n: Taken(row[n].total, row[n].peak) for n in commands}} for row in rows],
                          {}, {"difference": difference}, larger_is_better=False)
    out["peak"] = {name: Spread.of([row[name].peak for row in rows if row[name].peak]) for name in commands}
    _tokens_share(bench, workload, out, rows, files, _tokens_of(bench, files, path), lambda done: done.total)
    return _finished(out, workload)


def overhead(bench, workload):
    """Seconds a step of a chain of small ops. A peer that joins steps all the same is measured by those that it makes."""
    graph = bench.path("chain.onnx")
    if bench.with_peers:
        process.run([sys.executable, SCRIPTS / "bench" / "chain.py", graph, "--steps", workload.tokens])
    commands = {engine.name: engine.overhead_command(workload, graph) for engine in bench.engines_of(workload)}
    rows, peaks, extra = _served(bench, workload, commands, None, lambda found: found["seconds"] / (found.get("steps") or workload.tokens), 0)
    return _finished(_served_summary(bench, workload, rows, peaks, extra, larger_is_better=False), workload)


# ---- other models, as ONNX graphs

def _graph_inputs(bench, workload):
    """The model's file, and made-up inputs of the workload's size as files."""
    def make():
        from oracle import onnx_feeds
        folder = bench.path("inputs-" + workload.name)
        folder.mkdir()
        flags = onnx_feeds.save(onnx_feeds.make(workload.model, workload.size), folder)
        return SimpleNamespace(folder=folder, flags=flags, graph=onnx_feeds.path_of(workload.model))
    return bench.once(("graph", workload.name), make)


def graph(bench, workload):
    """Whole processes that load a graph, run it once, and then some times: the median of those, and the process's memory."""
    inputs = _graph_inputs(bench, workload)
    outputs = {engine.name: bench.path("outputs-%s-%s" % (workload.name, engine.name.replace(" ", "-"))) for engine in bench.engines_of(workload)}

    def take(engine, runs=None):
        done = process.observe(engine.graph_command(workload, inputs.graph, inputs, runs or workload.tokens, outputs[engine.name]))
        return Taken(json.loads(done.output.splitlines()[-1])["seconds"], done.peak)
    rows = _rounds(bench, workload, take)
    out = _summary(bench, workload, rows, larger_is_better=False)
    difference = checks.largest_relative(outputs)
    out["extra"] = {"difference": difference}
    out["agrees"] = workload.model == "kokoro" or difference is None or difference <= checks.MOST_RELATIVE
    return _finished(out, workload)


# ---- tokenisers

def tokens(bench, workload):
    """Every vocabulary is a result of its own."""
    rounds = workload.quick_repeats if bench.quick else workload.repeats
    found = process.run([sys.executable, SCRIPTS / "bench_tokens.py", bench.build / "bench" / "tokens", "--rounds", rounds, "--json"])
    out = []
    for row in map(json.loads, found.splitlines()):
        made = [{"load": machine.load(), "limits": machine.Limits.none(), "rung": Taken(ours, None), "tokenizers": Taken(theirs, None)}
                for ours, theirs in zip(row["rung"], row["tokenizers"])]
        one = workload._replace(name="%s-%s" % (workload.name, row["name"].split()[0]), title=row["name"])
        result = _summary(bench, one, made)
        result["extra"], result["agrees"] = {"same_ids": row["same"]}, row["same"]
        out += _finished(result, one)
    return out


KINDS = {"prompt": prompt, "decode": decode, "scaling": scaling, "start": start, "memory": memory, "encode": encode, "texts": sentences,
         "embed": embed, "overhead": overhead, "graph": graph, "tokens": tokens}
