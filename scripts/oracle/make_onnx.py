#!/usr/bin/env python3
"""Write the small ONNX models that tests and the fuzz target begin from.

    $(python3 scripts/venv.py bench) scripts/oracle/make_onnx.py

tests/fuzz/corpus/fuzz_onnx/*.onnx: one small graph a subject. tests/formats/test_onnx.c opens them, cuts them at every
byte and flips their bytes, and compares what `expect` says: the outputs for the inputs 0, 1, 2, ... / 4 (floats) or
0, 1, 2, ... (integers), as onnx's reference evaluator computes them, in tests/formats/data/onnx/*.txt. The operators of
com.microsoft, recurrent ones, nested functions and stacked scalars, which that does not know in full, as ONNX Runtime computes them.
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
from onnx.reference import ReferenceEvaluator  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
CORPUS, DATA = ROOT / "tests/fuzz/corpus/fuzz_onnx", ROOT / "tests/formats/data/onnx"


def model(nodes, inputs, outputs, init=(), opset=17, functions=(), extra=()):
    def value(item):
        name, kind, shape = item
        return h.make_tensor_value_info(name, kind, shape)
    graph = h.make_graph(nodes, "g", [value(i) for i in inputs], [value(o) for o in outputs],
                         [nh.from_array(np.asarray(v), k) for k, v in dict(init).items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset), *extra], functions=list(functions), ir_version=9)


def f32(*shape):
    return (np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) / 8 - 1).astype(np.float32)


def branches():
    then = h.make_graph([h.make_node("Mul", ["x", "w"], ["t"])], "t", [], [h.make_tensor_value_info("t", T.FLOAT, ["n", 3])])
    other = h.make_graph([h.make_node("Constant", [], ["k"], value_float=2.0), h.make_node("Sub", ["x", "k"], ["e"])], "e", [],
                         [h.make_tensor_value_info("e", T.FLOAT, ["n", 3])])
    return model([h.make_node("ReduceSum", ["x"], ["s"], keepdims=0), h.make_node("Greater", ["s", "zero"], ["c"]),
                  h.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
                 [("x", T.FLOAT, ["n", 3])], [("y", T.FLOAT, ["n", 3])], {"w": f32(3), "zero": np.float32(0)})


def loop():
    body = h.make_graph([h.make_node("Add", ["v", "step"], ["w"]), h.make_node("Identity", ["c"], ["d"]),
                         h.make_node("Neg", ["w"], ["r"])], "b",
                        [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []),
                         h.make_tensor_value_info("v", T.FLOAT, [2])],
                        [h.make_tensor_value_info("d", T.BOOL, []), h.make_tensor_value_info("w", T.FLOAT, [2]),
                         h.make_tensor_value_info("r", T.FLOAT, [2])])
    return model([h.make_node("Loop", ["m", "go", "x"], ["y", "rows"], body=body)], [("x", T.FLOAT, [2])],
                 [("y", T.FLOAT, [2]), ("rows", T.FLOAT, [3, 2])], {"m": np.int64(3), "go": np.bool_(True), "step": f32(2)})


def scan():
    body = h.make_graph([h.make_node("Add", ["s", "r"], ["t"]), h.make_node("Identity", ["t"], ["o"])], "b",
                        [h.make_tensor_value_info("s", T.FLOAT, [2]), h.make_tensor_value_info("r", T.FLOAT, [2])],
                        [h.make_tensor_value_info("t", T.FLOAT, [2]), h.make_tensor_value_info("o", T.FLOAT, [2])])
    return model([h.make_node("Scan", ["z", "x"], ["last", "all"], body=body, num_scan_inputs=1)],
                 [("x", T.FLOAT, [4, 2])], [("last", T.FLOAT, [2]), ("all", T.FLOAT, [4, 2])], {"z": np.zeros(2, np.float32)})


def shapes():
    return model([h.make_node("Shape", ["x"], ["s"]), h.make_node("Gather", ["s", "zero"], ["n"]),
                  h.make_node("Unsqueeze", ["n", "axis"], ["n1"]), h.make_node("Concat", ["n1", "rest"], ["shape"], axis=0),
                  h.make_node("Reshape", ["x", "shape"], ["y"]), h.make_node("Transpose", ["y"], ["z"], perm=[0, 2, 1]),
                  h.make_node("Slice", ["z", "from", "to", "axis", "step"], ["u"])],
                 [("x", T.FLOAT, ["n", 6])], [("u", T.FLOAT, ["m", 3, 2])],
                 {"zero": np.int64(0), "axis": np.array([0]), "rest": np.array([2, -1]), "from": np.array([-1]),
                  "to": np.array([-100]), "step": np.array([-1])})


def function():
    f = h.make_function("local", "Twice", ["a"], ["b"], [h.make_node("Constant", [], ["k"], value_float=2.0),
                                                          h.make_node("Mul", ["a", "k"], ["b"])],
                        [h.make_opsetid("", 17)])
    return model([h.make_node("Twice", ["x"], ["t"], domain="local"), h.make_node("Relu", ["t"], ["y"])],
                 [("x", T.FLOAT, ["n"])], [("y", T.FLOAT, ["n"])], functions=[f], extra=[h.make_opsetid("local", 1)])


def net():
    return model([h.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]), h.make_node("Relu", ["c"], ["r"]),
                  h.make_node("GlobalAveragePool", ["r"], ["p"]), h.make_node("Flatten", ["p"], ["f"]),
                  h.make_node("Gemm", ["f", "m", "d"], ["g"], transB=1), h.make_node("Softmax", ["g"], ["y"])],
                 [("x", T.FLOAT, ["n", 2, "h", "w"])], [("y", T.FLOAT, ["n", 5])],
                 {"w": f32(4, 2, 3, 3), "b": f32(4), "m": f32(5, 4), "d": f32(5)})


def sizes():
    return model([h.make_node("NonZero", ["x"], ["i"]), h.make_node("Transpose", ["i"], ["t"]),
                  h.make_node("GatherND", ["x", "t"], ["y"])],
                 [("x", T.FLOAT, ["n", 3])], [("y", T.FLOAT, ["k"])])


def types():
    """Numbers in every field that a tensor may have them in, not as raw bytes."""
    tensors = [h.make_tensor("f", T.FLOAT, [2], [0.5, -1]), h.make_tensor("d", T.DOUBLE, [2], [0.25, 3]),
               h.make_tensor("i", T.INT32, [2], [-7, 9]), h.make_tensor("l", T.INT64, [2], [-(1 << 40), 5]),
               h.make_tensor("u", T.UINT64, [2], [1, 1 << 40]), h.make_tensor("h", T.FLOAT16, [2], [1.5, -2])]
    made = model([h.make_node("Cast", [t.name], ["c" + t.name], to=T.DOUBLE) for t in tensors] +
                 [h.make_node("Sum", ["c" + t.name for t in tensors], ["s"]), h.make_node("Add", ["s", "x"], ["y"])],
                 [("x", T.DOUBLE, [2])], [("y", T.DOUBLE, [2])])
    made.graph.initializer.extend(tensors)
    return made


def noise(seed, *shape, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def microsoft(nodes, outputs, init):
    """x of n rows of 3 places and 8 numbers, made small."""
    made = model([h.make_node("Mul", ["x", "small"], ["s"]), *nodes], [("x", T.FLOAT, ["n", 3, 8])], outputs,
                 {"small": np.float32(0.05), **init}, extra=[h.make_opsetid("com.microsoft", 1)])
    return made


def ms(op, inputs, outputs, **attrs):
    return h.make_node(op, inputs, outputs, domain="com.microsoft", **attrs)


def contrib():
    """Everything that works on floats."""
    rows = ["n", 3, 8]
    nodes = [ms("BiasGelu", ["s", "b"], ["a0"]), ms("FastGelu", ["a0", "b"], ["a1"]), ms("Gelu", ["a1"], ["a2"]),
             ms("QuickGelu", ["a2"], ["a3"], alpha=1.5), ms("SkipLayerNormalization", ["a3", "s", "g", "b", "b"], ["a4"], epsilon=1e-5),
             ms("SkipSimplifiedLayerNormalization", ["a4", "s", "g"], ["a5"], epsilon=1e-5),
             ms("FusedMatMul", ["a5", "w"], ["a6"], alpha=0.5, transB=1),
             ms("Attention", ["a6", "qkv", "qkvb"], ["a7"], num_heads=2), ms("Attention", ["a7", "qkv", "qkvb"], ["a8"], num_heads=2, unidirectional=1),
             ms("MultiHeadAttention", ["a8", "a6", "s"], ["y"], num_heads=4),
             h.make_node("SimplifiedLayerNormalization", ["y", "g"], ["z"], axis=-1, epsilon=1e-5),
             ms("MatMulNBits", ["z", "q4", "q4s"], ["u"], K=8, N=4, bits=4, block_size=16)]
    return microsoft(nodes, [("y", T.FLOAT, rows), ("z", T.FLOAT, rows), ("u", T.FLOAT, ["n", 3, 4])],
                     {"b": noise(1, 8), "g": noise(2, 8), "w": noise(3, 8, 8), "qkv": noise(4, 8, 24), "qkvb": noise(5, 24),
                      "q4": np.arange(32, dtype=np.uint8).reshape(4, 1, 8) * 7, "q4s": noise(6, 4)})


def masked():
    """Padding, and rows of three tables."""
    ids = h.make_node("Cast", ["x"], ["ids"], to=T.INT32)
    nodes = [ids, ms("EmbedLayerNormalization", ["ids", "", "words", "places", "", "g", "b"], ["e", "m"], epsilon=1e-5),
             ms("Attention", ["e", "qkv", "qkvb", "lengths"], ["y"], num_heads=2)]
    return model(nodes, [("x", T.FLOAT, ["n", 3])], [("y", T.FLOAT, ["n", 3, 8])],
                 {"words": noise(7, 5, 8), "places": noise(8, 4, 8), "g": noise(2, 8), "b": noise(1, 8), "qkv": noise(4, 8, 24),
                  "qkvb": noise(5, 24), "lengths": np.array([[1, 1, 0], [1, 0, 0]], np.int32)},
                 extra=[h.make_opsetid("com.microsoft", 1)])


def quantised():
    """Integers with scales."""
    nodes = [h.make_node("QuantizeLinear", ["s", "xs", "xz"], ["q"]), ms("QLinearAdd", ["q", "xs", "xz", "q", "xs", "xz", "ys", "yz"], ["q1"]),
             ms("QLinearMul", ["q1", "ys", "yz", "q", "xs", "xz", "ys", "yz"], ["q2"]),
             ms("QLinearSigmoid", ["q2", "ys", "yz", "ss", "sz"], ["q3"]), h.make_node("DequantizeLinear", ["q3", "ss", "sz"], ["y"]),
             ms("MatMulIntegerToFloat", ["q2", "w8", "ys", "ws", "yz", "wz", "b4"], ["z"]),
             ms("DynamicQuantizeMatMul", ["s", "w8", "ws", "wz", "b4"], ["u"])]
    w8 = np.random.default_rng(9).integers(0, 255, (8, 4)).astype(np.uint8)
    return microsoft(nodes, [("y", T.FLOAT, ["n", 3, 8]), ("z", T.FLOAT, ["n", 3, 4]), ("u", T.FLOAT, ["n", 3, 4])],
                     {"xs": np.float32(0.01), "xz": np.uint8(20), "ys": np.float32(0.02), "yz": np.uint8(10), "ss": np.float32(1 / 256),
                      "sz": np.uint8(0), "w8": w8, "ws": np.float32(0.03), "wz": np.uint8(128), "b4": noise(10, 4)})


def quantised_lstm():
    w = np.random.default_rng(11).integers(0, 255, (2, 8, 16)).astype(np.uint8)
    r = np.random.default_rng(12).integers(0, 255, (2, 4, 16)).astype(np.uint8)
    nodes = [ms("DynamicQuantizeLSTM", ["s", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"], ["y"], hidden_size=4,
                direction="bidirectional")]
    return microsoft(nodes, [("y", T.FLOAT, ["n", 2, 3, 4])],
                     {"w": w, "r": r, "b": noise(13, 2, 32), "ws": np.full(2, 0.01, np.float32), "wz": np.full(2, 128, np.uint8),
                      "rs": np.full(2, 0.01, np.float32), "rz": np.full(2, 128, np.uint8)})


def recurrent():
    """Three kinds, both ways, with states given."""
    nodes = [h.make_node("Mul", ["x", "small"], ["s"]),
             h.make_node("LSTM", ["s", "wl", "rl", "bl", "", "h0", "h0", "pl"], ["l", "lh", "lc"], hidden_size=4, direction="bidirectional"),
             h.make_node("GRU", ["s", "wg", "rg", "bg", "", "h0"], ["g", "gh"], hidden_size=4, direction="bidirectional", linear_before_reset=1),
             h.make_node("RNN", ["s", "wr", "rr", "br", "", "h1"], ["r", "rh"], hidden_size=4, direction="reverse", activations=["Relu"])]
    return model(nodes, [("x", T.FLOAT, ["n", 3, 8])], [("l", T.FLOAT, ["n", 2, 3, 4]), ("lc", T.FLOAT, [2, 3, 4]),
                                                       ("g", T.FLOAT, ["n", 2, 3, 4]), ("r", T.FLOAT, ["n", 1, 3, 4])],
                 {"small": np.float32(0.05), "wl": noise(1, 2, 16, 8, scale=0.3), "rl": noise(2, 2, 16, 4, scale=0.3), "bl": noise(3, 2, 32, scale=0.3),
                  "pl": noise(4, 2, 12, scale=0.3), "wg": noise(5, 2, 12, 8, scale=0.3), "rg": noise(6, 2, 12, 4, scale=0.3),
                  "bg": noise(7, 2, 24, scale=0.3), "wr": noise(8, 1, 4, 8, scale=0.3), "rr": noise(9, 1, 4, 4, scale=0.3),
                  "br": noise(10, 1, 8, scale=0.3), "h0": noise(11, 2, 3, 4), "h1": noise(12, 1, 3, 4)})


def arithmetic():
    """Extents through every kind of integer arithmetic that exporters write."""
    one = [("one", 1), ("two", 2), ("three", 3), ("seven", 7)]
    nodes = [h.make_node("Shape", ["x"], ["s"]), h.make_node("Gather", ["s", "i0"], ["n"]), h.make_node("Gather", ["s", "i1"], ["k"]),
             h.make_node("Mul", ["n", "two"], ["a"]), h.make_node("Add", ["a", "three"], ["b"]), h.make_node("Sub", ["b", "three"], ["c"]),
             h.make_node("Div", ["c", "two"], ["d"]), h.make_node("Max", ["d", "one"], ["e"]), h.make_node("Min", ["e", "n"], ["f"]),
             h.make_node("Mod", ["f", "seven"], ["g"]), h.make_node("Neg", ["g"], ["m"]), h.make_node("Abs", ["m"], ["p"]),
             h.make_node("Cast", ["f"], ["q"], to=T.FLOAT), h.make_node("Mul", ["q", "half"], ["r"]), h.make_node("Ceil", ["r"], ["t"]),
             h.make_node("Cast", ["t"], ["u"], to=T.INT64), h.make_node("Floor", ["r"], ["v"]), h.make_node("Cast", ["v"], ["w"], to=T.INT64),
             h.make_node("Equal", ["k", "three"], ["is"]), h.make_node("Where", ["is", "u", "w"], ["z"]),
             h.make_node("Unsqueeze", ["z", "zero1"], ["z1"]), h.make_node("Unsqueeze", ["p", "zero1"], ["p1"]), h.make_node("Unsqueeze", ["k", "zero1"], ["k1"]),
             h.make_node("Concat", ["z1", "k1", "p1"], ["all"], axis=0), h.make_node("Slice", ["all", "zero1", "two1"], ["head"]),
             h.make_node("ReduceProd", ["head"], ["elements"], keepdims=1), h.make_node("Squeeze", ["elements", "zero1"], ["count"]),
             h.make_node("Range", ["i0", "count", "one"], ["ramp"]), h.make_node("Reshape", ["ramp", "head"], ["grid"]),
             h.make_node("ConstantOfShape", ["head"], ["filled"], value=h.make_tensor("v", T.INT64, [1], [5])),
             h.make_node("Expand", ["one1", "head"], ["wide"]), h.make_node("Size", ["x"], ["size"]), h.make_node("Tile", ["one1", "z1"], ["tiled"]),
             h.make_node("Add", ["grid", "filled"], ["o1"]), h.make_node("Add", ["o1", "wide"], ["o2"]), h.make_node("Add", ["o2", "size"], ["o3"]),
             h.make_node("Cast", ["o3"], ["y"], to=T.FLOAT), h.make_node("Cast", ["tiled"], ["y2"], to=T.FLOAT),
             h.make_node("Slice", ["x", "zero1", "z1", "zero1"], ["y3"]), h.make_node("Resize", ["x4", "", "", "size4"], ["y4"], mode="nearest"),
             h.make_node("Unsqueeze", ["x", "axes2"], ["x4"]), h.make_node("Concat", ["ones2", "z1", "k1"], ["size4"], axis=0)]
    order = nodes[:-3] + [nodes[-2], nodes[-1], nodes[-3]]
    return model(order, [("x", T.FLOAT, ["n", 3])], [("y", T.FLOAT, ["m", 3]), ("y2", T.FLOAT, ["p"]), ("y3", T.FLOAT, ["q", 3]), ("y4", T.FLOAT, [1, 1, "r", 3])],
                 {**{k: np.int64(v) for k, v in one}, "i0": np.int64(0), "i1": np.int64(1), "half": np.float32(0.5), "zero1": np.array([0]),
                  "two1": np.array([2]), "one1": np.array([1]), "axes2": np.array([0, 1]), "ones2": np.array([1, 1])})


def windows():
    """Windows, spectra and filters whose sizes are constants."""
    nodes = [h.make_node("HannWindow", ["size"], ["a"]), h.make_node("HammingWindow", ["size"], ["b"], periodic=0), h.make_node("BlackmanWindow", ["size"], ["c"]),
             h.make_node("MelWeightMatrix", ["bands", "size", "rate", "low", "high"], ["mel"]), h.make_node("Mul", ["a", "b"], ["ab"]),
             h.make_node("Add", ["ab", "c"], ["w"]), h.make_node("STFT", ["x", "step", "w", "size"], ["f"]),
             h.make_node("ReduceL2", ["f", "last"], ["p"], keepdims=0), h.make_node("MatMul", ["p", "mel"], ["y"])]
    return model(nodes, [("x", T.FLOAT, [1, 40, 1])], [("y", T.FLOAT, [1, "k", 4])],
                 {"size": np.int64(16), "step": np.int64(8), "bands": np.int64(4), "rate": np.int64(8000), "low": np.float32(0), "high": np.float32(4000),
                  "last": np.array([-1])}, opset=18)


def functions():
    """Attributes that a caller gives, defaults, functions that call others, a branch inside."""
    scale = h.make_node("Constant", [], ["k"])
    scale.attribute.append(onnx.AttributeProto(name="value_float", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT))
    then = h.make_graph([h.make_node("Mul", ["a", "k"], ["t"])], "t", [], [h.make_tensor_value_info("t", T.FLOAT, None)])
    other = h.make_graph([h.make_node("Add", ["a", "k"], ["e"])], "e", [], [h.make_tensor_value_info("e", T.FLOAT, None)])
    inner = h.make_function("local", "Choose", ["a", "c"], ["b"], [scale, h.make_node("If", ["c"], ["b"], then_branch=then, else_branch=other)],
                            [h.make_opsetid("", 17)], attributes=[], attribute_protos=[h.make_attribute("alpha", 2.0)])
    call = h.make_node("Choose", ["a", "c"], ["m"], domain="local")
    call.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="beta", type=onnx.AttributeProto.FLOAT))
    outer = h.make_function("local", "Both", ["a", "c"], ["b"], [call, h.make_node("Choose", ["m", "c"], ["b"], domain="local")],
                            [h.make_opsetid("", 17), h.make_opsetid("local", 1)], attributes=["beta"])
    return model([h.make_node("ReduceSum", ["x"], ["s"], keepdims=0), h.make_node("Greater", ["s", "zero"], ["c"]),
                  h.make_node("Both", ["x", "c"], ["y"], domain="local", beta=3.0)],
                 [("x", T.FLOAT, ["n"])], [("y", T.FLOAT, ["n"])], {"zero": np.float32(0)}, functions=[inner, outer],
                 extra=[h.make_opsetid("local", 1)])


def growing():
    """A loop whose value grows, with rows stacked, over a condition of its own."""
    body = h.make_graph([h.make_node("Concat", ["v", "one"], ["w"], axis=0), h.make_node("ReduceSum", ["w"], ["r"], keepdims=0),
                         h.make_node("Less", ["r", "most"], ["d"])], "b",
                        [h.make_tensor_value_info("i", T.INT64, []), h.make_tensor_value_info("c", T.BOOL, []), h.make_tensor_value_info("v", T.FLOAT, ["k"])],
                        [h.make_tensor_value_info("d", T.BOOL, []), h.make_tensor_value_info("w", T.FLOAT, ["k2"]), h.make_tensor_value_info("r", T.FLOAT, [])])
    return model([h.make_node("Loop", ["m", "go", "x"], ["y", "rows"], body=body)], [("x", T.FLOAT, ["n"])],
                 [("y", T.FLOAT, ["k"]), ("rows", T.FLOAT, ["i"])], {"m": np.int64(20), "go": np.bool_(True), "one": f32(1) + 2, "most": np.float32(9)})


MODELS = {"branches": (branches, {"n": 2}), "loop": (loop, {}), "scan": (scan, {}), "shapes": (shapes, {"n": 3}),
          "function": (function, {"n": 5}), "net": (net, {"n": 2, "h": 5, "w": 7}), "sizes": (sizes, {"n": 4}), "types": (types, {}),
          "contrib": (contrib, {"n": 2}), "masked": (masked, {"n": 2}), "quantised": (quantised, {"n": 2}),
          "quantised_lstm": (quantised_lstm, {"n": 2}), "recurrent": (recurrent, {"n": 2}), "arithmetic": (arithmetic, {"n": 5}),
          "windows": (windows, {}), "functions": (functions, {"n": 4}), "growing": (growing, {"n": 2})}
# ONNX Runtime multiplies 4-bit weights, and the state of a quantised LSTM, in 8 bits.
LOOSE = {"contrib": 1e-4, "quantised_lstm": 2e-3}


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    DATA.mkdir(parents=True, exist_ok=True)
    for name, (build, binding) in MODELS.items():
        made = build()
        foreign = name in ("recurrent", "functions", "growing") or any(n.domain == "com.microsoft" for n in made.graph.node)
        if not foreign:
            onnx.checker.check_model(made)
        (CORPUS / (name + ".onnx")).write_bytes(made.SerializeToString())
        feeds = {}
        for value in made.graph.input:
            shape = [binding[d.dim_param] if d.dim_param else d.dim_value for d in value.type.tensor_type.shape.dim]
            kind = h.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            feeds[value.name] = (np.arange(int(np.prod(shape))).reshape(shape) / (4 if kind.kind == "f" else 1)).astype(kind)
        lines = ["# what %s gives; written by scripts/oracle/make_onnx.py" % ("ONNX Runtime" if foreign else "onnx's reference evaluator")]
        if name in LOOSE:
            lines.append("tolerance %g" % LOOSE[name])
        lines += ["bind %s %d" % pair for pair in binding.items()]
        for value, got in zip(made.graph.output, (onnxruntime.InferenceSession(made.SerializeToString()) if foreign
                                                 else ReferenceEvaluator(made)).run(None, feeds)):
            lines.append("output %s %s" % (value.name, ",".join(map(str, got.shape))))
            lines.append(" ".join("%.9g" % x for x in np.asarray(got).reshape(-1)))
        (DATA / (name + ".txt")).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
