"""Indexing, convolution and pooling: what the ONNX reference evaluator says, whose corner cases ours are."""
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from oracle.structured_case import F32, Case, f32

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
