#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records what numpy makes of elementwise rows, reductions, softmax, norms, movement and casts, for
tests/ops/test_golden.c.

    python3 scripts/oracle/record_ops.py tests/ops/data

Writes one text file per family. A case is
    op NAME {attributes}
    in TYPE[EXTENTS] : numbers...          one line an operand
    want TYPE[EXTENTS] RELATIVE : ...      one line a result; 0: the same number
    fail STATUS TEXT                       instead: refused, with this in the message
Unsigned 64-bit numbers are written as the signed number with the same bits.
"""
import math
import sys
from pathlib import Path

import numpy as np

RNG = np.random.default_rng(20240611)
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "i16": np.int16, "i32": np.int32,
         "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}
NAMES = {np.dtype(v): k for k, v in TYPES.items()}
erf = np.vectorize(math.erf, otypes=[np.float64])
NAN, INF = np.nan, np.inf


def number(v):
    if isinstance(v, (bool, np.bool_)):
        return str(int(v))
    if isinstance(v, np.integer):
        return str(int(v) - (1 << 64) if int(v) >= 1 << 63 else int(v))
    v = float(v)
    return "nan" if math.isnan(v) else ("inf" if v > 0 else "-inf") if math.isinf(v) else repr(v)


def tensor(array):
    array = np.asarray(array)
    return "%s[%s]" % (NAMES[array.dtype], ",".join(map(str, array.shape))), " ".join(number(v) for v in array.ravel())


class Family:
    def __init__(self, name):
        self.name, self.lines = name, []

    def case(self, op, operands, wants, attrs="", relative=0.0):
        self.lines.append("op %s {%s}" % (op, attrs))
        for operand in operands:
            self.lines.append("in %s : %s" % tensor(operand))
        for want in wants if isinstance(wants, list) else [wants]:
            kind, numbers = tensor(want)
            self.lines.append("want %s %g : %s" % (kind, relative, numbers))

    def fail(self, op, operands, status, text, attrs=""):
        self.lines.append("op %s {%s}" % (op, attrs))
        for operand in operands:
            self.lines.append("in %s : %s" % tensor(operand))
        self.lines.append("fail %s %s" % (status, text))

    def write(self, folder):
        (folder / (self.name + ".txt")).write_text("\n".join(self.lines) + "\n")


def draw(shape, low=-4.0, high=4.0, kind="f64"):
    """Multiples of 1/64: short in text, exact in every float type."""
    return np.asarray(np.ceil(RNG.uniform(low, high, shape) * 64 - 0.5) / 64 + (0.015625 if low > 0 else 0)).astype(TYPES[kind])


def whole(shape, low=-9, high=10, kind="i32"):
    return RNG.integers(low, high, shape).astype(TYPES[kind])


# ---- elementwise rows
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


UNARY = {
    "abs": np.abs, "neg": np.negative, "sign": lambda x: np.where(x == 0, x, np.sign(x)), "ceil": np.ceil,
    "floor": np.floor, "round": np.rint, "trunc": np.trunc, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": erf,
    "relu": lambda x: np.maximum(x, 0), "sigmoid": sigmoid, "softplus": softplus, "softsign": lambda x: x / (1 + np.abs(x)),
    "silu": lambda x: x * sigmoid(x), "gelu": lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "mish": lambda x: x * np.tanh(softplus(x)), "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "isnan": np.isnan, "isinf": np.isinf,
}
# name: attributes, the same in numpy
UNARY_WITH = {
    "leaky_relu": ("alpha=0.25", lambda x: np.where(x < 0, 0.25 * x, x)),
    "elu": ("alpha=0.5", lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    "celu": ("alpha=2", lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2))),
    "thresholded_relu": ("alpha=1.5", lambda x: np.where(x > 1.5, x, 0)),
    "swish": ("alpha=1.702", lambda x: x * sigmoid(1.702 * x)),
    "selu": ("", lambda x: 1.05070102214813232421875 * np.where(x > 0, x, 1.67326319217681884765625 * np.expm1(x))),
    "hard_sigmoid": ("alpha=0.3, beta=0.25", lambda x: np.clip(0.3 * x + 0.25, 0, 1)),
    "shrink": ("lambd=1, bias=0.5", lambda x: np.where(x < -1, x + 0.5, np.where(x > 1, x - 0.5, 0))),
}
POSITIVE = {"sqrt", "rsqrt", "log"}
UNIT = {"asin", "acos", "atanh", "log1p"}
EXACT = {"abs", "neg", "sign", "ceil", "floor", "round", "trunc", "relu", "isnan", "isinf", "sqrt", "reciprocal"}


def record_unary():
    f = Family("unary")
    for name, fn in UNARY.items():
        low, high = (0.01, 9) if name in POSITIVE else (-0.99, 0.99) if name in UNIT else (1, 9) if name == "acosh" else (-4, 4)
        x = draw(12, low, high)
        tolerance = 0 if name in EXACT else 1e-14
        f.case(name, [x], fn(x), relative=tolerance)
        special = np.array([0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -1.5, NAN, INF, -INF])
        with np.errstate(all="ignore"):
            if name not in {"silu", "gelu", "gelu_tanh", "mish", "hard_swish", "softsign"}:
                f.case(name, [special], fn(special), relative=tolerance)
            x32 = draw(5, low, high, "f32")
            f.case(name, [x32], np.asarray(fn(x32.astype(np.float64))).astype(bool if name in {"isnan", "isinf"} else np.float32), relative=0 if name in EXACT else 1.2e-7)
    for name, (attrs, fn) in UNARY_WITH.items():
        x = np.append(draw(15), [1.0, -1.0, 1.5, 0.0])
        f.case(name, [x], fn(x), attrs=attrs, relative=1e-14)
    for kind in ["i8", "i32", "i64"]:
        info = np.iinfo(TYPES[kind])
        x = np.array([info.min, -7, -1, 0, 1, 9, info.max], TYPES[kind])
        with np.errstate(all="ignore"):
            f.case("abs", [x], np.abs(x))
            f.case("neg", [x], np.negative(x))
        f.case("sign", [x], np.sign(x))
        f.case("relu", [x], np.maximum(x, 0))
        f.case("bitnot", [x], np.invert(x))
    for kind in ["u8", "u64"]:
        x = np.array([0, 1, 77, np.iinfo(TYPES[kind]).max], TYPES[kind])
        f.case("bitnot", [x], np.invert(x))
        f.case("abs", [x], x)
        f.case("neg", [x], np.negative(x))
    f.case("not", [np.array([True, False, True])], np.array([False, True, False]))
    f.fail("sqrt", [whole(3)], "TYPE_MISMATCH", "x is i32 but must be a float type")
    f.fail("bitnot", [draw(3)], "TYPE_MISMATCH", "x is f64")
    return f


def power(a, b):
    """Whole powers that wrap; a negative exponent gives the whole part."""
    info = np.iinfo(a.dtype)
    out = []
    for base, exponent in zip(a.tolist(), b.tolist()):
        v = base**exponent if exponent >= 0 else 1 if base == 1 else (-1) ** (exponent % 2) if base == -1 else 0
        out.append((v - info.min) % (info.max - info.min + 1) + info.min)
    return np.array(out, a.dtype)


def truncated(a, b):
    """C's quotient, 0 for a divisor of 0, in the width of a."""
    info = np.iinfo(a.dtype)
    out = []
    for x, y in zip(a.tolist(), b.tolist()):
        q = 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        out.append((q - info.min) % (info.max - info.min + 1) + info.min)
    return np.array(out, a.dtype)


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power, "mod": np.mod,
    "fmod": np.fmod, "min": np.minimum, "max": np.maximum, "atan2": np.arctan2,
    "prelu": lambda a, b: np.where(a < 0, a * b, a), "equal": np.equal, "not_equal": np.not_equal, "less": np.less,
    "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
}
INTEGER = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": truncated, "pow": power, "mod": np.mod, "fmod": np.fmod,
    "min": np.minimum, "max": np.maximum, "prelu": lambda a, b: np.where(a < 0, a * b, a), "equal": np.equal,
    "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor,
}


