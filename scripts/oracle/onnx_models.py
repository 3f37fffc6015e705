#!/usr/bin/env python3
"""Compare real ONNX models with ONNX Runtime: largest error over largest value of every output, at five sizes each.

    onnx_models.py [--tool build/release/rung] [--repeat N] [--nodes | --bits] [MODEL ...]

MODEL: magika, ppocr-det, ppocr-rec, silero, minilm, kokoro; all by default. Each size runs from one compiled template
whose dimensions are open (rung run), so what is compared is the same program at five sizes. With --repeat the median
times of both stand beside the errors. With --bits the bits of each size from one compiled file, made for the largest, are
compared with those of a compile for the size, and nothing with ONNX Runtime. Exit: 0 if all are within the bound (1e-4) or
the same, 1 if not.

Kokoro rounds to 8 bits 139 times and durations to whole frames, and enlarges every difference: with weights that are off by
1e-7 ONNX Runtime's own sound moves by 0.4 to 1.5 dB of log-mel and changes its length. It also takes the phase of STFT bins
whose imaginary part is 0 (the mean, and half the rate): ONNX Runtime's is rounding noise there, and setting it to the 0 that
it is moves ONNX Runtime's own sound by 2.9 dB. So the sound as a whole is only shown, beside ONNX Runtime's to itself with a
style that is off by 1e-6; what must agree is the decoder behind ONNX Runtime's encoder and STFT, in length and within 1 dB,
and with --nodes each node on ONNX Runtime's own intermediate tensors: integers the same, numbers within the bound.
"""
import argparse
import collections
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import venv  # noqa: E402

venv.enter("bench")

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402

from models import say  # noqa: E402
from oracle import onnx_feeds as feeds_of  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
BOUND, MOST_DECIBELS = 1e-4, 1.0
SIZES = {
    "magika": ((1,), (2,), (3,), (5,), (8,)),
    "ppocr-det": ((1, 320, 320), (1, 64, 96), (1, 96, 64), (1, 160, 224), (1, 640, 640)),
    "ppocr-rec": ((1, 48, 96), (1, 48, 320), (2, 48, 64), (3, 48, 200), (6, 48, 320)),
    "silero": ((1, 16000), (1, 8000), (2, 16000), (3, 8000), (5, 16000)),
    "minilm": ((1, 8), (1, 37), (2, 19), (1, 128), (8, 64)),
    "kokoro": ((8,), (20,), (33,), (60,), (100,)),
}


def run_tool(tool, flags, folder):
    done = subprocess.run([str(tool), "run", *flags, "-o", str(folder) + "/out", "--json"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-600:])
    return {path.stem: np.load(path) for path in Path(folder, "out").iterdir()}, json.loads(done.stdout)["seconds"]


def run_rung(tool, model, feeds, repeat):
    with tempfile.TemporaryDirectory() as folder:
        return run_tool(tool, ["-m", str(model), "--repeat", str(repeat), *feeds_of.save(feeds, folder)], folder)


def session_of(model, level=None):
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 2
    if level is not None:
        settings.graph_optimization_level = level
    return onnxruntime.InferenceSession(str(model), settings, providers=["CPUExecutionProvider"])


def relative(mine, other):
    other = np.asarray(other)
    if mine.shape != other.shape:
        return None
    if not other.size:
        return 0.0
    return float(np.abs(mine.astype(np.float64) - other.astype(np.float64)).max() / max(np.abs(other.astype(np.float64)).max(), 1e-30))


# ---- sound

def log_mel(sound, rate=24000, window=1024, hop=256, bands=80):
    """Power in mel bands in dB, at most 60 below the loudest."""
    sound = np.pad(sound.astype(np.float64), window // 2)
    frames = np.stack([np.abs(np.fft.rfft(sound[i:i + window] * np.hanning(window))) ** 2 for i in range(0, len(sound) - window, hop)])
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + rate / 1400), bands + 2) / 2595) - 1) * window / rate
    bins, low, middle, high = np.arange(window // 2 + 1), edges[:-2, None], edges[1:-1, None], edges[2:, None]
    power = frames @ np.maximum(0, np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle))).T
    return 10 * np.log10(np.maximum(power, power.max() * 1e-6))


def distance(mine, other):
    return float(np.abs(log_mel(mine) - log_mel(other)).mean()) if mine.shape == other.shape else None


def compare_sound(session, feeds, mine, want, label):
    nudged = dict(feeds, style=(feeds["style"] * (1 + 1e-6 * np.random.default_rng(1).standard_normal(feeds["style"].shape))).astype(np.float32))
    itself = session.run(None, nudged)[0]
    show = lambda d: "another length" if d is None else "%.2f dB" % d  # noqa: E731
    print("%-10s %-28s %d samples of %d, log-mel distance %s; ONNX Runtime to itself with a style off by 1e-6: %s" % (
        "kokoro", label, mine.size, want.size, show(distance(mine, want)), show(distance(itself, want))))


