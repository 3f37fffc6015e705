"""Control flow, sizes found at run time, random numbers."""
import numpy as np

from oracle.structured_case import F32, Case, f32

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
    c.line("symbol held <= 64 made\nsymbol times <= 9 made")
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