def record_binary():
    f = Family("binary")
    pairs = [((3, 5), (3, 5)), ((2, 3), (3,)), ((4, 1), (3,)), ((), (4,)), ((30,), (1,)), ((0, 3), (1, 3))]
    for name, fn in BINARY.items():
        low = 0.3 if name == "pow" else -4
        for a_shape, b_shape in pairs:
            a, b = draw(a_shape, low), draw(b_shape, low)
            f.case(name, [a, b], fn(a, b), relative=1e-14 if name in {"pow", "atan2", "mod", "fmod"} else 0)
        special = np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 5.5, -5.5, 7.0])
        a, b = [v.ravel() for v in np.meshgrid(special, special)]
        with np.errstate(all="ignore"):
            if name != "prelu":
                f.case(name, [a, b], fn(a, b), relative=1e-14 if name == "atan2" else 0)
        ties = np.array([1.0, 2.0, 3.0, 3.0])
        f.case(name, [ties, ties[::-1].copy()], fn(ties, ties[::-1]), relative=1e-15)
    for name, fn in INTEGER.items():
        for kind in ["i8", "i32", "i64", "u8", "u64"]:
            info = np.iinfo(TYPES[kind])
            edge = np.array([info.min, info.min + 1, 0, 1, 2, 7, info.max] + ([-1, -2, -7] if info.min else []), TYPES[kind])
            a, b = [v.ravel() for v in np.meshgrid(edge, edge)]
            if name == "pow":
                b = np.clip(b.astype(object), -3, 9).astype(TYPES[kind])
            with np.errstate(all="ignore"):
                f.case(name, [a, b], fn(a, b))
    for kind in ["u8", "u32", "i32", "i8"]:
        bits = 8 * TYPES[kind]().itemsize
        a = whole(12, 0 if kind[0] == "u" else -100, 100, kind)
        b = np.array([0, 1, 2, 3, 4, 5, 6, 7] + [bits - 1, min(bits, 100), min(bits + 1, 100), 100], TYPES[kind])
        left = [(int(x) << int(s)) % (1 << bits) for x, s in zip(a, b)]
        f.case("shift_left", [a, b], np.array(left).astype(object).astype(np.uint64).astype(TYPES[kind]))
        f.case("shift_right", [a, b], np.array([int(x) >> int(s) for x, s in zip(a, b)], TYPES[kind]))
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    for name, fn in {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "equal": np.equal,
                     "not_equal": np.not_equal}.items():
        f.case(name, [x, y], fn(x, y))
    f.fail("add", [draw((2, 3)), draw((2,))], "SHAPE_MISMATCH", "add(a f64[2,3], b f64[2])")
    f.fail("add", [draw(3), whole(3)], "TYPE_MISMATCH", "a f64[3], b i32[3]")
    return f


