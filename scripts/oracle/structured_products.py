"""Products, quantised rows, forms, rotary positions: numpy in float64, from the ops' definitions."""
import numpy as np

from oracle.structured_case import F32, Case, f32

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
    for kind, make in [("q8_0", q8_0), ("q4_1", q4_1)]:
        data, w = make(rng, 4 * 16, 64)  # four experts of 16 rows
        x, chosen = f32(rng, 5, 2, 64), np.array([[0, 3], [3, 0], [1, 1], [3, 2], [0, 1]], np.int32)
        for name, a, value in [("experts_", "%a", x.astype(np.float64)),
                               ("experts_quantised_", "%q", quantize_rows(x.reshape(10, 64))[2].reshape(5, 2, 64))]:
            c = Case(name + kind)
            c.input("a", x), c.weight("b", kind, (4 * 16, 64), data), c.input("i", chosen)
            c.line("%q = quantize_rows %a" if a == "%q" else "%z = neg %a")
            c.line("%%y = expert_matmul %s, %%b, %%i {experts=4}" % a)
            experts = w.reshape(4, 16, 64)
            c.want("y", np.einsum("rpnk,rpk->rpn", experts[chosen], value), relative=1e-6)
            yield c
    c = Case("experts_of_one_tensor")
    x, w, chosen = f32(rng, 6, 1, 7), f32(rng, 3, 5, 7), np.array([[2, 0], [1, 2], [0, 1], [2, 2], [0, 2], [1, 0]], np.int64)
    c.input("a", x), c.weight("b", "f32", (3, 5, 7), w.tobytes()), c.input("i", chosen)
    c.line("%y = expert_matmul %a, %b, %i {experts=3}")
    c.want("y", np.einsum("rpnk,rk->rpn", w.astype(np.float64)[chosen], x[:, 0].astype(np.float64)), **F32)
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
            ("experts_rows", '%a = input {name="a"} : f32[2,1,3]\n%b = weight {name="b"} : f32[7,3]\n'
             '%i = input {name="i"} : i32[2,1]\n%y = expert_matmul %a, %b, %i {experts=2}', "SHAPE_MISMATCH",
             "7 rows of b are no multiple of 2 experts"),
            ("experts_places", '%a = input {name="a"} : f32[2,3,3]\n%b = weight {name="b"} : f32[2,4,3]\n'
             '%i = input {name="i"} : i32[2,2]\n%y = expert_matmul %a, %b, %i {experts=2}', "SHAPE_MISMATCH",
             "places of a and index do not agree"),
            ("experts_index", '%a = input {name="a"} : f32[2,1,3]\n%b = weight {name="b"} : f32[2,4,3]\n'
             '%i = input {name="i"} : f32[2,1]\n%y = expert_matmul %a, %b, %i {experts=2}', "TYPE_MISMATCH", "index"),
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


def rotate(x, cosine, sine, mode="half", table="pair"):
    """By complex numbers where a pair has one turn; else each of its halves has its own."""
    n = cosine.shape[-1] * (2 if table == "pair" else 1)
    y = x.astype(np.float64).copy()
    first = slice(0, n // 2) if mode == "half" else slice(0, n, 2)
    second = slice(n // 2, n) if mode == "half" else slice(1, n, 2)
    turn = cosine.astype(np.float64) + 1j * sine.astype(np.float64)
    turns = (turn, turn) if table == "pair" else (turn[..., first], turn[..., second])
    value = y[..., first] + 1j * y[..., second]
    y[..., first], y[..., second] = (value * turns[0]).real, (value * turns[1]).imag
    return y


def rotate_cases():
    rng = np.random.default_rng(7)
    for name, shape, tables, options in [
            ("pair", (2, 3, 4, 10), (4, 5), {}), ("channel", (2, 3, 4, 8), (2, 1, 4, 8), dict(table="channel")),
            ("neighbours", (3, 2, 7), (3, 1, 3), dict(mode="adjacent")),
            ("part", (5, 9), (5, 6), dict(mode="adjacent", table="channel"))]:
        x, cosine, sine = f32(rng, *shape), f32(rng, *tables), f32(rng, *tables)
        c = Case("rotate_" + name)
        c.input("x", x), c.input("c", cosine), c.input("s", sine)
        text = ", ".join("%s=%s" % item for item in options.items())
        c.line("%%y = rotate %%x, %%c, %%s {%s}" % text if text else "%y = rotate %x, %c, %s")
        c.want("y", rotate(x, cosine, sine, **options), **F32)
        yield c
    for name, types, options, status, why in [
            ("odd", ["f32[3,8]", "f32[3,5]", "f32[3,5]"], "table=channel", "SHAPE_MISMATCH", "turn no pairs of 8 channels"),
            ("wide", ["f32[3,8]", "f32[3,5]", "f32[3,5]"], "table=pair", "SHAPE_MISMATCH", "turn no pairs of 8 channels"),
            ("rows", ["f32[3,8]", "f32[2,4]", "f32[2,4]"], "mode=half", "SHAPE_MISMATCH", "the extents of x and a table"),
            ("apart", ["f32[3,8]", "f32[3,4]", "f32[3,3]"], "mode=half", "SHAPE_MISMATCH", "4 and 3 numbers"),
            ("rank", ["f32[3,8]", "f32[1,3,4]", "f32[1,3,4]"], "mode=half", "SHAPE_MISMATCH", "rotate(x f32[3,8]"),
            ("type", ["f32[3,8]", "f16[3,4]", "f16[3,4]"], "mode=half", "TYPE_MISMATCH", "rotate(x f32[3,8]")]:
        c = Case("refuses_rotate_" + name)
        for letter, kind in zip("xcs", types):
            c.line('%%%s = input {name="%s"} : %s' % (letter, letter, kind))
        c.line("%%y = rotate %%x, %%c, %%s {%s}" % options)
        c.fail(status, why)
        yield c


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
    yield from rotate_cases()
