#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The chain of small ops of bench/overhead.c as an ONNX graph.

    chain.py OUT.onnx [--steps N]
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # noqa: E402  the script beside this folder, not the module

WIDTH, STEPS = 16, 1000
OPS = (("Add", "c"), ("Abs",), ("Sqrt",), ("Mul", "c"), ("Neg",), ("Min", "c"), ("Sub", "c"), ("Max", "d"))


def inputs():
    """As the program fills them."""
    import numpy as np
    i = np.arange(WIDTH, dtype=np.float32)
    return {"x": np.float32(0.5) - np.float32(0.0625) * i, "c": np.float32(0.125) + np.float32(0.015625) * i,
            "d": np.full(WIDTH, -1, np.float32)}


def write(out, steps=STEPS):
    import onnx
    from onnx import TensorProto, helper
    nodes, x = [], "x"
    for step in range(steps):
        kind, *others = OPS[step % len(OPS)]
        nodes.append(helper.make_node(kind, [x, *others], ["y" if step == steps - 1 else "t%d" % step]))
        x = nodes[-1].output[0]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [WIDTH]) for name in ("x", "c", "d", "y")]
    graph = helper.make_graph(nodes, "chain", values[:3], values[3:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, str(out))


def main():
    parser = argparse.ArgumentParser(description="Write a chain of small ops as an ONNX graph.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    write(arguments.out, arguments.steps)


if __name__ == "__main__":
    venv.enter()
    main()