def compare_decoder(tool, path, feeds, label):
    """The decoder on what ONNX Runtime's encoder and STFT gave: same length, and the distance within the bound."""
    import onnx
    from onnx import helper
    model, values = all_values(path, feeds)
    known = {t.name for t in model.graph.initializer} | {o for n in model.graph.node if n.op_type == "Constant" for o in n.output}
    producer = {o: n for n in model.graph.node for o in n.output}
    inside, cut, left = set(), {}, ["audio"]
    while left:
        value = left.pop()
        node = producer.get(value)
        if not value or value in known or value in inside or value in cut:
            continue
        if node is None or node.op_type == "STFT" or (value != "audio" and "decoder" not in node.output[0]):
            cut[value] = "c%d" % len(cut)
            continue
        inside.add(value)
        left += node.input
    nodes = [n for n in model.graph.node if n.op_type == "Constant" or inside.intersection(n.output)]
    for node in nodes:
        for k, name in enumerate(node.input):
            node.input[k] = cut.get(name, name)
    with tempfile.TemporaryDirectory() as folder:
        inputs = [helper.make_tensor_value_info(new, helper.np_dtype_to_tensor_dtype(np.asarray(values[old]).dtype), np.shape(values[old]))
                  for old, new in cut.items()]
        graph = helper.make_graph(nodes, "decoder", inputs, list(model.graph.output), list(model.graph.initializer))
        onnx.save(helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version), folder + "/m.onnx")
        found, _ = run_tool(tool, ["-m", folder + "/m.onnx", *feeds_of.save({cut[name]: values[name] for name in cut}, folder)], folder)
    apart_by = distance(found["audio"], values["audio"])
    good = apart_by is not None and apart_by <= MOST_DECIBELS
    print("%-10s %-28s behind ONNX Runtime's encoder and STFT: log-mel distance %s%s" % (
        "kokoro", label, "another length" if apart_by is None else "%.2f dB" % apart_by, "" if good else "  TOO LARGE"), flush=True)
    return 0 if good else 1


# ---- every node by itself

NODES_AT_ONCE = 15  # shapes that are inputs bind a symbol an axis
LOOSER = {"DynamicQuantizeLSTM": 5e-3}  # a state that lies between two of 256 levels may go to either
SKIPPED = ("Constant", "If", "Loop", "Shape", "Identity", "RandomNormalLike")  # nothing to compute, or bodies


