"""Attention over states and tensors, and the writes of states: numpy in float64."""
import numpy as np

from oracle.structured_case import F32, NAMES, Case, f32, numbers

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


# ---- ragged rows


def ragged_cases():
    rng = np.random.default_rng(9)
    offsets = np.array([0, 3, 3, 9, 10], np.int32)
    for name, heads, kv_heads, options, text in [
            ("plain", 2, 2, {}, ""), ("grouped", 6, 2, {}, "causal=true"), ("window", 2, 1, dict(window=3, cap=2.5), "window=3, soft_cap=2.5"),
            ("causal_window", 3, 1, dict(window=2, scale=0.5), "causal=true, window=2, scale=0.5")]:
        q, k, v = f32(rng, 10, heads, 8), f32(rng, 10, kv_heads, 8), f32(rng, 10, kv_heads, 5)
        want = np.zeros((10, heads, 5))
        for first, end in zip(offsets, offsets[1:]):
            n = end - first
            distance = np.arange(n)[:, None] - np.arange(n)
            seen = distance >= 0 if "causal" in text else np.ones((n, n), bool)
            if options.get("window"):
                seen = seen & (np.abs(distance) < options["window"])
            q4, k4, v4 = (np.swapaxes(a[first:end], 0, 1)[None] for a in (q, k, v))
            y = attention(q4, k4, v4, seen, 0.0, options.get("scale"), options.get("cap"))
            want[first:end] = np.swapaxes(y[0], 0, 1)
        c = Case("attention_ragged_" + name)
        c.symbol("rows", 10)
        c.symbol("n1", 5)
        for letter, array in zip("qkv", (q, k, v)):
            c.input(letter, array, ["rows", *array.shape[1:]])
        c.input("o", offsets, ["n1"])
        c.line("%%y = attention_ragged %%q, %%k, %%v, %%o%s" % (" {%s}" % text if text else ""))
        c.want("y", want, **F32)
        yield c
    x = f32(rng, 10, 6)
    for mode, pool in [("mean", lambda a: a.astype(np.float64).mean(0)), ("first", lambda a: a[0]), ("last", lambda a: a[-1]), ("max", lambda a: a.max(0))]:
        c = Case("pool_ragged_" + mode)
        c.input("x", x), c.input("o", offsets)
        c.line("%%y = pool_ragged %%x, %%o {mode=%s}" % mode)
        c.want("y", np.array([pool(x[a:b]) if a < b else np.zeros(6) for a, b in zip(offsets, offsets[1:])]), **F32)
        yield c
    c = Case("positions_without_past")
    c.symbol("rows", 10)
    c.input("o", offsets)
    c.line("%y = positions %o {rows=rows}")
    c.want("y", np.concatenate([np.arange(b - a) for a, b in zip(offsets, offsets[1:])]).astype(np.int32))
    yield c
    for name, bad, why in [("end", [0, 3, 9], "offsets end at 9"), ("falls", [0, 5, 3, 10], "offsets[2] is 3"), ("begins", [1, 10], "offsets[0] is 1")]:
        for op in ("%y = pool_ragged %x, %o", "%y = attention_ragged %q, %q, %q, %o"):
            c = Case("refuses_%s_%s" % (name, op.split()[2]))
            c.input("x", x), c.input("q", f32(rng, 10, 1, 4)), c.input("o", np.array(bad, np.int32))
            c.line(op)
            c.fail("OUT_OF_RANGE", why, output="y")
            yield c
