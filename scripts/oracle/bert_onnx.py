#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A BERT encoder of a model folder as an ONNX graph with open batch and length, for engines that read nothing else.

    bert_onnx.py FOLDER OUT.onnx            sentence vectors: mean over the texts' own tokens, of length one
    bert_onnx.py FOLDER OUT.onnx --rows     rows of the last layer instead

The graph is spelled out in plain operators, as exporters write it: normalisation and gelu in their parts, attention from
Reshape, Transpose, MatMul and Softmax, shapes computed from the input's. Inputs: input_ids, attention_mask and
token_type_ids, int64 [batch, length].
"""
import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

OPSET, IR_VERSION = 17, 9
MASKED = -1e30  # far below every score, and finite


class Writer:
    """Nodes in order; every value is named by its number. Equal constants are stored once."""

    def __init__(self):
        self.nodes, self.constants = [], {}

    def __call__(self, operator, *inputs, **attributes):
        from onnx import helper
        name = "v%d" % len(self.nodes)
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, array, name=None):
        import numpy as np
        from onnx import numpy_helper
        array = np.ascontiguousarray(array)
        name = name or "k_%s_%s" % (array.dtype.name, "_".join(str(v).replace("-", "m") for v in array.ravel()))
        name += "" if array.ndim else "_s"
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def number(self, value):
        import numpy as np
        return self.constant(np.array(value, np.float32))

    def integers(self, *values):
        import numpy as np
        return self.constant(np.array(values, np.int64))


class Bert:
    def __init__(self, folder):
        from safetensors.numpy import load_file
        self.config = json.loads((Path(folder) / "config.json").read_text())
        if self.config["model_type"] != "bert" or self.config["hidden_act"] != "gelu":
            raise SystemExit("bert_onnx.py: %s is no BERT with gelu" % folder)
        self.weights = {name.removeprefix("bert."): value for name, value in load_file(str(Path(folder) / "model.safetensors")).items()}
        self.w = Writer()

    def weight(self, name, transposed=False):
        import numpy as np
        value = self.weights[name].astype(np.float32)
        return self.w.constant(value.T if transposed else value, name)

    def linear(self, x, name):
        return self.w("Add", self.w("MatMul", x, self.weight(name + ".weight", transposed=True)), self.weight(name + ".bias"))

    def norm(self, x, name):
        w = self.w
        apart = w("Sub", x, w("ReduceMean", x, axes=[-1]))
        spread = w("ReduceMean", w("Pow", apart, w.number(2)), axes=[-1])
        unit = w("Div", apart, w("Sqrt", w("Add", spread, w.number(self.config["layer_norm_eps"]))))
        return w("Add", w("Mul", unit, self.weight(name + ".weight")), self.weight(name + ".bias"))

    def gelu(self, x):
        w = self.w
        return w("Mul", w("Mul", x, w("Add", w("Erf", w("Div", x, w.number(2 ** 0.5))), w.number(1))), w.number(0.5))

    def embeddings(self, length):
        import numpy as np
        w = self.w
        positions = w.constant(np.arange(self.config["max_position_embeddings"], dtype=np.int64), "positions")
        used = w("Slice", positions, w.integers(0), length, w.integers(0))
        sums = [w("Gather", self.weight("embeddings.%s_embeddings.weight" % kind), index)
                for kind, index in (("word", "input_ids"), ("token_type", "token_type_ids"), ("position", used))]
        return self.norm(w("Add", w("Add", sums[0], sums[1]), sums[2]), "embeddings.LayerNorm")

    def attention(self, x, layer, apart, together, mask):
        w, heads = self.w, self.config["num_attention_heads"]
        head = self.config["hidden_size"] // heads

        def part(name, order):
            return w("Transpose", w("Reshape", self.linear(x, layer + "attention.self." + name), apart), perm=order)
        query, key, value = part("query", [0, 2, 1, 3]), part("key", [0, 2, 3, 1]), part("value", [0, 2, 1, 3])
        scores = w("Add", w("Div", w("MatMul", query, key), w.number(head ** 0.5)), mask)
        mixed = w("Transpose", w("MatMul", w("Softmax", scores, axis=-1), value), perm=[0, 2, 1, 3])
        return self.linear(w("Reshape", mixed, together), layer + "attention.output.dense")

    def rows(self):
        w, width, heads = self.w, self.config["hidden_size"], self.config["num_attention_heads"]
        shape = w("Shape", "input_ids")
        batch, length = (w("Gather", shape, w.integers(axis)) for axis in (0, 1))
        apart = w("Concat", batch, length, w.integers(heads), w.integers(width // heads), axis=0)
        together = w("Concat", batch, length, w.integers(width), axis=0)
        seen = w("Cast", w("Unsqueeze", "attention_mask", w.integers(1, 2)), to=1)
        mask = w("Mul", w("Sub", w.number(1), seen), w.number(MASKED))
        x = self.embeddings(length)
        for i in range(self.config["num_hidden_layers"]):
            layer = "encoder.layer.%d." % i
            x = self.norm(w("Add", self.attention(x, layer, apart, together, mask), x), layer + "attention.output.LayerNorm")
            inner = self.gelu(self.linear(x, layer + "intermediate.dense"))
            x = self.norm(w("Add", self.linear(inner, layer + "output.dense"), x), layer + "output.LayerNorm")
        return x

    def vectors(self, x):
        w = self.w
        own = w("Cast", w("Unsqueeze", "attention_mask", w.integers(2)), to=1)
        total = w("ReduceSum", w("Mul", x, own), w.integers(1), keepdims=0)
        mean = w("Div", total, w("Max", w("ReduceSum", own, w.integers(1), keepdims=0), w.number(1e-9)))
        length = w("Sqrt", w("ReduceSum", w("Mul", mean, mean), w.integers(1)))
        return w("Div", mean, w("Max", length, w.number(1e-12)))

    def model(self, rows):
        from onnx import TensorProto, helper
        x = self.rows()
        out, extents = ("rows", ["batch", "length"]) if rows else ("vectors", ["batch"])
        self.w.nodes.append(helper.make_node("Identity", [x if rows else self.vectors(x)], [out]))
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
                  for name in ("input_ids", "attention_mask", "token_type_ids")]
        output = helper.make_tensor_value_info(out, TensorProto.FLOAT, extents + [self.config["hidden_size"]])
        graph = helper.make_graph(self.w.nodes, "bert", inputs, [output], list(self.w.constants.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def write(folder, out, rows=False):
    import onnx
    model = Bert(folder).model(rows)
    onnx.checker.check_model(model)
    onnx.save(model, str(out))


def main():
    parser = argparse.ArgumentParser(description="Write a BERT encoder's folder as an ONNX graph of plain operators.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", action="store_true", help="rows of the last layer instead of sentence vectors")
    arguments = parser.parse_args()
    write(arguments.folder, arguments.out, arguments.rows)


if __name__ == "__main__":
    venv.enter()
    main()
