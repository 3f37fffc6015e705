#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A peer that runs ONNX graphs, kept loaded and told what to do: what bench/serve.h is for rung, with the same commands.

    serve.py onnxruntime|openvino GRAPH --threads N [--precision bf16] [--tokenizer FILE --longest N] [--plain]
    serve.py ... --once LINES OUT [--batch N]     no commands: vectors of the lines of a file, then the end
    serve.py ... --inputs DIR --repeat N --outputs DIR   no commands: N runs on NAME.npy, a line of JSON with the median, then the end

Each engine gets what serves it best: all its optimisations unless --plain asks for none, its own threads spinning between
runs, inputs bound in place. Texts are tokenised all at once, sorted by length, padded to the longest of a batch; the size of
the batch is tried out when the file is loaded.
"""
import argparse
import json
import os
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # noqa: E402  the script beside this folder, not the module
from bench.process import status_bytes  # noqa: E402

BATCHES = (4, 8, 16, 32, 64)
SAMPLE = 4  # every fourth text is enough to choose the batch


class OnnxRuntime:
    def __init__(self, graph, threads, precision, plain):
        import onnxruntime as ort
        if precision != "f32":
            raise SystemExit("serve.py: ONNX Runtime has no %s on the CPU" % precision)
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        level = ort.GraphOptimizationLevel
        options.graph_optimization_level = level.ORT_DISABLE_ALL if plain else level.ORT_ENABLE_ALL
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        options.log_severity_level = 3
        self.session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        self.inputs = [value.name for value in self.session.get_inputs()]
        self.output = self.session.get_outputs()[0].name

    def run(self, feeds):
        return self.session.run([self.output], feeds)[0]

    def hold(self, feeds):
        """Two calls: one that runs on inputs bound once, one that gives its result."""
        binding = self.session.io_binding()
        for name, array in feeds.items():
            binding.bind_cpu_input(name, array)
        binding.bind_output(self.output, "cpu")
        return lambda: self.session.run_with_iobinding(binding), lambda: binding.copy_outputs_to_cpu()[0]

    def steps(self):
        return None  # without optimisations every node is one


class OpenVino:
    def __init__(self, graph, threads, precision, plain):
        import openvino as ov
        self.ov = ov
        settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": precision}
        if plain:  # its nearest to none: subgraphs are not generated as one kernel
            settings["SNIPPETS_MODE"] = "DISABLE"
        core = ov.Core()
        model = core.read_model(graph)
        self.compiled = core.compile_model(model, "CPU", settings)
        self.request = self.compiled.create_infer_request()
        self.inputs = [port.get_any_name() for port in self.compiled.inputs]

    def run(self, feeds):
        return next(iter(self.request.infer(feeds, share_inputs=True, share_outputs=False).values()))

    def hold(self, feeds):
        tensors = {name: self.ov.Tensor(array, shared_memory=True) for name, array in feeds.items()}

        def run():
            for name, tensor in tensors.items():
                self.request.set_tensor(name, tensor)
            self.request.start_async()
            self.request.wait()
        return run, lambda: self.request.get_output_tensor(0).data.copy()

    def steps(self):
        """Kernels that a run really goes through: some nodes become one all the same."""
        kinds = [str(node.get_rt_info()["layerType"].astype(str)) for node in self.compiled.get_runtime_model().get_ordered_ops()]
        return sum(kind not in ("Input", "Output", "Const") for kind in kinds)


ENGINES = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}


def padded(engine, ids):
    """A batch as the graph's inputs: zeros behind short texts, and a mask."""
    import numpy as np
    length = max(map(len, ids))
    feeds = {name: np.zeros((len(ids), length), np.int64) for name in engine.inputs}
    for i, line in enumerate(ids):
        feeds["input_ids"][i, :len(line)] = line
        feeds["attention_mask"][i, :len(line)] = 1
    return feeds


class Ids:
    """Texts given as ids: one batch."""

    def __init__(self, engine, path, _arguments):
        self.run, self.result = engine.hold(padded(engine, [[int(word) for word in line.split()] for line in open(path)]))
        self.told = {}


class Chain:
    """The fixed inputs of the chain of small ops."""

    def __init__(self, engine):
        from bench import chain
        self.run, self.result = engine.hold(chain.inputs())
        self.told = {}


