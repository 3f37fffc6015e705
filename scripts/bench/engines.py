# SPDX-License-Identifier: MIT
"""The engines under comparison. Each measurement is a process of its own: load, one run to warm up, one run that counts."""
import json
import sys
from pathlib import Path

from bench import process
from bench.process import EngineError

CONTEXT = 2048  # positions, where an engine must be told


class Rung:
    name = "rung"

    def __init__(self, build):
        self.program = Path(build) / "rung"
        self.memory_program = Path(build) / "bench" / "memory"

    def tokenize(self, model, text):
        out = process.run([self.program, "tokenize", "-m", model, "-q"], text.encode())
        return [int(word) for word in out.split()]

    def _bench(self, workload, model, prompt, decode):
        out = process.run([self.program, "bench", "-m", model, "-p", prompt, "-n", decode, "--sequences", workload.sequences,
                           "--repeat", 1, "-t", workload.threads, "--json", "-q"])
        rows = [json.loads(line) for line in out.splitlines() if line.startswith(b"{")]
        wanted = [row for row in rows if row["work"] == workload.kind]
        if len(wanted) != 1:
            raise EngineError("rung bench gave %d results for %s" % (len(wanted), workload.name))
        return wanted[0]["tokens_per_second"]

    def prompt(self, workload, model):
        return self._bench(workload, model, workload.tokens, 0)

    def decode(self, workload, model, ids_file):
        if not workload.depth:
            return self._bench(workload, model, 1, workload.tokens)
        # The bench command has no depth: a real text is read, then gone on with. Sampling counts here.
        out = process.run([self.program, "generate", "-m", model, "--ids", ids_file, "-n", workload.tokens + 1, "-c", CONTEXT,
                           "-t", workload.threads, "--temp", 0, "--ignore-eos", "--json", "-q"])
        return json.loads(out)["decode_tokens_per_second"]

    def start_command(self, workload, model, text):
        return [self.program, "generate", "-m", model, "-p", text, "-n", 1, "-c", CONTEXT, "-t", workload.threads, "--temp", 0, "-q"]

    def long_command(self, workload, model, text_file):
        return [self.program, "generate", "-m", model, "-f", text_file, "-n", workload.tokens, "-c", CONTEXT, "-t", workload.threads,
                "--temp", 0, "--ignore-eos", "-q"]

    def memory(self, workload, model):
        """The promise itself: prediction by class, the account, the kernel's figures."""
        return json.loads(process.run([self.memory_program, model, "--prompt", workload.depth, "--decode", workload.tokens,
                                       "--context", CONTEXT, "--threads", workload.threads, "--json"]))


class LlamaCpp:
    name = "llama.cpp"

    def __init__(self, programs):
        self.bench = Path(programs) / "llama-bench"
        self.completion = Path(programs) / "llama-completion"

    def _bench(self, workload, model, *sizes):
        out = process.run([self.bench, "-m", model, "-t", workload.threads, "-r", 1, "-o", "json", *sizes])
        rows = json.loads(out)
        if len(rows) != 1:
            raise EngineError("llama-bench gave %d results for %s" % (len(rows), workload.name))
        return rows[0]["samples_ts"][0]

    def prompt(self, workload, model):
        return self._bench(workload, model, "-p", workload.tokens, "-n", 0)

    def decode(self, workload, model, ids_file):
        del ids_file
        if workload.sequences == 1:
            return self._bench(workload, model, "-p", 0, "-n", workload.tokens, "-d", workload.depth)
        script = Path(__file__).with_name("llama_batch.py")
        out = process.run([sys.executable, script, model, "--sequences", workload.sequences, "--tokens", workload.tokens,
                           "--threads", workload.threads])
        return json.loads(out)["tokens_per_second"]

    def _completion(self, workload, model, predict, *prompt):
        return [self.completion, "-m", model, *prompt, "-n", predict, "-c", CONTEXT, "-t", workload.threads, "--temp", 0, "--no-warmup",
                "-no-cnv", "--no-display-prompt", "--ignore-eos"]

    def start_command(self, workload, model, text):
        return self._completion(workload, model, 1, "-p", text)

    def long_command(self, workload, model, text_file):
        return self._completion(workload, model, workload.tokens, "-f", text_file)