def record_ternary():
    f = Family("ternary")
    c = np.array([True, False, True, False, True, False])
    for kind in ["f64", "i64", "u8", "bool", "f32"]:
        a, b = (whole(6, 0, 2).astype(TYPES[kind]) for _ in range(2))
        f.case("where", [c, a, b], np.where(c, a, b))
    a, b = draw(3), draw(())
    f.case("where", [c[:, None], a, b], np.where(c[:, None], a, b))
    f.case("where", [c, np.full(6, NAN), np.ones(6)], np.where(c, NAN, 1.0))
    x = np.append(draw(9), [NAN, INF, -INF, 0.0])
    f.case("clip", [x, np.array(-1.0), np.array(2.0)], np.clip(x, -1.0, 2.0))
    f.case("clip", [x, np.array(2.0), np.array(-1.0)], np.where(np.isnan(x), NAN, -1.0))
    f.case("clip", [x, np.array(NAN), np.array(2.0)], np.full(13, NAN))
    i = np.array([-9, -2, 0, 3, 9], np.int32)
    f.case("clip", [i, np.array(-2, np.int32), np.array(4, np.int32)], np.clip(i, -2, 4))
    return f


def record_nan():
    """NaN at each of 18 places, in either operand, one of them a single element: never lost, never spread."""
    f = Family("nan")
    for at in range(18):
        x, y = draw(18, kind="f32"), draw(18, kind="f32")
        x[at] = NAN
        f.case("relu", [x], np.maximum(x, 0))
        for name, fn in {"max": np.maximum, "min": np.minimum}.items():
            f.case(name, [x, y], fn(x, y))
            f.case(name, [y, x], fn(y, x))
            f.case(name, [y, np.array([NAN], np.float32)], np.full(18, NAN, np.float32))
        f.case("clip", [x, np.float32(-1).reshape(1), np.float32(1).reshape(1)], np.clip(x, -1, 1))
        f.case("reduce_max", [x], np.float32(NAN))
        f.case("reduce_min", [x], np.float32(NAN))
        f.case("argmax", [x], np.int64(at))
        f.case("argmin", [x], np.int64(at))
    x = np.array([1.0, NAN, 3.0, NAN, 2.0])
    f.case("argmax", [x], np.int64(3), attrs="last=true")
    f.case("argmin", [x], np.int64(3), attrs="last=true")
    f.case("top_k", [x], [np.array([NAN, NAN, 3.0]), np.array([1, 3, 2])], attrs="k=3")
    f.case("top_k", [x], [np.array([1.0, 2.0, 3.0]), np.array([0, 4, 2])], attrs="k=3, largest=false")
    return f


