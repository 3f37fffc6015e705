"""Cases of structured ops as tests/ops/test_structured_golden.c reads them, which describes the format."""
from pathlib import Path

import numpy as np

OUT = Path(__file__).resolve().parents[2] / "tests" / "ops" / "data_structured"
NAMES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
         "i8": np.int8, "bool": np.bool_}


def type_name(dtype):
    return next(name for name, known in NAMES.items() if np.dtype(known) == dtype)


def numbers(array):
    flat = np.asarray(array).reshape(-1)
    if flat.dtype.kind == "f":
        return " ".join("%.9g" % float(x) for x in flat)
    return " ".join(str(int(x)) for x in flat)


class Case:
    """A graph's text and the lines that bind its inputs and state its outputs."""

    def __init__(self, name):
        self.name, self.graph, self.after = name, ["rung 1"], []

    def symbol(self, name, value, low=0, high=64):
        self.graph.append("symbol %s %d..%d" % (name, low, high))
        self.after.append("symbol %s %d" % (name, value))

    def input(self, name, array, shape=None):
        array = np.asarray(array)
        extents = ",".join(map(str, shape if shape is not None else array.shape))
        self.graph.append('%%%s = input {name="%s"} : %s[%s]' % (name, name, type_name(array.dtype), extents))
        self.after.append("in %s %s" % (name, numbers(array)))

    def weight(self, name, kind, shape, data):
        self.graph.append('%%%s = weight {name="%s"} : %s[%s]' % (name, name, kind, ",".join(map(str, shape))))
        self.after.append("bytes %s %s" % (name, data.hex()))

    def line(self, text):
        self.graph.append(text)

    def bind(self, text):
        self.after.append(text)

    def want(self, name, array, relative=0.0, absolute=0.0, output=None):
        array = np.asarray(array)
        self.graph.append('output "%s" %%%s' % (name, output or name))
        extents = "".join("%d " % extent for extent in array.shape)
        self.after.append("want %s %g %g %s: %s" % (name, relative, absolute, extents, numbers(array)))

    def fail(self, status, text, output=None):
        if output:
            self.graph.append('output "y" %%%s' % output)
        self.after = ["fail %s %s" % (status, text)] if output is None else self.after + ["fail %s %s" % (status, text)]

    def text(self):
        after = sorted(self.after, key=lambda line: line.startswith(("want", "fail")))  # a stable sort: results last
        return "\n".join(["case " + self.name] + self.graph + ["---"] + after + ["end", ""])


def write(name, cases):
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / (name + ".txt")).write_text("# Written by scripts/oracle/record_structured.py.\n" + "\n".join(c.text() for c in cases))


def f32(rng, *shape):
    return rng.uniform(-2, 2, shape).astype(np.float32)


F32 = dict(relative=2e-7, absolute=1e-12)  # one rounding of what was computed in double
