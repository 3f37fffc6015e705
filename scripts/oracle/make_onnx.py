#!/usr/bin/env python3
"""Write the small ONNX models that tests and the fuzz target begin from.

    $(python3 scripts/venv.py) scripts/oracle/make_onnx.py

tests/fuzz/corpus/fuzz_onnx/*.onnx: one small graph a subject. tests/formats/test_onnx.c opens them, cuts them at every
byte and flips their bytes, and compares what `expect` says: the outputs for the inputs 0, 1, 2, ... / 4 (floats) or
0, 1, 2, ... (integers), as onnx's reference evaluator computes them, in tests/formats/data/onnx/*.txt.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import venv  # noqa: E402

venv.enter()

import numpy as np  # noqa: E402
import onnx  # noqa: E402
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


MODELS = {"branches": (branches, {"n": 2}), "loop": (loop, {}), "scan": (scan, {}), "shapes": (shapes, {"n": 3}),
          "function": (function, {"n": 5}), "net": (net, {"n": 2, "h": 5, "w": 7}), "sizes": (sizes, {"n": 4}), "types": (types, {})}


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    DATA.mkdir(parents=True, exist_ok=True)
    for name, (build, binding) in MODELS.items():
        made = build()
        onnx.checker.check_model(made)
        (CORPUS / (name + ".onnx")).write_bytes(made.SerializeToString())
        feeds = {}
        for value in made.graph.input:
            shape = [binding[d.dim_param] if d.dim_param else d.dim_value for d in value.type.tensor_type.shape.dim]
            kind = h.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            feeds[value.name] = (np.arange(int(np.prod(shape))).reshape(shape) / (4 if kind.kind == "f" else 1)).astype(kind)
        lines = ["# what onnx's reference evaluator gives; written by scripts/oracle/make_onnx.py"]
        lines += ["bind %s %d" % pair for pair in binding.items()]
        for value, got in zip(made.graph.output, ReferenceEvaluator(made).run(None, feeds)):
            lines.append("output %s %s" % (value.name, ",".join(map(str, got.shape))))
            lines.append(" ".join("%.9g" % x for x in np.asarray(got).reshape(-1)))
        (DATA / (name + ".txt")).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