# ---- reductions
def record_reduce():
    f = Family("reduce")
    rules = {
        "sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min,
        "l1": lambda x, **k: np.sum(np.abs(x), **k), "l2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
        "sum_square": lambda x, **k: np.sum(x * x, **k), "log_sum": lambda x, **k: np.log(np.sum(x, **k)),
        "log_sum_exp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
    }
    for name, fn in rules.items():
        x = draw((2, 3, 4), 0.1 if name == "log_sum" else -4)
        for axes in [(), (1,), (2,), (-1, 0)]:
            for keep in [False, True]:
                attrs = ", ".join(([("axes=[%s]" % ",".join(map(str, axes)))] if axes else []) + (["keep=true"] if keep else []))
                f.case("reduce_" + name, [x], fn(x, axis=axes or None, keepdims=keep), attrs=attrs, relative=1e-13)
    nothing = np.zeros((2, 0))
    for name, value in {"sum": 0, "mean": NAN, "prod": 1, "max": -INF, "min": INF, "l1": 0, "l2": 0, "sum_square": 0,
                        "log_sum": -INF, "log_sum_exp": -INF}.items():
        f.case("reduce_" + name, [nothing], np.full(2, value, np.float64), attrs="axes=[1]")
    big = np.array([1000.0, 1000.5, -1000.0])
    f.case("reduce_log_sum_exp", [big], np.float64(1000.5 + math.log(1 + math.exp(-0.5))), relative=1e-14)
    f.case("reduce_log_sum_exp", [np.array([INF, 1.0])], np.float64(INF))
    f.case("reduce_log_sum_exp", [np.array([-INF, -INF])], np.float64(-INF))
    for kind in ["i32", "u8", "i64", "u64"]:
        info, x = np.iinfo(TYPES[kind]), whole((3, 4), 0, 100, kind)
        for name in ["sum", "prod", "max", "min", "sum_square", "l1"]:
            f.case("reduce_" + name, [x], plain(name, x, TYPES[kind]), attrs="axes=[1]")
        f.case("reduce_max", [np.zeros((2, 0), TYPES[kind])], np.full(2, info.min, TYPES[kind]), attrs="axes=[1]")
        f.case("reduce_min", [np.zeros((2, 0), TYPES[kind])], np.full(2, info.max, TYPES[kind]), attrs="axes=[1]")
    f.case("reduce_mean", [np.array([-7, -2, 1], np.int32)], np.int32(-2))
    b = np.array([[True, False], [False, False], [True, True]])
    f.case("reduce_max", [b], b.any(axis=1), attrs="axes=[1]")
    f.case("reduce_min", [b], b.all(axis=1), attrs="axes=[1]")
    for name, fn in {"argmax": np.argmax, "argmin": np.argmin}.items():
        x = whole((4, 7), -2, 3)
        for axis in [0, 1, -1]:
            f.case(name, [x], fn(x, axis=axis), attrs="axis=%d" % axis)
            f.case(name, [x], np.expand_dims(fn(x, axis=axis), axis), attrs="axis=%d, keep=true" % axis)
            last = x.shape[axis] - 1 - fn(np.flip(x, axis), axis=axis)
            f.case(name, [x], last, attrs="axis=%d, last=true" % axis)
        u = np.array([0, 1 << 63, 5], np.uint64)
        f.case(name, [u], fn(u))
    f.fail("reduce_sum", [draw((2, 3))], "INVALID_ARGUMENT", "axis 2 is outside rank 2", attrs="axes=[2]")
    f.fail("reduce_sum", [draw((2, 3))], "INVALID_ARGUMENT", "axis 0 comes twice", attrs="axes=[0,-2]")
    f.fail("argmax", [np.zeros((2, 0))], "OUT_OF_RANGE", "no elements to choose from")
    for kind in ["f64", "i32"]:
        x = draw((3, 5), kind=kind)
        for axis in [0, 1]:
            total = np.cumsum(x, axis=axis, dtype=x.dtype)
            back = np.flip(np.cumsum(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)
            f.case("cumsum", [x], total, attrs="axis=%d" % axis, relative=1e-14)
            f.case("cumsum", [x], (total - x), attrs="axis=%d, exclusive=true" % axis, relative=1e-13)
            f.case("cumsum", [x], back, attrs="axis=%d, reverse=true" % axis, relative=1e-13)
    x = whole((3, 9), -3, 4)
    for largest in [True, False]:
        order = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :5]
        attrs = "k=5" + ("" if largest else ", largest=false")
        f.case("top_k", [x], [np.take_along_axis(x, order, 1), order], attrs=attrs)
    f.fail("top_k", [x], "OUT_OF_RANGE", "k is not in 0", attrs="k=10")
    return f


