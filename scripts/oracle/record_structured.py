#!/usr/bin/env python3
"""Record what structured ops must give, for tests/ops/test_structured_golden.c, which describes the format.

    record_structured.py

Writes tests/ops/data_structured/*.txt. Numbers come from numpy in float64, written from the ops' definitions, and for
indexing, convolution and pooling from the ONNX reference evaluator, which our corner cases follow. Every file is made from
a seed of its own, so that one can change without the others.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

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

# ---- products


def q8_0(rng, rows, columns):
    """Random blocks and the numbers they stand for: an f16 scale and 32 int8."""
    scale = rng.uniform(0.01, 0.1, (rows, columns // 32)).astype(np.float16)
    level = rng.integers(-127, 128, (rows, columns // 32, 32), dtype=np.int8)
    data = b"".join(s.tobytes() + q.tobytes() for rs, rq in zip(scale, level) for s, q in zip(rs, rq))
    return data, (scale[..., None].astype(np.float64) * level).reshape(rows, columns)


def q4_1(rng, rows, columns):
    """f16 scale, f16 minimum, 32 nibbles: element i < 16 in the low half of byte i, i + 16 in its high half."""
    scale, low = (rng.uniform(0.01, 0.1, (rows, columns // 32)).astype(np.float16) for _ in range(2))
    level = rng.integers(0, 16, (rows, columns // 32, 32), dtype=np.uint8)
    packed = level[..., :16] | level[..., 16:] << 4
    data = b"".join(s.tobytes() + m.tobytes() + q.tobytes()
                    for rs, rm, rq in zip(scale, low, packed) for s, m, q in zip(rs, rm, rq))
    values = scale[..., None].astype(np.float64) * level + low[..., None].astype(np.float64)
    return data, values.reshape(rows, columns)


def quantize_rows(x):
    """The definition in src/ops/quantize_rows.c; gives scales, levels and the numbers they stand for."""
    blocks = x.astype(np.float32).reshape(-1, 32)
    scale = (np.abs(blocks).max(axis=1) / np.float32(127)).astype(np.float32)
    scale[scale < np.finfo(np.float32).tiny] = 0
    inverse = np.where(scale > 0, np.float32(1) / np.where(scale > 0, scale, 1), 0).astype(np.float32)
    level = np.clip(np.rint(blocks * inverse[:, None]), -127, 127)
    return scale, level, (scale[:, None].astype(np.float64) * level).reshape(x.shape)


def matmul_cases():
    rng = np.random.default_rng(1)
    for name, a, b, transpose in [("plain", (5, 19), (19, 23), False), ("batch", (3, 2, 4, 7), (2, 7, 5), False),
                                  ("ones", (2, 1, 3, 4), (3, 5, 4), True), ("depth_0", (3, 0), (0, 4), False),
                                  ("rows_0", (0, 4), (4, 3), False)]:
        c = Case(name)
        x, w = f32(rng, *a), f32(rng, *b)
        c.input("a", x), c.input("b", w)
        c.line("%%y = matmul %%a, %%b {transpose_b=%s}" % str(transpose).lower())
        c.want("y", x.astype(np.float64) @ (np.swapaxes(w, -1, -2) if transpose else w), **F32)
        yield c
    c = Case("open_rows")
    x, w = f32(rng, 6, 8), f32(rng, 5, 8)
    c.symbol("rows", 6), c.input("a", x, ("rows", 8)), c.input("b", w)
    c.line("%y = matmul %a, %b {transpose_b=true} : f32[rows,5]")
    c.want("y", x.astype(np.float64) @ w.T, **F32)
    yield c
    c = Case("integers_wrap_not")
    x, w = np.full((2, 64), 255, np.uint8), np.where(np.arange(64 * 3).reshape(64, 3) % 2, 127, -127).astype(np.int8)
    w[:, 1] = 127
    c.input("a", x), c.input("b", w)
    c.line("%y = matmul %a, %b {type=i32}")
    c.want("y", x.astype(np.int64) @ w.astype(np.int64))
    yield c
    for kind, make in [("q8_0", q8_0), ("q4_1", q4_1)]:
        data, w = make(rng, 6, 96)
        x = f32(rng, 3, 96)
        c = Case("float_" + kind)
        c.input("a", x), c.weight("b", kind, (6, 96), data)
        c.line("%y = matmul %a, %b {transpose_b=true}")
        c.want("y", x.astype(np.float64) @ w.T, relative=1e-6)
        yield c
        c = Case("quantised_" + kind)
        c.input("a", x), c.weight("b", kind, (6, 96), data)
        c.line("%q = quantize_rows %a\n%y = matmul %q, %b {transpose_b=true}")
        c.want("y", quantize_rows(x)[2] @ w.T, relative=1e-6)
        yield c
        c = Case("gather_" + kind)
        rows = np.array([5, -6, 2], np.int32)
        c.weight("b", kind, (6, 96), data), c.input("i", rows)
        c.line("%y = gather %b, %i")
        c.want("y", w[rows], relative=1e-6)
        yield c
        c = Case("grouped_" + kind)
        c.input("a", x), c.weight("b", kind, (6, 96), data)
        c.line("%k, %l, %m = grouped_matmul %a, %b {sizes=[1,3,2]}")
        y = x.astype(np.float64) @ w.T
        for name, part in zip("klm", (y[:, :1], y[:, 1:4], y[:, 4:])):
            c.want(name, part, relative=1e-6)
        yield c
        c = Case("interleaved_" + kind)
        c.input("a", x), c.weight("v", kind, (6, 96), data)
        other, w2 = make(rng, 6, 96)
        c.weight("w", kind, (6, 96), other)
        c.line("%b = form %v, %w {recipe=interleave, panel=3}")
        c.line("%k, %l = grouped_matmul %a, %b {sizes=[6,6], interleave=3}")
        c.want("k", y, relative=1e-6), c.want("l", x.astype(np.float64) @ w2.T, relative=1e-6)
        yield c
        c = Case("concatenated_" + kind)
        c.input("a", x), c.weight("v", kind, (6, 96), data), c.weight("w", kind, (6, 96), other)
        c.line("%b = form %v, %w\n%y = matmul %a, %b {transpose_b=true}")
        c.want("y", np.concatenate([y, x.astype(np.float64) @ w2.T], axis=1), relative=1e-6)
        yield c
    c = Case("quantize_values")
    x = f32(rng, 4, 64) * np.float32(10) ** rng.integers(-3, 4, (4, 1)).astype(np.float32)
    x[0, :32] = 0
    x[1, :32] = 0
    x[1, 5] = np.float32(1e-39)  # a denormal: the block counts as zeros
    x[2, 3] = 3000
    x[3, 40] = np.nan
    c.input("a", x), c.weight("b", "q8_0", (64, 64), identity_q8_0(64))
    c.line("%q = quantize_rows %a\n%y = matmul %q, %b {transpose_b=true}")
    want = quantize_rows(x)[2].reshape(4, 2, 32)
    want[3] = np.nan  # 0 times NaN reaches every column of the row
    c.want("y", want.reshape(4, 64), relative=1e-7)
    yield c
    c = Case("form_of_a_body")
    w = f32(rng, 3, 4)
    c.weight("w", "f32", (3, 4), w.tobytes())
    c.line('%b = form %w {recipe=body} {\n  %x = input {name="x"} : f32[3,4]\n  %y = transpose %x {permutation=[1,0]}\n'
           '  output "y" %y\n}')
    c.want("b", w.T)
    yield c
    c = Case("fused")
    x, w = f32(rng, 3, 4), f32(rng, 5, 4)
    c.input("a", x), c.input("b", w)
    c.line('%y, %z = fused %a, %b {\n  %p = input {name="p"} : f32[3,4]\n  %q = input {name="q"} : f32[5,4]\n'
           '  %m = matmul %p, %q {transpose_b=true}\n  %n = neg %m\n  output "y" %n\n  output "z" %m\n}')
    c.want("y", -(x.astype(np.float64) @ w.T), **F32), c.want("z", x.astype(np.float64) @ w.T, **F32)
    yield c
    for name, text, status, why in [
            ("depths_differ", '%a = input {name="a"} : f32[2,3]\n%b = input {name="b"} : f32[4,5]\n%y = matmul %a, %b',
             "SHAPE_MISMATCH", "matmul(a f32[2,3], b f32[4,5]): K of a and K of b do not agree"),
            ("blocks_across", '%a = input {name="a"} : f32[2,32]\n%b = weight {name="b"} : q8_0[32,64]\n%y = matmul %a, %b',
             "TYPE_MISMATCH", "transpose_b must be true"),
            ("quantised_float", '%a = input {name="a"} : f32[2,32]\n%q = quantize_rows %a\n%b = weight {name="b"} : f32[8,32]\n'
             "%y = matmul %q, %b {transpose_b=true}", "TYPE_MISMATCH", "a8 multiplies block types"),
            ("vector", '%a = input {name="a"} : f32[3]\n%b = input {name="b"} : f32[3,5]\n%y = matmul %a, %b',
             "SHAPE_MISMATCH", "a has rank 1"),
            ("leading_axes", '%a = input {name="a"} : f32[2,4,3]\n%b = input {name="b"} : f32[3,3,5]\n%y = matmul %a, %b',
             "SHAPE_MISMATCH", "the leading axes do not agree"),
            ("mixed", '%a = input {name="a"} : i8[2,3]\n%b = input {name="b"} : f32[3,5]\n%y = matmul %a, %b',
             "TYPE_MISMATCH", "an integer a needs"),
            ("sizes", '%a = input {name="a"} : f32[2,3]\n%b = input {name="b"} : f32[5,3]\n'
             "%y, %z = grouped_matmul %a, %b {sizes=[2,2]}", "SHAPE_MISMATCH", "axis 0 of b must have extent 4"),
            ("no_sizes", '%a = input {name="a"} : f32[2,3]\n%b = input {name="b"} : f32[5,3]\n'
             "%y = grouped_matmul %a, %b {sizes=[]}", "INVALID_ARGUMENT", "sizes is empty"),
            ("ragged_block", '%a = input {name="a"} : f32[2,33]\n%y = quantize_rows %a', "SHAPE_MISMATCH", "multiple of 32"),
            ("forms_differ", '%a = weight {name="a"} : f32[2,3]\n%b = weight {name="b"} : f32[2,4]\n%y = form %a, %b',
             "SHAPE_MISMATCH", "axis 1 of w... must have extent 3"),
            ("panel", '%a = weight {name="a"} : f32[5,3]\n%b = weight {name="b"} : f32[5,3]\n'
             "%y = form %a, %b {recipe=interleave, panel=2}", "INVALID_ARGUMENT", "no multiple of a panel"),
            ("fused_signature", '%a = input {name="a"} : f32[2,3]\n%y = fused %a {\n  %p = input {name="p"} : f32[2,4]\n'
             '  output "y" %p\n}', "SHAPE_MISMATCH", "must have extent 4")]:
        c = Case("refuses_" + name)
        c.line(text)
        c.fail(status, why)
        yield c


def identity_q8_0(n):
    """The identity matrix in blocks: scale 1, one level of 1."""
    rows = []
    for k in range(n):
        for block in range(n // 32):
            level = np.zeros(32, np.int8)
            if k // 32 == block:
                level[k % 32] = 1
            rows.append(np.float16(1).tobytes() + level.tobytes())
    return b"".join(rows)


# ---- positions


def rope(x, position, dims=0, base=10000.0, scale=1.0, magnitude=1.0, mode="half", factors=None):
    dims = dims or x.shape[2]
    angle = position[:, None] * base ** (-2.0 * np.arange(dims // 2) / dims) * scale
    if factors is not None:
        angle = angle / factors
    turn = magnitude * np.exp(1j * angle)[:, None, :]
    y = x.astype(np.float64).copy()
    first = slice(0, dims // 2) if mode == "half" else slice(0, dims, 2)
    second = slice(dims // 2, dims) if mode == "half" else slice(1, dims, 2)
    turned = (y[..., first] + 1j * y[..., second]) * turn
    y[..., first], y[..., second] = turned.real, turned.imag
    return y


def positions_cases():
    rng = np.random.default_rng(2)
    for name, options, text in [
            ("half", {}, ""), ("adjacent", dict(mode="adjacent"), "mode=adjacent"),
            ("part", dict(dims=6, base=500000.0, magnitude=1.25), "dims=6, base=500000, magnitude=1.25"),
            ("slower", dict(dims=4, scale=0.125, mode="adjacent"), "dims=4, scale=0.125, mode=adjacent")]:
        x, p = f32(rng, 4, 3, 10), np.array([0, 1, 1399, 100000], np.int32)
        c = Case("rope_" + name)
        c.input("x", x), c.input("p", p)
        c.line("%%y = rope %%x, %%p {%s}" % text if text else "%y = rope %x, %p")
        c.want("y", rope(x, p, **options), **F32)
        yield c
    x, p, f = f32(rng, 3, 1, 8), np.array([3, 0, 8000], np.int64), np.array([1, 2, 4, 32], np.float32)
    c = Case("rope_factors")
    c.input("x", x), c.input("p", p), c.input("f", f)
    c.line("%y = rope %x, %p, %f")
    c.want("y", rope(x, p, factors=f), **F32)
    yield c
    for name, offsets, past in [("ragged", [0, 3, 3, 7], [10, 4, 0]), ("one", [0, 5], [0]), ("none", [0, 0], [9])]:
        c = Case("positions_" + name)
        c.symbol("rows", offsets[-1])
        c.input("o", np.array(offsets, np.int32)), c.input("p", np.array(past, np.int32))
        c.line("%y = positions %o, %p {rows=rows}")
        want = [q + i for a, b, q in zip(offsets, offsets[1:], past) for i in range(b - a)]
        c.want("y", np.array(want, np.int32))
        yield c
    for name, offsets, why in [("begin", [1, 5], "start at 0"), ("falling", [0, 4, 3, 5], "do not fall"), ("end", [0, 4], "end at 4")]:
        c = Case("refuses_" + name)
        c.symbol("rows", 5)
        c.input("o", np.array(offsets, np.int32)), c.input("p", np.zeros(len(offsets) - 1, np.int32))
        c.line("%y = positions %o, %p {rows=rows}")
        c.fail("OUT_OF_RANGE", why, output="y")
        yield c
    for name, text, status, why in [
            ("odd", 'rope %x, %p {dims=5}', "INVALID_ARGUMENT", "dims is 5"),
            ("wide", 'rope %x, %p {dims=12}', "INVALID_ARGUMENT", "dims is 12"),
            ("negative", 'rope %x, %p {dims=-2}', "INVALID_ARGUMENT", "dims is -2"),
            ("base", 'rope %x, %p {base=0}', "INVALID_ARGUMENT", "base must be positive")]:
        c = Case("refuses_rope_" + name)
        c.line('%x = input {name="x"} : f32[4,3,10]\n%p = input {name="p"} : i32[4]\n%y = ' + text)
        c.fail(status, why)
        yield c


# ---- keys and values


def attend(q, keys, values, first, last, scale, cap):
    """One query head over positions first..last."""
    score = (keys[first:last + 1].astype(np.float64) @ q.astype(np.float64)) * scale
    if cap:
        score = cap * np.tanh(score / cap)
    weight = np.exp(score - score.max())
    return (weight / weight.sum()) @ values[first:last + 1].astype(np.float64)


def kv_cases():
    rng = np.random.default_rng(3)
    for name, kind, heads, kv_heads, window, cap, scale in [
            ("plain", "f32", 4, 2, 0, 0, 0), ("half", "f16", 4, 1, 0, 0, 0), ("window", "f32", 2, 2, 3, 0, 0.25),
            ("capped", "f16", 6, 3, 5, 1.5, 0)]:
        key_dim, value_dim = 8, 5
        c = Case("attention_" + name)
        c.line("%%s = state {name=\"s\"} : kv %s[%d,%d,%d]" % (kind, kv_heads, key_dim, value_dim))
        c.bind("kv s 4 16")
        held = {}  # slot -> keys, values
        state, numpy_type = "s", NAMES[kind]
        # Two chunks: of lengths 3, 0, 5 on slots 2, 0, 1, then 1, 6 on slots 1, 2: an empty sequence, a slot without rows.
        for chunk, parts in enumerate([[(2, 3), (0, 0), (1, 5)], [(1, 1), (2, 6)]]):
            rows = sum(n for _, n in parts)
            q, k, v = f32(rng, rows, heads, key_dim), f32(rng, rows, kv_heads, key_dim), f32(rng, rows, kv_heads, value_dim)
            past = [len(held.get(slot, ((), ()))[0]) for slot, _ in parts]
            for letter, array in zip("qkv", (q, k, v)):
                c.input("%s%d" % (letter, chunk), array)
            c.input("o%d" % chunk, np.cumsum([0] + [n for _, n in parts]).astype(np.int32))
            c.input("t%d" % chunk, np.array([slot for slot, _ in parts], np.int32))
            c.input("p%d" % chunk, np.array(past, np.int32))
            ragged = ", ".join("%%%s%d" % (letter, chunk) for letter in "otp")
            c.line("%%w%d = append %%%s, %%k%d, %%v%d, %s" % (chunk, state, chunk, chunk, ragged))
            state = "w%d" % chunk
            c.line("%%y%d = attention_kv %%q%d, %%%s, %s {window=%d, soft_cap=%g, scale=%g}"
                   % (chunk, chunk, state, ragged, window, cap, scale))
            want, row = np.zeros((rows, heads, value_dim)), 0
            for slot, n in parts:
                keys, values = held.setdefault(slot, ([], []))
                for _ in range(n):
                    keys.append(k[row].astype(numpy_type))
                    values.append(v[row].astype(numpy_type))
                    last = len(keys) - 1
                    first = max(0, last - window + 1) if window else 0
                    for h in range(heads):
                        share = h * kv_heads // heads
                        want[row, h] = attend(q[row, h], np.array(keys)[:, share], np.array(values)[:, share], first, last,
                                              scale or key_dim ** -0.5, cap)
                    row += 1
            c.want("y%d" % chunk, want, **F32)
        yield c
    for name, slots, past, why in [("slot", [4], [0], "slot[0] is 4"), ("full", [1], [15], "capacity is 16"), ("past", [1], [-1], "position -1")]:
        c = Case("refuses_" + name)
        c.line('%s = state {name="s"} : kv f32[1,4,4]')
        c.bind("kv s 4 16")
        c.input("k", f32(rng, 2, 1, 4)), c.input("v", f32(rng, 2, 1, 4)), c.input("q", f32(rng, 2, 1, 4))
        c.input("o", np.array([0, 2], np.int32)), c.input("t", np.array(slots, np.int32)), c.input("p", np.array(past, np.int32))
        c.line("%w = append %s, %k, %v, %o, %t, %p\n%y = attention_kv %q, %w, %o, %t, %p")
        c.fail("OUT_OF_RANGE", why, output="y")
        yield c
    c = Case("refuses_heads")
    c.line('%s = state {name="s"} : kv f32[2,4,4]\n%q = input {name="q"} : f32[2,3,4]\n%o = input {name="o"} : i32[2]\n'
           '%t = input {name="t"} : i32[1]\n%y = attention_kv %q, %s, %o, %t, %t')
    c.fail("SHAPE_MISMATCH", "3 heads do not share 2")
    yield c
    c = Case("refuses_reading_kv")
    c.line('%s = state {name="s"} : kv f32[2,4,4]\n%i = input {name="i"} : i32[2]\n%y = gather %s, %i')
    c.fail("TYPE_MISMATCH", "key/value state")
    yield c
    state, x = f32(rng, 2, 5, 3), f32(rng, 2, 2, 3)
    c = Case("append_dense")
    c.line('%s = state {name="s"} : state f32[2,5,3]')
    c.bind("in s " + numbers(state))
    c.input("x", x), c.input("p", np.array([3, 0], np.int64))
    c.line("%w = append_dense %s, %x, %p\n%y = neg %w")
    after = state.copy()
    after[0, 3:5], after[1, 0:2] = x[0], x[1]
    c.want("y", -after)
    yield c
    c = Case("assign")
    c.line('%s = state {name="s"} : state f32[2,5,3]')
    c.bind("in s " + numbers(state))
    c.input("x", f32(rng, 2, 5, 3))
    c.line("%d = add %s, %x\n%w = assign %s, %d\n%y = neg %w")
    x = np.array(c.after[-1].split()[2:], np.float64).astype(np.float32).reshape(2, 5, 3)
    c.want("y", -(state.astype(np.float64) + x), **F32)
    yield c
    c = Case("refuses_old_version")
    c.line('%s = state {name="s"} : state f32[4]\n%x = input {name="x"} : f32[4]\n%w = assign %x, %s')
    c.fail("TYPE_MISMATCH", "state must be a dense state")
    yield c


# ---- what ONNX defines


def onnx_op(kind, inputs, **attributes):
    names = ["i%d" % i for i in range(len(inputs))]
    node = onnx.helper.make_node(kind, names, ["y"], **attributes)
    make = onnx.helper.make_tensor_value_info
    types = [onnx.helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype) for x in inputs]
    graph = onnx.helper.make_graph([node], "g", [make(n, t, None) for n, t in zip(names, types)], [make("y", types[0], None)])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
    return ReferenceEvaluator(model).run(None, dict(zip(names, inputs)))[0]


def index_cases():
    rng = np.random.default_rng(4)

    def case(name, op, kind, inputs, text="", **attributes):
        c = Case(name)
        for letter, array in zip("xiu", inputs):
            c.input(letter, array)
        operands = ", ".join("%" + letter for letter, _ in zip("xiu", inputs))
        c.line("%%y = %s %s%s" % (op, operands, " {%s}" % text if text else ""))
        c.want("y", onnx_op(kind, inputs, **attributes), **(F32 if "mode" in text else {}))
        return c

    def index(low, high, *shape):
        return rng.integers(low, high, shape, dtype=np.int64)

    x = f32(rng, 5, 6, 3)
    yield case("gather", "gather", "Gather", [x, index(-5, 5, 2, 4)], axis=0)
    yield case("gather_middle", "gather", "Gather", [x, index(-6, 6, 4).astype(np.int32)], "axis=1", axis=1)
    yield case("gather_scalar", "gather", "Gather", [x, np.int64(-1)], "axis=-1", axis=-1)
    yield case("gather_none", "gather", "Gather", [x, np.zeros((0, 2), np.int64)], axis=0)
    yield case("gather_elements", "gather_elements", "GatherElements", [x, index(-6, 6, 5, 2, 3)], "axis=1", axis=1)
    yield case("gather_nd", "gather_nd", "GatherND", [x, index(-5, 5, 4, 2)])
    yield case("gather_nd_batch", "gather_nd", "GatherND", [x, index(-6, 6, 5, 2, 1)], "batch_dims=1", batch_dims=1)
    for mode in ("set", "add", "mul", "min", "max"):
        distinct = np.stack([rng.permutation(5)[:3] for _ in range(18)], axis=1).reshape(3, 6, 3).astype(np.int64)
        text = "axis=0" + ("" if mode == "set" else ", mode=" + mode)
        reduction = {} if mode == "set" else {"reduction": mode}
        yield case("scatter_elements_" + mode, "scatter_elements", "ScatterElements", [x, distinct, f32(rng, 3, 6, 3)],
                   text, axis=0, **reduction)
        if mode != "set":
            yield case("scatter_meeting_" + mode, "scatter_elements", "ScatterElements",
                       [x, index(-6, 6, 5, 4, 3), f32(rng, 5, 4, 3)], "axis=1, mode=" + mode, axis=1, reduction=mode)
        tuples = np.array([[4, 0], [-1, 2], [0, -6], [2, 5]], np.int64)
        yield case("scatter_nd_" + mode, "scatter_nd", "ScatterND", [x, tuples, f32(rng, 4, 3)],
                   "" if mode == "set" else "mode=" + mode, **reduction)
    for op, text in [("gather", "gather %x, %i"), ("gather_elements", "gather_elements %x, %i"),
                     ("gather_nd", "gather_nd %x, %i"), ("scatter_elements", "scatter_elements %x, %i, %u"),
                     ("scatter_nd", "scatter_nd %x, %i, %u")]:
        for bad in (5, -6, -2 ** 31, 2 ** 62):
            c = Case("refuses_%s_%d" % (op, bad))
            c.input("x", f32(rng, 5)), c.input("i", np.array([[1], [bad]] if op.endswith("nd") else [1, bad], np.int64))
            c.input("u", f32(rng, 2))
            c.line("%y = " + text)
            c.fail("OUT_OF_RANGE", "%s: index %d is outside [-5, 5)" % (op, bad), output="y")
            yield c
    c = Case("last_of_those_that_meet")
    c.input("x", np.zeros(3, np.float32)), c.input("i", np.array([1, 1, 1], np.int64)), c.input("u", np.array([1, 2, 3], np.float32))
    c.line("%y = scatter_elements %x, %i, %u")
    c.want("y", np.array([0, 3, 0], np.float32))
    yield c
    c = Case("nan_wins")
    c.input("x", np.array([np.nan, 1], np.float32)), c.input("i", np.array([0, 1], np.int64))
    c.input("u", np.array([1, np.nan], np.float32))
    c.line("%y = scatter_elements %x, %i, %u {mode=max}\n%z = scatter_elements %x, %i, %u {mode=min}")
    c.want("y", np.array([np.nan, np.nan])), c.want("z", np.array([np.nan, np.nan]))
    yield c


def spatial_cases():
    rng = np.random.default_rng(5)

    def listed(**lists):
        return ", ".join("%s=%s" % (k, str(v).replace(" ", "").lower()) for k, v in lists.items())

    def conv(name, op, x, w, bias, stride, dilation, before, after, groups):
        kind = "Conv" if op == "conv" else "ConvTranspose"
        c = Case(name)
        c.input("x", x), c.input("w", w)
        if bias is not None:
            c.input("b", bias)
        text = listed(stride=stride, dilation=dilation, pad_before=before, pad_after=after, groups=groups)
        c.line("%%y = %s %%x, %%w%s {%s}" % (op, "" if bias is None else ", %b", text))
        # The evaluator's ConvTranspose does not know groups: one call for each.
        wide = [a.astype(np.float64) for a in (x, w, bias) if a is not None]
        parts = [wide]
        if op == "conv_transpose" and groups > 1:
            parts = zip(np.split(wide[0], groups, axis=1), np.split(wide[1], groups, axis=0))
            groups = 1
        y = [onnx_op(kind, part, strides=stride, dilations=dilation, pads=before + after, group=groups) for part in parts]
        c.want("y", np.concatenate(y, axis=1), **F32)
        return c

    yield conv("conv", "conv", f32(rng, 2, 3, 7, 8), f32(rng, 4, 3, 3, 3), f32(rng, 4), [1, 1], [1, 1], [1, 1], [1, 1], 1)
    yield conv("conv_groups", "conv", f32(rng, 2, 4, 9, 7), f32(rng, 6, 2, 3, 2), None, [2, 1], [1, 2], [0, 1], [1, 0], 2)
    yield conv("conv_depthwise", "conv", f32(rng, 1, 5, 11), f32(rng, 5, 1, 3), f32(rng, 5), [3], [1], [2], [1], 5)
    yield conv("conv_volume", "conv", f32(rng, 1, 2, 4, 5, 3), f32(rng, 3, 2, 2, 2, 2), None, [1, 1, 1], [2, 1, 1], [0] * 3, [0] * 3, 1)
    yield conv("transpose", "conv_transpose", f32(rng, 2, 3, 4, 5), f32(rng, 3, 4, 3, 3), f32(rng, 4), [2, 2], [1, 1], [1, 1], [1, 0], 1)
    yield conv("transpose_groups", "conv_transpose", f32(rng, 1, 4, 6), f32(rng, 4, 3, 4), None, [2], [2], [0], [0], 2)
    c = Case("conv_open")
    x, w = f32(rng, 2, 3, 6, 9), f32(rng, 4, 3, 3, 2)
    c.symbol("n", 2), c.symbol("h", 6), c.symbol("w", 9)
    c.input("x", x, ("n", 3, "h", "w")), c.input("k", w)
    c.line("%y = conv %x, %k {stride=[2,1], pad_before=[1,0], pad_after=[1,1]}")
    c.want("y", onnx_op("Conv", [x.astype(np.float64), w.astype(np.float64)], strides=[2, 1], pads=[1, 0, 1, 1]), **F32)
    yield c
    c = Case("conv_of_nothing")
    c.symbol("n", 0), c.symbol("h", 0)
    c.input("x", np.zeros((0, 3, 0, 8), np.float32), ("n", 3, "h", 8)), c.input("k", w)
    c.line("%y = conv %x, %k")
    c.want("y", np.zeros((0, 4, 0, 7), np.float32))
    yield c
    c = Case("conv_too_small")
    c.symbol("h", 1)
    c.input("x", f32(rng, 1, 3, 1, 8), (1, 3, "h", 8)), c.input("k", w)
    c.line("%y = conv %x, %k")
    c.want("y", np.zeros((1, 4, 0, 7), np.float32))
    yield c
    c = Case("conv_integers")
    x, w = rng.integers(0, 256, (1, 2, 5, 5), dtype=np.uint8), rng.integers(-128, 128, (3, 2, 3, 3), dtype=np.int8)
    c.input("x", x), c.input("w", w)
    c.line("%y = conv %x, %w")
    c.want("y", onnx_op("Conv", [x.astype(np.float64), w.astype(np.float64)]).astype(np.int32))
    yield c
    for name, op, kind, shape, options in [
            ("max", "max_pool", "MaxPool", (2, 3, 7, 8), dict(kernel=[3, 2], stride=[2, 2], pad_before=[1, 0], pad_after=[1, 1])),
            ("max_ceil", "max_pool", "MaxPool", (1, 2, 11), dict(kernel=[3], stride=[3], dilation=[2], ceil=True)),
            ("average", "average_pool", "AveragePool", (2, 3, 7, 8), dict(kernel=[3, 2], stride=[2, 2], pad_before=[1, 0], pad_after=[1, 1])),
            ("average_pads", "average_pool", "AveragePool", (2, 1, 6), dict(kernel=[3], pad_before=[1], pad_after=[2], count_pad=True))]:
        x = f32(rng, *shape)
        names = dict(kernel="kernel_shape", stride="strides", dilation="dilations", ceil="ceil_mode", count_pad="count_include_pad")
        attributes = {names[k]: int(v) if isinstance(v, bool) else v for k, v in options.items() if k in names}
        attributes["pads"] = options.get("pad_before", [0] * (len(shape) - 2)) + options.get("pad_after", [0] * (len(shape) - 2))
        attributes.setdefault("strides", [1] * (len(shape) - 2))
        c = Case(name)
        c.input("x", x)
        c.line("%%y = %s %%x {%s}" % (op, listed(**options)))
        c.want("y", onnx_op(kind, [x.astype(np.float64)], **attributes), **F32)
        yield c
    x = f32(rng, 2, 3, 5, 4)
    c = Case("global")
    c.symbol("h", 5), c.input("x", x, (2, 3, "h", 4))
    c.line("%y = average_pool %x\n%z = max_pool %x")
    c.want("y", x.astype(np.float64).mean(axis=(2, 3), keepdims=True), **F32), c.want("z", x.max(axis=(2, 3), keepdims=True))
    yield c
    c = Case("nan_in_a_window")
    c.input("x", np.array([[[1, np.nan, 3, 4]]], np.float32))
    c.line("%y = max_pool %x {kernel=[2]}")
    c.want("y", np.array([[[np.nan, np.nan, 4]]]))
    yield c
    for name, text, status, why in [
            ("groups", "conv %x, %w {groups=2}", "INVALID_ARGUMENT", "3 results do not split into 2 groups"),
            ("channels", "conv %x, %w {groups=3}", "SHAPE_MISMATCH", "axis 1 of x must have extent 12"),
            ("strides", "conv %x, %w {stride=[1]}", "INVALID_ARGUMENT", "stride has 1 numbers for 2 spatial axes"),
            ("stride_0", "conv %x, %w {stride=[1,0]}", "INVALID_ARGUMENT", "stride is 0"),
            ("pads", "conv %x, %w {pad_before=[-1,0]}", "INVALID_ARGUMENT", "pad_before is -1"),
            ("kernel", "max_pool %x {kernel=[0,1]}", "INVALID_ARGUMENT", "kernel is 0")]:
        c = Case("refuses_" + name)
        c.line('%x = input {name="x"} : f32[1,4,5,5]\n%w = input {name="w"} : f32[3,4,2,2]\n%y = ' + text)
        c.fail(status, why)
        yield c


# ---- attention of tensors


def attention(q, k, v, seen, added, scale, cap):
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    score = q @ np.swapaxes(k, 2, 3) * (scale or q.shape[3] ** -0.5)
    if cap:
        score = cap * np.tanh(score / cap)
    score = np.where(np.broadcast_to(seen, score.shape), score + added, -np.inf)
    top = score.max(axis=3, keepdims=True, initial=-np.inf)
    weight = np.where(np.isneginf(score), 0, np.exp(score - np.where(np.isneginf(top), 0, top)))
    total = weight.sum(axis=3, keepdims=True)
    return weight @ v / np.where(total == 0, 1, total)


def attention_cases():
    rng = np.random.default_rng(6)
    for name, heads, kv_heads, queries, keys, options, text, mask in [
            ("plain", 3, 3, 5, 7, {}, "", None), ("grouped", 6, 2, 5, 9, {}, "causal=true", None),
            ("window", 2, 1, 9, 9, dict(window=3, cap=2.5), "causal=true, window=3, soft_cap=2.5", None),
            ("both_ways", 2, 1, 9, 9, dict(window=2, scale=0.5), "window=2, scale=0.5", None),
            ("more_queries", 2, 2, 5, 3, {}, "causal=true", None), ("no_keys", 1, 1, 3, 0, {}, "", None),
            ("mask", 2, 2, 4, 6, {}, "", rng.integers(0, 2, (4, 6)).astype(bool)),
            ("mask_and_causal", 2, 2, 6, 6, {}, "causal=true", rng.integers(0, 2, (2, 1, 6, 6)).astype(bool)),
            ("all_masked", 2, 2, 4, 6, {}, "", np.zeros((1, 6), bool)),
            ("added", 2, 2, 4, 6, {}, "", f32(rng, 2, 1, 4, 6)),
            ("lowest", 2, 2, 4, 6, {}, "", np.full((4, 1), np.finfo(np.float32).min, np.float32)),
            ("far_below", 1, 1, 2, 3, {}, "", np.array([[-60000, -60001, -60002]], np.float32))]:
        q, k, v = f32(rng, 2, heads, queries, 8), f32(rng, 2, kv_heads, keys, 8), f32(rng, 2, kv_heads, keys, 5)
        distance = np.arange(queries)[:, None] + keys - queries - np.arange(keys)
        seen, added = np.ones((queries, keys), bool), 0.0
        if "causal" in text:
            seen &= distance >= 0
        if options.get("window"):
            seen &= np.abs(distance) < options["window"]
        if mask is not None and mask.dtype == np.bool_:
            seen = seen & mask
        elif mask is not None:
            seen, added = seen & (mask > np.finfo(np.float32).min), mask.astype(np.float64)
        c = Case(name)
        c.input("q", q), c.input("k", k), c.input("v", v)
        if mask is not None:
            c.input("m", mask)
        c.line("%%y = attention %%q, %%k, %%v%s%s" % (", %m" if mask is not None else "", " {%s}" % text if text else ""))
        c.want("y", attention(q, k, v, seen, added, options.get("scale"), options.get("cap")), **F32)
        yield c
    c = Case("masked_nan")
    q, k, v = f32(rng, 1, 1, 2, 4), f32(rng, 1, 1, 3, 4), f32(rng, 1, 1, 3, 4)
    want = attention(q, k, v, np.array([True, False, True]), 0.0, None, None)
    k[0, 0, 1], v[0, 0, 1] = np.nan, np.nan
    c.input("q", q), c.input("k", k), c.input("v", v), c.input("m", np.array([True, False, True]))
    c.line("%y = attention %q, %k, %v, %m")
    c.want("y", want, **F32)
    yield c


# ---- control flow and sizes


def control_cases():
    rng = np.random.default_rng(7)
    for value in (True, False):
        x = f32(rng, 3, 4)
        c = Case("if_%s" % str(value).lower())
        c.input("c", np.bool_(value)), c.input("x", x)
        c.line('%y = if %c, %x {\n  %a = input {name="a"} : f32[3,4]\n  %b = neg %a\n  output "y" %b\n} else {\n'
               '  %a = input {name="a"} : f32[3,4]\n  %b = add %a, %a\n  output "y" %b\n}')
        c.want("y", -x if value else x + x)
        yield c
        c = Case("if_extents_%s" % str(value).lower())
        c.symbol("rows", 3), c.input("c", np.bool_(value)), c.input("x", x, ("rows", 4))
        c.line('%y, %z = if %c, %x {\n  %a = input {name="a"} : f32[rows,4]\n  %b = concat %a, %a {axis=0}\n  output "y" %b\n  output "z" %b\n'
               '} else {\n  %a = input {name="a"} : f32[rows,4]\n  output "y" %a\n  output "z" %a\n}\n%s = add %y, %z')
        c.want("s", 2 * (np.concatenate([x, x]) if value else x))
        yield c
    x = f32(rng, 4)
    c = Case("loop_carried")
    c.input("n", np.int64(5)), c.input("c", np.bool_(True)), c.input("x", x), c.input("d", f32(rng, 4))
    d = np.array(c.after[-1].split()[2:], np.float64).astype(np.float32)
    c.line('%y = loop %n, %c, %x, %d {carried=1} {\n  %i = input {name="i"} : i64[]\n  %k = input {name="k"} : bool[]\n'
           '  %a = input {name="a"} : f32[4]\n  %b = input {name="b"} : f32[4]\n  %s = add %a, %b\n  output "go" %k\n  output "a" %s\n}')
    total = x.copy()
    for _ in range(5):
        total = total + d
    c.want("y", total)
    yield c
    for trip, stop in [(5, 3), (2, 3), (0, 3)]:
        c = Case("loop_stops_%d" % trip)
        c.input("n", np.int64(trip)), c.input("c", np.bool_(True)), c.input("x", x)
        c.line('%%last = constant {data=i64(%d)} : i64[]\n%%one = constant {data=i64(1)} : i64[]' % (stop - 1))
        c.line('%y, %z = loop %n, %c, %x, %last {carried=1, symbol="times", trip=8} {\n  %i = input {name="i"} : i64[]\n'
               '  %k = input {name="k"} : bool[]\n  %a = input {name="a"} : f32[4]\n  %e = input {name="e"} : i64[]\n'
               '  %s = add %a, %a\n  %go = less %i, %e\n  output "go" %go\n  output "a" %s\n  output "s" %s\n}')
        times = min(trip, stop)
        c.want("y", x * 2.0 ** times), c.want("z", np.array([x * 2.0 ** (i + 1) for i in range(times)]).reshape(times, 4))
        yield c
    c = Case("loop_exact")
    c.symbol("steps", 3), c.input("n", np.int64(3)), c.input("c", np.bool_(True)), c.input("x", x)
    c.line('%y, %z = loop %n, %c, %x {carried=1, trip=steps} {\n  %i = input {name="i"} : i64[]\n  %k = input {name="k"} : bool[]\n'
           '  %a = input {name="a"} : f32[4]\n  %s = neg %a\n  output "go" %k\n  output "a" %s\n  output "s" %s\n}')
    c.want("y", -x), c.want("z", np.array([-x, x, -x]))
    yield c
    c = Case("loop_grows")
    c.line("symbol held made\nsymbol times <= 9 made")
    c.input("n", np.int64(3)), c.input("c", np.bool_(True)), c.input("x", x.reshape(2, 2))
    c.line('%y, %z = loop %n, %c, %x {carried=1, symbol="times", trip=9} {\n  %i = input {name="i"} : i64[]\n  %k = input {name="k"} : bool[]\n'
           '  %a = input {name="a"} : f32[held,2]\n  %s = concat %a, %a {axis=0}\n  %m = reduce_sum %a {axes=[0]}\n  output "go" %k\n'
           '  output "a" %s\n  output "m" %m\n} : f32[held,2], f32[times,2]\n%w = neg %y')
    a, sums = x.reshape(2, 2), []
    for _ in range(3):
        sums.append(a.astype(np.float64).sum(axis=0))
        a = np.concatenate([a, a])
    c.want("w", -a), c.want("z", np.array(sums), **F32)
    yield c
    c = Case("loop_in_if_in_loop")
    c.input("n", np.int64(4)), c.input("c", np.bool_(True)), c.input("x", x)
    c.line('''%two = constant {data=i64(2)} : i64[]
%y = loop %n, %c, %x, %two {carried=1} {
  %i = input {name="i"} : i64[]
  %k = input {name="k"} : bool[]
  %a = input {name="a"} : f32[4]
  %t = input {name="t"} : i64[]
  %odd = mod %i, %t
  %one = constant {data=i64(1)} : i64[]
  %is = equal %odd, %one
  %r = if %is, %a, %t, %k {
    %p = input {name="p"} : f32[4]
    %q = input {name="q"} : i64[]
    %m = input {name="m"} : bool[]
    %u = loop %q, %m, %p {carried=1} {
      %j = input {name="j"} : i64[]
      %l = input {name="l"} : bool[]
      %v = input {name="v"} : f32[4]
      %w = add %v, %v
      output "go" %l
      output "v" %w
    }
    output "r" %u
  } else {
    %p = input {name="p"} : f32[4]
    %q = input {name="q"} : i64[]
    %m = input {name="m"} : bool[]
    %u = neg %p
    output "r" %u
  }
  output "go" %k
  output "a" %r
}''')
    c.want("y", x * 16)
    yield c
    for name, data in [("some", [[0, 2, 0], [-1, 0, np.nan]]), ("none", [[0, 0, 0], [0, 0, 0]]), ("all", [[1, 2, 3], [4, 5, 6]])]:
        data = np.array(data, np.float32)
        c = Case("nonzero_" + name)
        c.symbol("rows", 2), c.input("x", data, ("rows", 3))
        c.line('%c = count_nonzero %x\n%b = bind_symbol %c {symbol="found", bound=3*rows}\n%y = nonzero %x {count=found}\n'
               "%t = transpose %y {permutation=[1,0]}\n%v = gather_nd %x, %t\n%w = concat %v, %v {axis=0}")
        where = np.array(np.nonzero(data))
        c.want("b", np.int64(where.shape[1])), c.want("y", where), c.want("w", np.tile(data[tuple(where)], 2))
        yield c
    c = Case("refuses_above_the_bound")
    c.input("n", np.int64(7))
    c.line('%b = bind_symbol %n {symbol="m", bound=5}\n%y = iota {shape=[m]}')
    c.fail("OUT_OF_RANGE", "symbol m became 7", output="y")
    yield c
    for name, text, status, why in [
            ("twice", '%n = input {name="n"} : i64[]\n%a = bind_symbol %n {symbol="m"}\n%b = bind_symbol %n {symbol="m"}',
             "INVALID_ARGUMENT", "symbol m is bound twice"),
            ("bound_input", 'symbol rows 1..4\n%n = input {name="n"} : i64[]\n%a = bind_symbol %n {symbol="rows"}',
             "INVALID_ARGUMENT", "only a symbol that is made"),
            ("branches", '%c = input {name="c"} : bool[]\n%y = if %c {\n  %a = constant {data=f32(1)} : f32[]\n  output "y" %a\n'
             '} else {\n  %a = constant {data=i64(1)} : i64[]\n  output "y" %a\n}', "TYPE_MISMATCH", "output 0 is f32"),
            ("captures", '%c = input {name="c"} : bool[]\n%x = input {name="x"} : f32[3]\n%y = if %c, %x {\n  %a = input {name="a"} : f32[3]\n  output "y" %a\n'
             '} else {\n  %a = input {name="a"} : f32[2]\n  output "y" %a\n}', "SHAPE_MISMATCH", "must have extent 2"),
            ("condition", '%c = input {name="c"} : f32[]\n%y = if %c {\n} else {\n}', "TYPE_MISMATCH", "condition must be bool"),
            ("loop_signature", '%n = input {name="n"} : i64[]\n%c = input {name="c"} : bool[]\n%y = loop %n, %c {\n  %i = input {name="i"} : i64[]\n'
             '  output "go" %i\n}', "INVALID_ARGUMENT", "the body has 1 inputs"),
            ("carried_changes", '%n = input {name="n"} : i64[]\n%c = input {name="c"} : bool[]\n%x = input {name="x"} : f32[2]\n'
             '%y = loop %n, %c, %x {carried=1} {\n  %i = input {name="i"} : i64[]\n  %k = input {name="k"} : bool[]\n'
             '  %a = input {name="a"} : f32[2]\n  %b = concat %a, %a {axis=0}\n  output "go" %k\n  output "a" %b\n}',
             "SHAPE_MISMATCH", "do not agree")]:
        c = Case("refuses_" + name)
        c.line(text)
        c.fail(status, why)
        yield c


# ---- random numbers


def philox(key, blocks):
    """Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011), blocks of four words for counters {block, 0}."""
    mask = (1 << 32) - 1
    out = []
    for block in blocks:
        c, k = [block & mask, block >> 32 & mask, 0, 0], [key & mask, key >> 32 & mask]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [b >> 32 ^ c[1] ^ k[0], b & mask, a >> 32 ^ c[3] ^ k[1], a & mask]
            k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
        out.append(c)
    return np.array(out, np.uint64).reshape(-1)


def random_cases():
    seed, counter = 1234567890123456789, 2 ** 32 - 2

    def unit(stream, first, n):
        return (philox(seed ^ stream, range(first, first + (n + 3) // 4))[:n + 3] >> np.uint64(8)).astype(np.float64) * 2.0 ** -24

    c = Case("uniform")
    c.bind("seed %d" % seed), c.bind("counter %d" % counter)
    c.line("%y = random_uniform {shape=[3,7]}\n%z = random_uniform {shape=[2], low=-2, high=3, seed=9}")
    c.want("y", unit(0, counter, 21)[:21].reshape(3, 7), **F32), c.want("z", -2 + 5 * unit(9, counter + 6, 2)[:2], **F32)
    yield c
    c = Case("normal")
    c.bind("seed %d" % seed), c.bind("counter %d" % counter)
    c.line("%y = random_normal {shape=[3,7], mean=1, deviation=2, seed=-3}")
    u = unit(-3 & (1 << 64) - 1, counter, 21).reshape(-1, 2)
    radius, angle = np.sqrt(-2 * np.log(1 - u[:, 0])), 2 * np.pi * u[:, 1]
    z = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[:21]
    c.want("y", 1 + 2 * z.reshape(3, 7), **F32)
    yield c


if __name__ == "__main__":
    for group in ("matmul", "positions", "kv", "index", "spatial", "attention", "control", "random"):
        write(group, list(globals()[group + "_cases"]()))
