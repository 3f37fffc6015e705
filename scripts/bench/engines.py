# SPDX-License-Identifier: MIT
"""The engines under comparison: how each is told to do a piece of work. What is done once is a process of its own: load, one
run to warm up, one run that counts. Encoders and chains stay loaded and take turns (served.py)."""
import json
import sys
from pathlib import Path
from typing import NamedTuple, Optional

from bench import process
from bench.process import EngineError

HERE = Path(__file__).resolve().parent
CONTEXT = 2048  # positions, where an engine must be told
POLICY = {"f32": "f32", "bf16": "mixed"}  # what rung calls a precision: OpenVINO's bf16 multiplies so and adds up in f32


class Taken(NamedTuple):
    """One measurement: a rate or seconds, and the most resident memory of the process, where it is known."""
    value: float
    peak: Optional[int]


class Rung:
    def __init__(self, build, isa="", name="rung"):
        self.name, build = name, Path(build)
        self.program, self.folder = build / "rung", build / "bench"
        self.env = {"RUNG_MAX_ISA": isa} if isa else None

    def tokenize(self, model, text):
        out = process.run([self.program, "tokenize", "-m", model, "-q"], text.encode())
        return [int(word) for word in out.split()]

    def _bench(self, workload, model, work, prompt, decode):
        out = process.run([self.program, "bench", "-m", model, "-p", prompt, "-n", decode, "--sequences", workload.sequences, "--depth",
                           workload.depth, "--repeat", 1, "-t", workload.threads, "--json", "-q"], env=self.env)
        rows = [json.loads(line) for line in out.splitlines() if line.startswith(b"{")]
        wanted = [row for row in rows if row["work"] == work]
        if len(wanted) != 1:
            raise EngineError("rung bench gave %d results for %s" % (len(wanted), workload.name))
        return Taken(wanted[0]["tokens_per_second"], wanted[0].get("resident_bytes"))

    def prompt(self, workload, model):
        return self._bench(workload, model, "prompt", workload.tokens, 0)

    def decode(self, workload, model):
        return self._bench(workload, model, "decode", 1, workload.tokens)

    def start_command(self, workload, model, text):
        return [self.program, "generate", "-m", model, "-p", text, "-n", 1, "-c", CONTEXT, "-t", workload.threads, "--temp", 0, "-q"]

    def long_command(self, workload, model, text_file):
        return [self.program, "generate", "-m", model, "-f", text_file, "-n", workload.tokens, "-c", CONTEXT, "-t", workload.threads,
                "--temp", 0, "--ignore-eos", "-q"]

    def memory(self, workload, model):
        """The promise itself: prediction by class, the account, the kernel's figures."""
        return json.loads(process.run([self.folder / "memory", model, "--prompt", workload.depth, "--decode", workload.tokens,
                                       "--context", CONTEXT, "--threads", workload.threads, "--json"]))

    def bits(self, model, threads):
        done = process.run([self.folder / "bits", model, "--threads", threads], env=self.env, codes=(0, 1))
        return json.loads(done) if done else {"settings": 0, "rows": 0, "equal": False}

    def encode_command(self, workload, files, threads=None, rows=None):
        command = [self.folder / "encode", files.folder, "--threads", threads or workload.threads]
        command += ["--longest", workload.tokens] if workload.tokens else []
        command += ["--rows", rows] if rows else []
        return command + (["--precision", POLICY[workload.precision]] if workload.precision != "f32" else [])

    def texts_command(self, workload, files, _batch):
        return self.encode_command(workload, files)

    def refuses(self, workload, files, line):
        """Why an encoder's precision is not there; "" where it is."""
        command = [self.program, "embed", "-m", files.folder, "-f", line, "--precision", POLICY[workload.precision], "-q"]
        return process.complaint(command)

    def embed_command(self, workload, files, lines, out, _batch):
        return [self.program, "embed", "-m", files.folder, "-f", lines, "-o", out, "-t", workload.threads, "--truncate", "-q"]

    def overhead_command(self, workload, _chain):
        return [self.folder / "overhead", "--steps", workload.tokens]

    def graph_command(self, workload, graph, inputs, runs, out):
        return [self.program, "run", "-m", graph, *inputs.flags, "-t", workload.threads, "--repeat", runs, "--json", "-q", "-o", out]


class LlamaCpp:
    name = "llama.cpp"

    def __init__(self, programs):
        self.bench = Path(programs) / "llama-bench"
        self.completion = Path(programs) / "llama-completion"

    def _bench(self, workload, model, *sizes):
        done = process.observe([self.bench, "-m", model, "-t", workload.threads, "-r", 1, "-o", "json", *sizes])
        rows = json.loads(done.output)
        if len(rows) != 1:
            raise EngineError("llama-bench gave %d results for %s" % (len(rows), workload.name))
        return Taken(rows[0]["samples_ts"][0], done.peak or None)

    def prompt(self, workload, model):
        return self._bench(workload, model, "-p", workload.tokens, "-n", 0)

    def decode(self, workload, model):
        if workload.sequences == 1:
            return self._bench(workload, model, "-p", 0, "-n", workload.tokens, "-d", workload.depth)
        found = json.loads(process.run([sys.executable, HERE / "llama_batch.py", model, "--sequences", workload.sequences, "--tokens",
                                        workload.tokens, "--threads", workload.threads]))
        return Taken(found["tokens_per_second"], found["peak"])

    def _completion(self, workload, model, predict, *prompt):
        return [self.completion, "-m", model, *prompt, "-n", predict, "-c", CONTEXT, "-t", workload.threads, "--temp", 0, "--no-warmup",
                "-no-cnv", "--no-display-prompt", "--ignore-eos"]

    def start_command(self, workload, model, text):
        return self._completion(workload, model, 1, "-p", text)

    def long_command(self, workload, model, text_file):
        return self._completion(workload, model, workload.tokens, "-f", text_file)


class GraphEngine:
    """What runs ONNX graphs, through serve.py."""
    env = None

    def __init__(self, name):
        self.name, self.key = name, name.lower().replace(" ", "")

    def _command(self, graph, workload, *more):
        return [sys.executable, HERE / "serve.py", self.key, graph, "--threads", workload.threads, *more]

    def encode_command(self, workload, files):
        return self._command(files.graph, workload, "--precision", workload.precision, "--tokenizer", files.tokenizer, "--longest", files.longest)

    def texts_command(self, workload, files, batch):
        return self.encode_command(workload, files) + ["--batch", batch]

    def embed_command(self, workload, files, lines, out, batch):
        return self.texts_command(workload, files, batch) + ["--once", lines, out]

    def overhead_command(self, workload, chain):
        return self._command(chain, workload, "--plain")

    def graph_command(self, workload, graph, inputs, runs, out):
        return self._command(graph, workload, "--inputs", inputs.folder, "--repeat", runs, "--outputs", out)