def plain(name, x, kind):
    """An integer reduction over axis 1 that wraps."""
    info = np.iinfo(kind)
    out = []
    for row in x.tolist():
        v = {"sum": sum(row), "prod": math.prod(row), "max": max(row), "min": min(row),
             "sum_square": sum(r * r for r in row), "l1": sum(abs(r) for r in row)}[name]
        out.append((v - info.min) % (info.max - info.min + 1) + info.min)
    return np.array(out, kind)


# ---- softmax and norms
def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def record_norm():
    f = Family("norm")
    for shape in [(3, 5), (2, 3, 4), (1, 1), (33,)]:
        x = draw(shape, -9, 9)
        for axis in range(-1, len(shape)):
            f.case("softmax", [x], softmax(x, axis), attrs="axis=%d" % axis, relative=1e-13)
            f.case("log_softmax", [x], np.log(softmax(x, axis)), attrs="axis=%d" % axis, relative=1e-12)
    low = np.float64(-np.finfo(np.float32).max)
    f.case("softmax", [np.full((1, 4), low)], np.full((1, 4), 0.25))
    f.case("softmax", [np.array([-60000.0, -50001.0, -50000.0])], softmax(np.array([-60000.0, -50001.0, -50000.0]), 0), relative=1e-13)
    f.case("softmax", [np.array([-INF, 0.0, -INF])], np.array([0.0, 1.0, 0.0]))
    f.case("softmax", [np.full(3, -INF)], np.full(3, NAN))
    f.case("softmax", [np.array([1.0, NAN, 2.0])], np.full(3, NAN))
    f.fail("softmax", [whole(3)], "TYPE_MISMATCH", "x is i32")
    f.fail("softmax", [np.array(1.0)], "INVALID_ARGUMENT", "axis -1 is outside rank 0")
    for shape in [(3, 5), (2, 3, 4), (1, 1), (2, 33)]:
        x, w, b = draw(shape), draw(shape[-1:]), draw(shape[-1:])
        for epsilon in [1e-5, 0.125]:
            attrs = "epsilon=%r" % epsilon
            rms = x / np.sqrt(np.mean(x * x, -1, keepdims=True) + epsilon)
            centred = x - x.mean(-1, keepdims=True)
            layer = centred / np.sqrt(np.mean(centred**2, -1, keepdims=True) + epsilon)
            f.case("rms_norm", [x], rms, attrs=attrs, relative=1e-13)
            f.case("rms_norm", [x, w], rms * w, attrs=attrs, relative=1e-13)
            f.case("layer_norm", [x], layer, attrs=attrs, relative=1e-12)
            f.case("layer_norm", [x, w], layer * w, attrs=attrs, relative=1e-12)
            f.case("layer_norm", [x, w, b], layer * w + b, attrs=attrs, relative=1e-12)
    f.case("rms_norm", [np.zeros((1, 4))], np.zeros((1, 4)))
    f.fail("rms_norm", [draw((2, 3)), draw(4)], "SHAPE_MISMATCH", "axis 0 of weight must have extent 3")
    return f


