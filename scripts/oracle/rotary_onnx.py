#!/usr/bin/env python3
"""Write decoder layers with rotary positions as exporters spell them, and what ONNX Runtime makes of them.

    $(python3 scripts/venv.py --bench) scripts/oracle/rotary_onnx.py

tests/formats/data/rotary/NAME.onnx is a layer of width 16 with open batch and length: a norm, queries and keys turned,
attention under a mask, a projection and the residual, all spelled out as torch's exporter does. NAME.bin holds y in f32 for
the sizes SIZES, one after another, computed without ONNX Runtime's own fusions. tests/formats/test_onnx_rotary.c reads
both and fills inputs as `feeds` does.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import venv  # noqa: E402

venv.enter("bench")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto as T, helper as h, numpy_helper as nh  # noqa: E402

OUT = Path(__file__).resolve().parents[2] / "tests/formats/data/rotary"
WIDTH, HEADS, DIM, MOST = 16, 2, 8, 64
SIZES = [(1, 1), (2, 7), (3, 4)]  # batch, length


class Graph:
    """Nodes in order; each call gives the name of what it makes."""

    def __init__(self):
        self.nodes, self.init, self.made = [], [], 0

    def __call__(self, op, *inputs, outputs=1, domain="", **attributes):
        names = ["v%d" % (self.made + i) for i in range(outputs)]
        self.made += outputs
        self.nodes.append(h.make_node(op, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def const(self, value, dtype=None):
        name = "c%d" % len(self.init)
        self.init.append(nh.from_array(np.asarray(value, dtype), name))
        return name

    def ints(self, *values):
        return self.const(values, np.int64)

    def size(self, x, axis):
        return self("Gather", self("Shape", x), self.const(axis, np.int64), axis=0)

    def slice(self, x, start, end, step=1):
        """x[..., start:end:step]; numbers, or names of scalars that the graph computes."""
        one = [self("Unsqueeze", v, self.ints(0)) if isinstance(v, str) else self.ints(v) for v in (start, end)]
        return self("Slice", x, *one, self.ints(-1), self.ints(step))

    def reshape(self, x, *shape):
        """Extents that are numbers or names of scalars."""
        parts = [self("Unsqueeze", v, self.ints(0)) if isinstance(v, str) else self.ints(v) for v in shape]
        return self("Reshape", x, self("Concat", *parts, axis=0))


END = 2**63 - 1


def frequencies(dims):
    return (10000.0 ** (-np.arange(0, dims, 2) / dims)).astype(np.float32)


def angles(dims):
    return np.arange(MOST)[:, None] * frequencies(dims).astype(np.float64)


# ---- tables: of [batch, length], for a head's axis at `axis`

def computed(g, dims):
    """Frequencies times positions as a product, put beside itself."""
    shape = g("Concat", g("Unsqueeze", g.size("positions", 0), g.ints(0)), g.ints(-1), g.ints(1), axis=0)
    wide = g("Expand", g.const(frequencies(dims).reshape(1, -1, 1)), g("Where", g("Equal", shape, g.ints(-1)), g.ints(1, 1, 1), shape))
    rows = g("Cast", g("Unsqueeze", "positions", g.ints(1)), to=T.FLOAT)
    turns = g("Transpose", g("MatMul", wide, rows), perm=[0, 2, 1])
    both = g("Concat", turns, turns, axis=-1)
    return [g("Unsqueeze", g("Mul", g(f, both), g.const(1.0, np.float32)), g.ints(1)) for f in ("Cos", "Sin")]


def cached(g, dims, axis, repeat=2):
    table = np.tile(angles(dims), repeat)
    return [g("Unsqueeze", g("Gather", g.const(f(table).astype(np.float32)), "positions"), g.ints(axis)) for f in (np.cos, np.sin)]


def interleaved(g, dims, axis):
    """Each number twice, one beside the other: unsqueezed, expanded and flattened."""
    out = []
    for f in (np.cos, np.sin):
        rows = g("Gather", g.const(f(angles(dims)).astype(np.float32)), "positions")
        wide = g("Expand", g("Unsqueeze", rows, g.ints(-1)), g.ints(1, 1, 1, 2))
        out.append(g("Unsqueeze", g.reshape(wide, g.size(rows, 0), g.size(rows, 1), dims), g.ints(axis)))
    return out


# ---- rotations

def flatten_last(g, x):
    shape = g("Slice", g("Shape", x), g.ints(0), g.ints(-2), g.ints(0))
    return g("Reshape", x, g("Concat", shape, g.ints(-1), axis=0))


def stack(g, a, b):
    return g("Concat", g("Unsqueeze", a, g.ints(-1)), g("Unsqueeze", b, g.ints(-1)), axis=-1)


def rotate_half(g, x):
    half = g("Div", g.size(x, -1), g.const(2, np.int64))
    return g("Concat", g("Neg", g.slice(x, half, END)), g.slice(x, 0, half), axis=-1)


def rotate_every_two(g, x):
    return flatten_last(g, stack(g, g("Neg", g.slice(x, 1, END, 2)), g.slice(x, 0, END, 2)))


def rotate_pairs(g, x):
    pairs = g("Reshape", x, g("Concat", g("Slice", g("Shape", x), g.ints(0), g.ints(-1), g.ints(0)), g.ints(-1, 2), axis=0))
    a, b = [g("Squeeze", part, g.ints(-1)) for part in g("Split", pairs, g.ints(1, 1), outputs=2, axis=-1)]
    return flatten_last(g, stack(g, g("Neg", b), a))


def apply(g, x, tables, turn):
    return g("Add", g("Mul", x, tables[0]), g("Mul", turn(g, x), tables[1]))


def apply_parts(g, x, tables, dims, turn):
    turned = apply(g, g.slice(x, 0, dims), tables, turn)
    return g("Concat", turned, g.slice(x, dims, END), axis=-1)


def apply_pair(g, a, b, tables):
    cosine, sine = tables
    return (g("Sub", g("Mul", a, cosine), g("Mul", b, sine)), g("Add", g("Mul", b, cosine), g("Mul", a, sine)))


def split_halves(g, x, tables):
    return g("Concat", *apply_pair(g, *g("Split", x, g.ints(DIM // 2, DIM // 2), outputs=2, axis=-1), tables), axis=-1)


def gathered_pairs(g, x, tables):
    """Pairs cut out of the rows at once, taken by Gather."""
    pairs = g.reshape(x, g.size(x, 0), g.size(x, 1), HEADS, DIM // 2, 2)
    a, b = [g("Gather", pairs, g.const(i, np.int64), axis=-1) for i in range(2)]
    return flatten_last(g, stack(g, *apply_pair(g, a, b, tables)))


def operator(g, x, cosine, sine, **attributes):
    return g("RotaryEmbedding", x, cosine, sine, "positions", num_heads=HEADS, **attributes)


def microsoft(g, x, cosine, sine, positions="positions", **attributes):
    return g("RotaryEmbedding", x, positions, cosine, sine, domain="com.microsoft", num_heads=HEADS, **attributes)


def caches(g, dims):
    return [g.const(f(angles(dims)).astype(np.float32)) for f in (np.cos, np.sin)]


# ---- layers. Each gives functions of rows [b, n, 16], of [b, n, heads, dim] and of [b, heads, n, dim]; NONE: nothing.

def llama(g):
    tables = computed(g, DIM)
    return None, None, lambda x: apply(g, x, tables, rotate_half)


def neox(g):
    tables = cached(g, 4, 1)
    return None, None, lambda x: apply_parts(g, x, tables, 4, rotate_half)


def gptj(g):
    tables = interleaved(g, 6, 2)
    return None, lambda x: apply_parts(g, x, tables, 6, rotate_every_two), None


def cohere(g):
    tables = interleaved(g, DIM, 1)
    return None, None, lambda x: apply(g, x, tables, rotate_every_two)


def unbound(g):
    tables = interleaved(g, DIM, 1)
    return None, None, lambda x: apply(g, x, tables, rotate_pairs)


def unbound_rows(g):
    tables = interleaved(g, DIM, 2)
    return None, lambda x: apply(g, x, tables, rotate_pairs), None


def split(g):
    tables = cached(g, DIM, 1, 1)
    return None, None, lambda x: split_halves(g, x, tables)


def pairs(g):
    tables = cached(g, DIM, 2, 1)
    return lambda x: gathered_pairs(g, x, tables), None, None


def standard(g):
    cosine, sine = caches(g, 6)
    return lambda x: operator(g, x, cosine, sine, rotary_embedding_dim=6), None, None


def contrib(g):
    cosine, sine = caches(g, DIM)
    return lambda x: microsoft(g, x, cosine, sine, interleaved=1), None, None


def contrib_first(g):
    cosine, sine = caches(g, 4)
    first = g.ints(5)
    return lambda x: microsoft(g, x, cosine, sine, first, rotary_embedding_dim=4), None, None


LAYERS = {f.__name__: f for f in (llama, neox, gptj, cohere, unbound, unbound_rows, split, pairs, standard, contrib, contrib_first)}


def layer(name):
    g, rng = Graph(), np.random.default_rng(len(name))
    weight = {k: g.const(rng.uniform(-0.4, 0.4, (WIDTH, WIDTH)).astype(np.float32)) for k in "qkvo"}
    mean = g("ReduceMean", g("Pow", "x", g.const(2.0, np.float32)), g.ints(-1), keepdims=1)
    norm = g("Div", "x", g("Sqrt", g("Add", mean, g.const(1e-6, np.float32))))
    norm = g("Mul", norm, g.const(rng.uniform(0.5, 1.5, WIDTH).astype(np.float32)))
    rows, heads, turned = LAYERS[name](g)
    out = {}
    for k in "qkv":
        v = g("MatMul", norm, weight[k])
        if rows and k != "v":
            v = rows(v)
        v = g.reshape(v, g.size("x", 0), g.size("x", 1), HEADS, DIM)
        if heads and k != "v":
            v = heads(v)
        v = g("Transpose", v, perm=[0, 2, 1, 3])
        out[k] = turned(v) if turned and k != "v" else v
    score = g("Div", g("MatMul", out["q"], g("Transpose", out["k"], perm=[0, 1, 3, 2])), g.const(np.sqrt(DIM), np.float32))
    attended = g("MatMul", g("Softmax", g("Add", score, "mask"), axis=-1), out["v"])
    joined = g.reshape(g("Transpose", attended, perm=[0, 2, 1, 3]), g.size("x", 0), g.size("x", 1), WIDTH)
    g.nodes.append(h.make_node("Add", ["x", g("MatMul", joined, weight["o"])], ["y"]))
    inputs = [("x", T.FLOAT, ["b", "n", WIDTH]), ("positions", T.INT64, ["b", "n"]), ("mask", T.FLOAT, ["b", 1, "n", "n"])]
    graph = h.make_graph(g.nodes, name, [h.make_tensor_value_info(*i) for i in inputs],
                         [h.make_tensor_value_info("y", T.FLOAT, ["b", "n", WIDTH])], g.init)
    domains = {n.domain for n in g.nodes if n.domain}
    opsets = [h.make_opsetid("", 23 if name == "standard" else 18)] + [h.make_opsetid(d, 1) for d in sorted(domains)]
    return h.make_model(graph, opset_imports=opsets, ir_version=10)


def feeds(batch, length):
    """Entry b begins at position 3 b and sees nothing that comes later."""
    i = np.arange(batch * length * WIDTH)
    x = ((i * 37 % 101) / np.float32(50) - np.float32(1)).astype(np.float32).reshape(batch, length, WIDTH)
    positions = (np.arange(length)[None] + 3 * np.arange(batch)[:, None]).astype(np.int64)
    mask = np.where(np.arange(length)[None] > np.arange(length)[:, None], np.float32(-1e9), np.float32(0))
    return {"x": x, "positions": positions, "mask": np.broadcast_to(mask, (batch, 1, length, length)).copy()}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for name in LAYERS:
        model = layer(name)
        if name != "contrib" and name != "contrib_first":
            onnx.checker.check_model(model, full_check=True)
        data = model.SerializeToString()
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        used = {i.name for i in session.get_inputs()}
        (OUT / (name + ".onnx")).write_bytes(data)
        results = [session.run(["y"], {k: v for k, v in feeds(*s).items() if k in used})[0] for s in SIZES]
        (OUT / (name + ".bin")).write_bytes(b"".join(r.astype("<f4").tobytes() for r in results))
        print(name, len(data), "bytes")


if __name__ == "__main__":
    main()