class Text:
    """Texts as they come; cutting them into tokens is part of the work."""

    def __init__(self, engine, path, arguments):
        from tokenizers import Tokenizer
        self.engine, self.found = engine, None
        self.tokenizer = Tokenizer.from_file(arguments.tokenizer)
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(arguments.longest)
        self.lines = Path(path).read_text(encoding="utf-8").splitlines()
        self.batch = arguments.batch or self.choose()
        self.told = {"batch": self.batch}

    def choose(self):
        some = self.lines[::SAMPLE]

        def seconds(batch):
            self.vectors(some, batch)
            start = time.perf_counter()
            self.vectors(some, batch)
            return time.perf_counter() - start
        return min(BATCHES, key=seconds)

    def vectors(self, lines, batch):
        import numpy as np
        ids = [encoded.ids for encoded in self.tokenizer.encode_batch(lines)]
        order, out = sorted(range(len(ids)), key=lambda i: len(ids[i])), None
        for first in range(0, len(order), batch):
            chosen = order[first:first + batch]
            found = self.engine.run(padded(self.engine, [ids[i] for i in chosen]))
            if out is None:
                out = np.empty((len(ids), found.shape[1]), np.float32)
            out[chosen] = found
        return out

    def run(self):
        self.found = self.vectors(self.lines, self.batch)

    def result(self):
        return self.found


WORKS = {"ids": Ids, "text": Text}


def timed(run, seconds):
    run()
    taken = []
    while not taken or sum(taken) < seconds:
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return {"seconds": median(taken), "runs": len(taken)}


def save(work, path):
    import numpy as np
    work.run()
    np.ascontiguousarray(work.result(), np.float32).tofile(path)
    return {}


def runs_of(engine, arguments):
    """All outputs of a graph on the inputs of a folder, and how long a run takes."""
    import numpy as np
    feeds, taken = {path.stem: np.load(path) for path in arguments.inputs.glob("*.npy")}, []
    for _ in range(arguments.repeat + 1):
        start = time.perf_counter()
        found = engine.session.run(None, feeds)
        taken.append(time.perf_counter() - start)
    arguments.outputs.mkdir(exist_ok=True)
    for port, value in zip(engine.session.get_outputs(), found):
        np.save(arguments.outputs / (port.name.replace("/", "_") + ".npy"), value)
    print(json.dumps({"seconds": median(taken[1:])}))


def answer(engine, state, arguments, before, command, value):
    if command == "peak":
        return {"peak": status_bytes("VmHWM"), "before": before}
    if command in WORKS:
        state["work"] = WORKS[command](engine, value, arguments)
        return state["work"].told
    if "work" not in state:
        state["work"] = Chain(engine)
    if command == "time":
        return dict(timed(state["work"].run, float(value)), steps=engine.steps() if arguments.plain else None)
    if command == "save":
        return save(state["work"], value)
    return {"error": "no such command"}


def parse():
    parser = argparse.ArgumentParser(description="Keep an engine loaded and do what standard input says.")
    parser.add_argument("engine", choices=list(ENGINES))
    parser.add_argument("graph")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--tokenizer")
    parser.add_argument("--longest", type=int, default=512)
    parser.add_argument("--plain", action="store_true", help="nothing fused, nothing folded")
    parser.add_argument("--once", nargs=2, metavar=("LINES", "OUT"))
    parser.add_argument("--inputs", type=Path)
    parser.add_argument("--outputs", type=Path)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--batch", type=int, default=0, help="texts of a batch; 0: tried out")
    return parser.parse_args()


def main():
    arguments = parse()
    import numpy  # noqa: F401  not the engine's memory
    before = status_bytes("VmRSS")
    engine, state = ENGINES[arguments.engine](arguments.graph, arguments.threads, arguments.precision, arguments.plain), {}
    if arguments.once:
        save(Text(engine, arguments.once[0], arguments), arguments.once[1])
        return
    if arguments.inputs:
        runs_of(engine, arguments)
        return
    for line in sys.stdin:
        command, _, value = line.rstrip("\n").partition(" ")
        try:
            print(json.dumps(answer(engine, state, arguments, before, command, value)), flush=True)
        except (RuntimeError, ValueError, OSError) as error:
            print(json.dumps({"error": str(error)}), flush=True)


if __name__ == "__main__":
    venv.enter("bench")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    main()