def all_values(path, feeds):
    """The model and every value of a run of it by ONNX Runtime, nothing fused."""
    import onnx
    model, wide = onnx.load(str(path)), onnx.load(str(path))
    del wide.graph.output[:]
    wide.graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(o for n in model.graph.node for o in n.output if o))
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        onnx.save(wide, file.name)
        session = session_of(file.name, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
        values = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
    return model, {**values, **feeds}


def apart(model, nodes, values, folder):
    """A model of some nodes that do not meet: inputs are ONNX Runtime's. Returns flags and [(node, output, file)]."""
    import onnx
    from onnx import helper
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    constant = {o: n for n in model.graph.node if n.op_type == "Constant" for o in n.output}
    inputs, made, outputs, out, flags = {}, [], [], [], ["-m", folder + "/m.onnx"]
    used = {name for node in nodes for name in node.input}
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for k, name in enumerate(node.input):
            if not name or name in stored or name in constant:
                continue
            if name not in inputs:
                value = np.array(values[name], order="C")
                inputs[name] = helper.make_tensor_value_info("i%d" % len(inputs), helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                np.save("%s/%s.npy" % (folder, inputs[name].name), value)
                flags += ["-i", "%s=%s/%s.npy" % (inputs[name].name, folder, inputs[name].name)]
            copy.input[k] = inputs[name].name
        for k, name in enumerate(node.output):
            if name:
                copy.output[k] = "o%d" % len(outputs)
                outputs.append(helper.make_tensor_value_info(copy.output[k], helper.np_dtype_to_tensor_dtype(values[name].dtype), values[name].shape))
                out.append((node, name, copy.output[k]))
        made.append(copy)
    graph = helper.make_graph([constant[name] for name in sorted(used & constant.keys())] + made, "nodes", list(inputs.values()), outputs,
                              [stored[name] for name in sorted(used & stored.keys())])
    onnx.save(helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version), folder + "/m.onnx")
    return flags, out


def compare_nodes(tool, name, feeds):
    """Nodes of each operator on ONNX Runtime's own operands; the number that are off."""
    model, values = all_values(feeds_of.path_of(name), feeds)
    known = {t.name for t in model.graph.initializer} | {o for n in model.graph.node if n.op_type == "Constant" for o in n.output}
    groups, bad = collections.defaultdict(list), 0
    for node in model.graph.node:
        if node.op_type not in SKIPPED and any(i and i not in known for i in node.input):
            groups[node.op_type].append(node)
    for operator, nodes in sorted(groups.items()):
        worst, off = 0.0, []
        for first in range(0, len(nodes), NODES_AT_ONCE):
            with tempfile.TemporaryDirectory() as folder:
                flags, out = apart(model, nodes[first:first + NODES_AT_ONCE], values, folder)
                found, _ = run_tool(tool, flags, folder)
            for node, value, file in out:
                error = relative(found[file], values[value])
                exact = not np.issubdtype(np.asarray(values[value]).dtype, np.floating)
                if error is None or error > (0 if exact else LOOSER.get(operator, BOUND)):
                    off.append(node.name)
                worst = max(worst, error or 0.0)
        print("%-10s %-26s %4d nodes, largest error over largest value %.1e%s" % (
            name, operator, len(nodes), worst, "  OFF: " + ", ".join(off[:3]) if off else ""), flush=True)
        bad += len(off)
    return bad


# ---- one compile for all sizes

def symbols_of(session, feeds):
    """The extents of open dimensions in one set of inputs, by the names that Rung gives them."""
    out = {}
    for value in session.get_inputs():
        for axis, (name, extent) in enumerate(zip(value.shape, feeds[value.name].shape)):
            if not isinstance(name, int) or name <= 0:
                plain = isinstance(name, str) and name != "?"
                out[name if plain else "%s_%d" % (value.name, axis)] = extent
    return out


def compare_rows(tool, name):
    """A graph for each rate, which a compiled file cannot be told: how many sizes give a row other bits than it has alone?"""
    path, bad = feeds_of.path_of(name), 0
    axis = {"input": 0, "state": 1, "output": 0, "stateN": 1}
    row = lambda values, i: {k: np.take(v, [i], axis[k]) if k in axis else v for k, v in values.items()}  # noqa: E731
    for size in SIZES[name]:
        feeds = feeds_of.make(name, size)
        together = run_rung(tool, path, feeds, 1)[0]
        for i in range(size[0]):
            alone, here = run_rung(tool, path, row(feeds, i), 1)[0], row(together, i)
            bad += any(alone[k].shape != here[k].shape or alone[k].tobytes() != here[k].tobytes() for k in alone)
    print("%-10s %d sizes, %d rows with other bits than alone" % (name, len(SIZES[name]), bad), flush=True)
    return bad


def compare_bits(tool, name):
    """How many sizes get other bits from one compiled file, made for the largest, than from a compile for just that size."""
    if name == "silero":
        return compare_rows(tool, name)
    path, bad, most = feeds_of.path_of(name), 0, {}
    session, sizes = session_of(path), [feeds_of.make(name, size) for size in SIZES[name]]
    for feeds in sizes:
        for symbol, extent in symbols_of(session, feeds).items():
            most[symbol] = max(most.get(symbol, 0), extent)
    with tempfile.TemporaryDirectory() as folder:
        made = folder + "/model.rung"
        ceiling = [word for pair in most.items() for word in ("--ceiling", "%s=%d" % pair)]
        subprocess.run([str(tool), "compile", "-m", str(path), "-o", made, "--pack", *ceiling], check=True, capture_output=True)
        for feeds in sizes:
            one, own = run_rung(tool, made, feeds, 1)[0], run_rung(tool, path, feeds, 1)[0]
            bad += any(one[key].shape != own[key].shape or one[key].tobytes() != own[key].tobytes() for key in own)
    print("%-10s %d sizes from one compile, %d with other bits than from their own" % (name, len(sizes), bad), flush=True)
    return bad


# ---- whole models

def compare_sizes(options, name):
    path, bad = feeds_of.path_of(name), 0
    session = session_of(path)
    for size in SIZES[name]:
        feeds, label = feeds_of.make(name, size), "x".join(map(str, size))
        want = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
        times = []
        for _ in range(options.repeat):
            start = time.perf_counter()
            session.run(None, feeds)
            times.append(time.perf_counter() - start)
        try:
            got, seconds = run_rung(options.tool, path, feeds, options.repeat)
        except RuntimeError as error:
            print("%-10s %-28s %s" % (name, label, error))
            bad += 1
            continue
        if name == "kokoro":
            compare_sound(session, feeds, got["audio"], want["audio"], label)
            bad += compare_decoder(options.tool, path, feeds, label)
        for key, value in want.items():
            error = relative(got[key.replace("/", "_")], value)
            good = name == "kokoro" or (error is not None and error <= BOUND)
            bad += not good
            print("%-10s %-28s %-16s %s%s   rung %.2f ms, ONNX Runtime %.2f ms" % (
                name, label, key[:16], "another shape" if error is None else "error %.2e" % error, "" if good else "  TOO LARGE", seconds * 1e3,
                sorted(times)[len(times) // 2] * 1e3), flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=ROOT / "build/release/rung")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--nodes", action="store_true", help="each node by itself, at the first size")
    parser.add_argument("--bits", action="store_true", help="one compiled file for all sizes: the bits of a compile for each?")
    parser.add_argument("model", nargs="*", default=list(SIZES))
    options = parser.parse_args()
    bad = 0
    for name in options.model:
        if options.bits:
            bad += compare_bits(options.tool, name)
        elif options.nodes:
            bad += compare_nodes(options.tool, name, feeds_of.make(name, SIZES[name][0]))
        else:
            bad += compare_sizes(options, name)
    say("%d outside the bound" % bad if not options.bits else "%d sizes with other bits" % bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