# ---- movement
def extents(values):
    return "[%s]" % ",".join(map(str, values))


def record_movement():
    f = Family("movement")
    payload = np.array([1.5, NAN, -0.0, INF, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    for shape in [(12,), (3, 4), (2, 2, 3), (1, 12, 1), (4, 3)]:
        f.case("reshape", [payload.reshape(3, 4)], payload.reshape(shape), attrs="shape=" + extents(shape))
    f.case("reshape", [np.zeros((2, 0))], np.zeros((1, 2, 0)), attrs="shape=[1,2,0]")
    f.case("reshape", [np.zeros((2, 0))], np.zeros((0, 7)), attrs="shape=[0,7]")
    f.case("reshape", [np.array(3.0)], np.array([[3.0]]), attrs="shape=[1,1]")
    wide = np.array([1 << 62, (1 << 62) + 1, -(1 << 63), -1, 0, 5], np.int64)
    f.case("reshape", [wide], wide.reshape(2, 3), attrs="shape=[2,3]")
    f.fail("reshape", [payload], "SHAPE_MISMATCH", "another number of elements", attrs="shape=[5]")
    for shape, to in [((3, 1), (3, 4)), ((), (2, 2)), ((1, 2), (3, 1, 2)), ((2,), (2,)), ((1,), (0,)), ((1, 3), (0, 3))]:
        x = draw(shape)
        f.case("expand", [x], np.broadcast_to(x, to), attrs="shape=" + extents(to))
    f.fail("expand", [draw((2, 3))], "SHAPE_MISMATCH", "axis 1 has an extent other than 1", attrs="shape=[2,4]")
    for shape, order in [((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 3, 4, 2), (3, 1, 0, 2)), ((0, 3), (1, 0)), ((), ())]:
        x = whole(shape, kind="i64")
        f.case("transpose", [x], np.transpose(x, order), attrs="permutation=" + extents(order))
    f.fail("transpose", [draw((2, 3))], "INVALID_ARGUMENT", "comes twice", attrs="permutation=[0,0]")
    x = whole((6, 7), kind="i32")
    for rows, columns in [((0, 6, 1), (0, 7, 1)), ((1, 5, 2), (6, None, -1)), ((5, 0, -2), (3, 4, 1)), ((2, 2, 1), (0, 7, 3))]:
        cut = [slice(*rows), slice(*columns)]
        y = x[tuple(cut)]
        attrs = "start=%s, length=%s, step=%s" % (extents([rows[0], columns[0]]), extents(y.shape), extents([rows[2], columns[2]]))
        f.case("slice", [x], y, attrs=attrs)
    f.case("slice", [np.arange(10.0)], np.zeros(0), attrs="start=[0], length=[0], step=[-1]")
    f.fail("slice", [np.arange(10.0)], "OUT_OF_RANGE", "the slice of axis 0 leaves", attrs="start=[4], length=[7], step=[1]")
    f.fail("slice", [np.arange(10.0)], "OUT_OF_RANGE", "the slice of axis 0 leaves", attrs="start=[3], length=[5], step=[-1]")
    f.fail("slice", [np.arange(10.0)], "INVALID_ARGUMENT", "the step of axis 0 is 0", attrs="start=[3], length=[5], step=[0]")
    for kind in ["f64", "i8", "bool"]:
        a, b, c = (whole((2, n), 0, 2).astype(TYPES[kind]) for n in (3, 0, 2))
        f.case("concat", [a, b, c], np.concatenate([a, b, c], 1), attrs="axis=1")
        f.case("concat", [a, a], np.concatenate([a, a], 0), attrs="axis=-2")
    f.fail("concat", [draw((2, 3)), draw((3, 3))], "SHAPE_MISMATCH", "axis 0 of x", attrs="axis=1")
    x = whole((3, 4))
    for mode, numpy_mode in [("reflect", "reflect"), ("edge", "edge"), ("wrap", "wrap")]:
        for before, after in [((1, 2), (2, 3)), ((5, 0), (0, 9))]:
            f.case("pad", [x], np.pad(x, list(zip(before, after)), mode=numpy_mode),
                   attrs="before=%s, after=%s, mode=%s" % (extents(before), extents(after), mode))
    f.case("pad", [x], np.pad(x, [(1, 0), (2, 3)], constant_values=-7), attrs="before=[1,2], after=[0,3], value=-7")
    f.case("pad", [np.zeros((0, 2))], np.full((2, 2), 1.5), attrs="before=[1,0], after=[1,0], value=1.5")
    f.case("pad", [np.ones(1)], np.ones(4), attrs="before=[1], after=[2], mode=reflect")
    f.fail("pad", [x], "OUT_OF_RANGE", "axis 0 would be cut", attrs="before=[-1,0], after=[0,0]")
    f.case("iota", [], np.broadcast_to(np.arange(5), (3, 5)), attrs="shape=[3,5]")
    f.case("iota", [], np.broadcast_to(np.arange(3, dtype=np.float32)[:, None], (3, 5)), attrs="shape=[3,5], axis=0, type=f32")
    f.case("iota", [], (np.arange(300) % 256).astype(np.uint8), attrs="shape=[300], type=u8")
    return f


def saturated(v, kind):
    info = np.iinfo(TYPES[kind])
    return 0 if math.isnan(v) else info.max if v >= info.max else info.min if v <= info.min else int(v)


def record_cast():
    f = Family("cast")
    x = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, 127.9, 128.0, -128.9, 255.5, 256.0, 65535.9, 1e9, 2147483648.0, -3e9,
                  9.3e18, 1.9e19, -1e30, 1e300, NAN, INF, -INF])
    for kind in ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]:
        f.case("cast", [x], np.array([saturated(v, kind) for v in x.tolist()], TYPES[kind]), attrs="type=" + kind)
    f.case("cast", [x], x != 0, attrs="type=bool")
    with np.errstate(all="ignore"):
        f.case("cast", [x], x.astype(np.float32), attrs="type=f32")
        f.case("cast", [x], x.astype(np.float16), attrs="type=f16")
    # One rounding: just above a tie of f16, which two roundings (through f32) would lose.
    tie = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 1 + 3 * 2.0**-11 - 2.0**-40, 65519.99999999, 65520.0, 2.0**-25, 2.0**-25 + 2.0**-60])
    with np.errstate(all="ignore"):
        f.case("cast", [tie], tie.astype(np.float16), attrs="type=f16")
    i = np.array([0, 1, -1, 127, 128, -129, 255, 256, 65536, 1 << 31, -(1 << 31) - 1, (1 << 62) + 1, -(1 << 63)], np.int64)
    for kind in ["i8", "i16", "i32", "u8", "u16", "u32", "u64"]:
        f.case("cast", [i], i.astype(TYPES[kind]), attrs="type=" + kind)
    f.case("cast", [i], i != 0, attrs="type=bool")
    # Integers beyond 2^53 round once: the first is above a tie of f32.
    wide = np.array([(1 << 60) + (1 << 36) + 1, (1 << 60) + (1 << 36), (1 << 53) + 1, (1 << 24) + 1, (1 << 24) + 3, -(1 << 60) - (1 << 36) - 1], np.int64)
    f.case("cast", [wide], wide.astype(np.float32), attrs="type=f32")
    f.case("cast", [wide], wide.astype(np.float64), attrs="type=f64")
    huge = np.array([(1 << 63) + (1 << 39) + 1, (1 << 64) - 1, 1 << 63, 3], np.uint64)
    f.case("cast", [huge], huge.astype(np.float32), attrs="type=f32")
    f.case("cast", [huge], huge.astype(np.float64), attrs="type=f64")
    b = np.array([True, False])
    for kind in ["f32", "i8", "u64", "f16"]:
        f.case("cast", [b], b.astype(TYPES[kind]), attrs="type=" + kind)
    h = np.array([0.1, -2.5, 65504.0, 6e-8, NAN, INF], np.float16)
    f.case("cast", [h], h.astype(np.float32), attrs="type=f32")
    f.case("cast", [h], np.array([saturated(float(v), "i16") for v in h], np.int16), attrs="type=i16")
    return f


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for record in [record_unary, record_binary, record_ternary, record_nan, record_reduce, record_norm, record_movement,
                   record_cast]:
        family = record()
        family.write(folder)
        print("%s: %d cases" % (family.name, sum(line.startswith("op ") for line in family.lines)))


if __name__ == "__main__":
    main()
