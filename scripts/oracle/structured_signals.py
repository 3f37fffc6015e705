"""Resizing, sampling, recurrence, detection, transforms, integers with scales: what the ONNX reference evaluator says,
and for recurrent ops plain numpy in float64, since the evaluator knows neither lengths nor other activations."""
import numpy as np

from oracle.structured_case import F32, Case, f32
from oracle.structured_tensors import onnx_op

NEAR = dict(relative=2e-6, absolute=1e-7)


def listed(**lists):
    def shown(v):
        return '"%s"' % v if isinstance(v, str) and " " in v else str(v).replace(" ", "").lower()
    return ", ".join("%s=%s" % (k, shown(v)) for k, v in lists.items())


def case(name, op, inputs, wants, options=None, symbols=(), shapes=None, **tolerance):
    c = Case(name)
    for s in symbols:
        c.symbol(*s)
    for k, (n, array) in enumerate(inputs.items()):
        c.input(n, array, None if shapes is None else shapes[k])
    results = ", ".join("%" + n for n in wants)
    c.line("%s = %s %s%s" % (results, op, ", ".join("%" + n for n in inputs), " {%s}" % listed(**options) if options else ""))
    for n, want in wants.items():
        c.want(n, want, **(tolerance if np.asarray(want).dtype.kind == "f" else {}))
    return c


# ---- resize

def resize_cases():
    rng = np.random.default_rng(21)
    x = f32(rng, 1, 1, 4, 5)
    modes = [("nearest", m) for m in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")] + [("linear", None), ("cubic", None)]
    for coordinates in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"):
        for mode, rounding in modes:
            for label, scales in (("up", [1, 1, 2, 1.7]), ("down", [1, 1, 0.6, 0.55])):
                out = [int(np.floor(e * s)) for e, s in zip(x.shape, scales)]
                wide = dict(mode=mode, coordinate_transformation_mode=coordinates)
                options = dict(output=out, mode=mode, coordinates=coordinates)
                if rounding:
                    wide["nearest_mode"] = options["round"] = rounding
                scale = np.array(scales, np.float32)
                want = onnx_op("Resize", [x.astype(np.float64), np.array([], np.float32), scale], **wide)
                yield case("%s_%s_%s_%s" % (mode, rounding or "", coordinates, label), "resize", dict(x=x, s=scale), dict(y=want), options, **NEAR)
    for mode in ("linear", "cubic"):
        for extra in (dict(antialias=1), dict(exclude_outside=1), dict(antialias=1, exclude_outside=1)):
            if mode == "linear" and "antialias" not in extra:
                continue
            sizes = np.array([1, 1, 2, 3], np.int64)
            want = onnx_op("Resize", [x.astype(np.float64), np.array([], np.float32), np.array([], np.float32), sizes], mode=mode, **extra)
            yield case("sizes_%s_%s" % (mode, "_".join(extra)), "resize", dict(x=x), dict(y=want), dict(output=[1, 1, 2, 3], mode=mode, **{k: "true" for k in extra}), **NEAR)
    roi = np.array([0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7], np.float32)
    sizes = np.array([1, 1, 3, 3], np.int64)
    scale = np.array([1, 1, 3 / 4, 3 / 5], np.float32)
    want = onnx_op("Resize", [x.astype(np.float64), roi, np.array([], np.float32), sizes], mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=10.0)
    yield case("crop", "resize", dict(x=x, s=scale, r=roi), dict(y=want), dict(output=[1, 1, 3, 3], mode="linear", coordinates="tf_crop_and_resize", extrapolation=10), relative=2e-5, absolute=1e-6)
    want = onnx_op("Resize", [x.astype(np.float64), np.array([], np.float32), np.array([1, 1, 2, 2], np.float32)], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    c = Case("open")
    c.symbol("h", 4), c.symbol("w", 5), c.input("x", x, (1, 1, "h", "w"))
    c.line("%y = resize %x {output=[1,1,2*h,2*w], coordinates=asymmetric, round=floor}")
    c.want("y", want, **F32)
    yield c


# ---- recurrence

FUNCTIONS = dict(sigmoid=lambda v, a, b: 1 / (1 + np.exp(-v)), tanh=lambda v, a, b: np.tanh(v), relu=lambda v, a, b: np.maximum(v, 0), affine=lambda v, a, b: a * v + b,
                 leaky_relu=lambda v, a, b: np.where(v < 0, a * v, v), thresholded_relu=lambda v, a, b: np.where(v >= a, v, 0), scaled_tanh=lambda v, a, b: a * np.tanh(b * v),
                 hard_sigmoid=lambda v, a, b: np.clip(a * v + b, 0, 1), elu=lambda v, a, b: np.where(v < 0, a * (np.exp(v) - 1), v),
                 softsign=lambda v, a, b: v / (1 + np.abs(v)), softplus=lambda v, a, b: np.log1p(np.exp(v)))


def functions(text):
    def one(word):
        name, *numbers = word.split(":")
        a, b = ([float(n) for n in numbers] + [0, 0])[:2]
        return lambda v: FUNCTIONS[name](v, a, b)
    return [one(word) for word in text.split()]


def recurrent(kind, x, r, direction, text, clip=0, lengths=None, h0=None, c0=None, p=None, bias=None, linear=False, input_forget=False):
    seq, batch, directions, _ = x.shape
    hidden = r.shape[2]
    y = np.zeros((seq, directions, batch, hidden))
    h_last, c_last = np.zeros((directions, batch, hidden)), np.zeros((directions, batch, hidden))
    held = (lambda v: np.clip(v, -clip, clip)) if clip else (lambda v: v)
    for d in range(directions):
        f = functions(text)
        for b in range(batch):
            n = seq if lengths is None else lengths[b]
            h = np.zeros(hidden) if h0 is None else h0[d, b].astype(np.float64)
            c = np.zeros(hidden) if c0 is None else c0[d, b].astype(np.float64)
            order = range(n) if direction == "forward" or (direction == "bidirectional" and d == 0) else reversed(range(n))
            for t in order:
                v, w = x[t, b, d].astype(np.float64), r[d].astype(np.float64)
                if kind == "rnn":
                    h = f[0](held(v + w @ h))
                elif kind == "gru":
                    vz, vr, vh = np.split(v, 3)
                    wz, wr, wh = np.split(w, 3)
                    rb = np.zeros(hidden) if bias is None else bias[d].astype(np.float64)
                    z, reset = f[0](held(vz + wz @ h)), f[0](held(vr + wr @ h))
                    new = f[1](held(vh + (reset * (wh @ h + rb) if linear else wh @ (reset * h) + rb)))
                    h = (1 - z) * new + z * h
                else:
                    vi, vo, vf, vc = np.split(v + w @ h, 4)
                    pi, po, pf = np.split(np.zeros(3 * hidden) if p is None else p[d].astype(np.float64), 3)
                    i = f[0](held(vi + pi * c))
                    forget = 1 - i if input_forget else f[0](held(vf + pf * c))
                    c = forget * c + i * f[1](held(vc))
                    h = f[0](held(vo + po * c)) * f[2](c)
                y[t, d, b] = h
            h_last[d, b], c_last[d, b] = h, c
    return (y, h_last, c_last) if kind == "lstm" else (y, h_last)


def recurrent_cases():
    rng = np.random.default_rng(22)
    gates = dict(lstm=4, gru=3, rnn=1)
    usual = dict(lstm="sigmoid tanh tanh", gru="sigmoid tanh", rnn="tanh")
    other = dict(lstm="hard_sigmoid:0.3:0.4 softsign elu:0.7", gru="affine:0.5:0.1 leaky_relu:0.2", rnn="scaled_tanh:0.5:2")
    for kind, g in gates.items():
        for name, direction, hidden, options in [
                ("plain", "forward", 3, {}),
                ("reverse", "reverse", 5, dict(clip=0.4)),
                ("both", "bidirectional", 4, dict(lengths=True, initial=True, extra=True)),
                ("functions", "forward", 17, dict(other=True, initial=True)),
                ("second", "forward", 4, dict(second=True))]:
            directions = 2 if direction == "bidirectional" else 1
            x, r = f32(rng, 4, 3, directions, g * hidden), f32(rng, directions, g * hidden, hidden) / hidden
            inputs, call, shown = dict(x=x, r=r), dict(clip=options.get("clip", 0)), dict(direction=direction)
            text = other[kind] if options.get("other") else usual[kind]
            if options.get("other"):
                shown["activations"] = text if " " in text else '"%s"' % text
            if call["clip"]:
                shown["clip"] = call["clip"]
            if options.get("extra") and kind == "gru":
                inputs["b"] = call["bias"] = f32(rng, directions, hidden)
                shown.update(bias="true", linear="true")
                call["linear"] = True
            if options.get("second") and kind == "gru":
                inputs["b"] = call["bias"] = f32(rng, directions, hidden)
                shown["bias"] = "true"
            if options.get("lengths"):
                inputs["l"] = call["lengths"] = np.array([4, 0, 2], np.int32)
                shown["lengths"] = "true"
            if options.get("initial"):
                inputs["h0"] = call["h0"] = f32(rng, directions, 3, hidden)
                shown["initial"] = "true"
                if kind == "lstm":
                    inputs["c0"] = call["c0"] = f32(rng, directions, 3, hidden)
            if options.get("extra") and kind == "lstm":
                inputs["p"] = call["p"] = f32(rng, directions, 3 * hidden)
                shown["peepholes"] = "true"
            if options.get("second") and kind == "lstm":
                shown["input_forget"] = "true"
                call["input_forget"] = True
            results = recurrent(kind, x, r, direction, text, **call)
            yield case("%s_%s" % (kind, name), kind, inputs, dict(zip(("y", "h", "c"), results)), shown, relative=4e-6, absolute=1e-6)
    # Against the evaluator: the products of the inputs are made here.
    for kind, operator in (("lstm", "LSTM"), ("gru", "GRU"), ("rnn", "RNN")):
        g, hidden, width = gates[kind], 5, 3
        x, w, r, b = f32(rng, 4, 2, width), f32(rng, 1, g * hidden, width), f32(rng, 1, g * hidden, hidden), f32(rng, 1, 2 * g * hidden)
        y = onnx_op(operator, [v.astype(np.float64) for v in (x, w, r, b)], hidden_size=hidden)
        whole = x.astype(np.float64) @ w[0].astype(np.float64).T + b[0, :g * hidden] + b[0, g * hidden:]
        inputs = dict(x=whole.astype(np.float32)[:, :, None], r=r)
        results = dict(y=y) | {n: recurrent(kind, inputs["x"], r, "forward", usual[kind])[i] for i, n in enumerate(("y", "h", "c")) if n != "y" and (n != "c" or kind == "lstm")}
        yield case("%s_evaluator" % kind, kind, inputs, results, relative=4e-6, absolute=2e-6)
    c = Case("refuses_length")
    c.input("x", f32(rng, 2, 1, 1, 3)), c.input("r", f32(rng, 1, 3, 3)), c.input("l", np.array([3], np.int32))
    c.line("%y, %h = rnn %x, %r, %l {lengths=true}")
    c.fail("OUT_OF_RANGE", "rnn: sequence 0 has length 3 of 2 steps", output="y")
    yield c
    c = Case("refuses_function")
    c.line('%x = input {name="x"} : f32[2,1,1,3]\n%r = input {name="r"} : f32[1,3,3]\n%y, %h = rnn %x, %r {activations="cosine"}')
    c.fail("INVALID_ARGUMENT", 'activations "cosine" are not what it takes')
    yield c


# ---- detection and sampling

def filled(rows, array):
    out = np.zeros((rows,) + array.shape[1:], array.dtype)
    out[:len(array)] = array
    return out


def detection_cases():
    rng = np.random.default_rng(23)
    for name, centre, limit, overlap, least in (("corners", 0, 3, 0.3, None), ("centre", 1, 2, 0.5, 0.2), ("all", 0, 100, 0.1, -10.0)):
        boxes, scores = rng.uniform(0.2, 3, (2, 7, 4)).astype(np.float32), rng.uniform(-1, 1, (2, 3, 7)).astype(np.float32)
        scores[0, 0, 3] = scores[0, 0, 5]
        inputs = dict(b=boxes, s=scores, l=np.array(limit, np.int64), o=np.array(overlap, np.float32))
        call = [boxes, scores, np.array([limit], np.int64), np.array([overlap], np.float32)]
        if least is not None:
            inputs["t"] = np.array(least, np.float32)
            call.append(np.array([least], np.float32))
        want = onnx_op("NonMaxSuppression", call, center_point_box=centre)
        yield case("nms_" + name, "non_max_suppression", inputs, dict(y=filled(42, want), n=np.array(len(want), np.int64)), dict(centre="true") if centre else None)
    x, rois, batch = f32(rng, 2, 2, 6, 8), rng.uniform(0, 7, (4, 4)).astype(np.float32), np.array([0, 1, 1, 0], np.int64)
    rois.sort(axis=1)
    rois = rois[:, [0, 1, 2, 3]]
    for name, text, call in (("mean", dict(height=3, width=2, sampling=2), dict(output_height=3, output_width=2, sampling_ratio=2)),
                             ("largest", dict(height=2, width=2, largest="true"), dict(output_height=2, output_width=2, mode="max")),
                             ("scaled", dict(height=2, width=3, scale=0.5, half_pixel="false"), dict(output_height=2, output_width=3, spatial_scale=0.5, coordinate_transformation_mode="output_half_pixel"))):
        want = onnx_op("RoiAlign", [x.astype(np.float64), rois.astype(np.float64), batch], **call)
        yield case("roi_" + name, "roi_align", dict(x=x, r=rois, b=batch), dict(y=want), text, relative=2e-5, absolute=1e-6)
    regions = np.array([[0, 0, 0, 7, 5], [1, 2, 1, 5, 4], [1, 6, 5, 30, 20]], np.float32)
    want = np.zeros((3, 2, 2, 3))
    for n, (b, x0, y0, x1, y1) in enumerate(regions.astype(int)):
        height, width = max(y1 - y0 + 1, 1) / 2, max(x1 - x0 + 1, 1) / 3
        for i in range(2):
            for j in range(3):
                part = x[b, :, max(int(np.floor(i * height)) + y0, 0):int(np.ceil((i + 1) * height)) + y0, max(int(np.floor(j * width)) + x0, 0):int(np.ceil((j + 1) * width)) + x0]
                want[n, :, i, j] = part.max(axis=(1, 2)) if part.size else 0
    yield case("roi_pool", "max_roi_pool", dict(x=x, r=regions), dict(y=want), dict(height=2, width=3), **F32)
    for shape, places in (((2, 2, 4, 5), (3, 6)), ((1, 2, 3, 4, 5), (2, 2, 4))):
        x, grid = f32(rng, *shape), rng.uniform(-1.4, 1.4, (shape[0],) + places + (len(places),)).astype(np.float32)
        for mode in ("linear", "nearest", "cubic"):
            for padding in ("zeros", "border", "reflection"):
                for corners in (0, 1):
                    if len(places) == 3 and (mode == "cubic" or corners):
                        continue
                    want = onnx_op("GridSample", [x.astype(np.float64), grid.astype(np.float64)], mode=mode, padding_mode=padding, align_corners=corners)
                    yield case("sample%d_%s_%s_%d" % (len(places), mode, padding, corners), "grid_sample", dict(x=x, g=grid), dict(y=want), dict(mode=mode, padding=padding, align_corners=str(bool(corners)).lower()), relative=2e-5, absolute=1e-6)
    x, w, offset, b, mask = f32(rng, 1, 4, 4, 5), f32(rng, 2, 2, 2, 2), f32(rng, 1, 16, 3, 4), f32(rng, 2), f32(rng, 1, 8, 3, 4)
    want = onnx_op("DeformConv", [v.astype(np.float64) for v in (x, w, offset, b, mask)], group=2, offset_group=2, kernel_shape=[2, 2])
    yield case("deform", "deform_conv", dict(x=x, w=w, o=offset, b=b, m=mask), dict(y=want), dict(bias="true", groups=2, offset_groups=2), relative=2e-5, absolute=2e-6)
    for name, shape, image, kernel, text, call in (
            ("plain", (1, 5, 5), [5, 5], [1, 5], {}, {}), ("strides", (2, 18, 4), [5, 5], [3, 3], dict(stride=[2, 2]), dict(strides=[2, 2])),
            ("pads", (1, 15, 12), [5, 5], [1, 5], dict(pad_before=[0, 1], pad_after=[1, 2]), dict(pads=[0, 1, 1, 2])),
            ("dilations", (1, 4, 5), [6, 6], [2, 2], dict(dilation=[1, 5]), dict(dilations=[1, 5])), ("volume", (1, 8, 8), [3, 3, 3], [2, 2, 2], {}, {})):
        if name == "pads":
            shape = (1, 10, 24)
        x = f32(rng, *shape)
        want = onnx_op("Col2Im", [x.astype(np.float64), np.array(image, np.int64), np.array(kernel, np.int64)], **call)
        yield case("col2im_" + name, "col2im", dict(x=x), dict(y=want), dict(output=image, kernel=kernel, **text), **F32)


# ---- transforms

def transform_cases():
    rng = np.random.default_rng(24)
    for name, shape, axis, length, inverse, onesided in (("real", (2, 8, 1), 1, None, 0, 0), ("complex", (2, 7, 2), 1, None, 0, 0), ("inverse", (2, 7, 2), 1, None, 1, 0),
                                                         ("onesided", (2, 9, 3, 1), 1, None, 0, 1), ("back", (2, 5, 2), 1, None, 1, 1), ("back_odd", (2, 5, 2), 1, 9, 1, 1),
                                                         ("longer", (3, 5, 2), 0, 8, 0, 0), ("shorter", (2, 12, 1), -2, 5, 0, 1)):
        x = f32(rng, *shape)
        z = x[..., 0].astype(np.float64) + (1j * x[..., 1] if shape[-1] == 2 else 0)
        a = axis if axis >= 0 else axis + 1
        if inverse and onesided:
            want = np.fft.irfft(z, length, axis=a)[..., None]
        else:
            y = np.fft.ifft(z, length, axis=a) if inverse else np.fft.fft(z, length, axis=a)
            if onesided:
                y = y.take(range(y.shape[a] // 2 + 1), axis=a)
            want = np.stack([y.real, y.imag], -1)
        text = dict(axis=axis)
        text.update({} if length is None else dict(length=length), **(dict(inverse="true") if inverse else {}), **(dict(onesided="true") if onesided else {}))
        yield case("dft_" + name, "dft", dict(x=x), dict(y=want), text, relative=2e-6, absolute=1e-6)
    for bins, length, rate, low, high in ((8, 16, 8192, 0.0, 4096.0), (10, 64, 16000, 80.0, 7600.0)):
        scalars = [np.array(v) for v in (bins, length, rate)] + [np.array(v, np.float32) for v in (low, high)]
        c = Case("mel_%d" % bins)
        c.line("%%y = mel_weights {%s}" % listed(bins=bins, length=length, rate=rate, low=low, high=high))
        c.want("y", onnx_op("MelWeightMatrix", scalars), **F32)
        yield c
    for name, x, axis, is_sorted in (("numbers", rng.integers(0, 5, 12).astype(np.int64), 0, 1), ("as_they_come", rng.integers(0, 5, 12).astype(np.int64), 0, 0),
                                     ("columns", rng.integers(0, 2, (2, 6)).astype(np.int64), 1, 1), ("floats", np.round(f32(rng, 9)), 0, 1)):
        y, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
        inverse = inverse.reshape(-1)
        if not is_sorted:
            order = np.argsort(first)
            first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
            y = x[first]
        n = x.shape[axis]
        wants = dict(y=np.moveaxis(filled(n, np.moveaxis(y, axis, 0)), 0, axis), f=filled(n, first), i=inverse, c=filled(n, counts), n=np.array(len(first), np.int64))
        yield case("unique_" + name, "unique", dict(x=x), wants, dict(axis=axis, sorted=str(bool(is_sorted)).lower()))
    x = f32(rng, 2, 4, 4)
    yield case("determinant", "determinant", dict(x=x), dict(y=np.linalg.det(x.astype(np.float64))), relative=1e-6, absolute=1e-7)
    x = f32(rng, 2, 2, 5, 6)
    padded = np.full((2, 2, 7, 7), -np.inf)
    padded[:, :, 1:6, :6] = x
    want = np.zeros((2, 2, 3, 3), np.int64)
    for n, c, i, j in np.ndindex(want.shape):
        at = padded[n, c, 2 * i:2 * i + 3, 2 * j:2 * j + 3]
        v, h = np.unravel_index(at.argmax(), at.shape)
        want[n, c, i, j] = ((n * 2 + c) * 5 + 2 * i + v - 1) * 6 + 2 * j + h
    yield case("argmax_pool", "argmax_pool", dict(x=x), dict(y=want), dict(kernel=[3, 3], stride=[2, 2], pad_before=[1, 0], pad_after=[1, 1]))


# ---- integers

def integer_cases():
    rng = np.random.default_rng(25)
    u8 = lambda *shape: rng.integers(0, 256, shape).astype(np.uint8)
    i8 = lambda *shape: rng.integers(-128, 128, shape).astype(np.int8)
    for name, a, b, za, zb in (("plain", u8(3, 11), i8(11, 5), None, None), ("zeros", u8(3, 37), u8(37, 19), np.array(131, np.uint8), u8(19)),
                               ("rows", i8(2, 4, 9), i8(9, 3), i8(4), np.array(-5, np.int8))):
        wide = a.astype(np.int64) - (0 if za is None else za.astype(np.int64)[..., None])
        want = (wide @ (b.astype(np.int64) - (0 if zb is None else zb.astype(np.int64)))).astype(np.int32)
        inputs = dict(a=a, b=b) | ({} if za is None else dict(za=za)) | ({} if zb is None else dict(zb=zb))
        yield case("matmul_" + name, "matmul_integer", inputs, dict(y=want))
    for name, x, w, zx, zw, groups in (("plain", u8(1, 2, 5, 6), i8(3, 2, 3, 3), None, None, 1), ("zeros", u8(2, 4, 5, 6), u8(6, 2, 3, 2), np.array(140, np.uint8), u8(6), 2),
                                       ("line", i8(1, 3, 20), i8(5, 3, 4), np.array(-7, np.int8), None, 1)):
        axes = x.ndim - 2
        wide_x = x.astype(np.float64) - (0 if zx is None else float(zx))
        wide_w = w.astype(np.float64) - (0 if zw is None else zw.astype(np.float64).reshape((-1,) + (1,) * (axes + 1)))
        want = onnx_op("Conv", [wide_x, wide_w], pads=[1] * (2 * axes), strides=[2] * axes, group=groups).astype(np.int32)
        inputs = dict(x=x, w=w) | ({} if zx is None else dict(zx=zx)) | ({} if zw is None else dict(zw=zw))
        yield case("conv_" + name, "conv_integer", inputs, dict(y=want), dict(stride=[2] * axes, pad_before=[1] * axes, pad_after=[1] * axes, groups=groups))
    x = f32(rng, 2, 3, 8)
    for name, scale, zero, axis, block, kind in (("single", np.array(0.013, np.float32), np.array(120, np.uint8), 1, 0, "u8"), ("axis", rng.uniform(0.01, 0.05, 3).astype(np.float32), i8(3), 1, 0, "i8"),
                                                 ("blocks", rng.uniform(0.01, 0.05, (2, 3, 2)).astype(np.float32), u8(2, 3, 2), 2, 4, "u8"), ("none", np.array(0.0001, np.float32), None, 1, 0, "i16")):
        call = [x, scale] + ([] if zero is None else [zero])
        shape = [-1 if scale.ndim == 1 and k == axis else 1 for k in range(3)]
        spread = (lambda p: np.repeat(p, block, axis)) if block else (lambda p: p.reshape(shape) if p.ndim == 1 else p)
        low, high = dict(u8=(0, 255), i8=(-128, 127), i16=(-32768, 32767))[kind]
        level = np.rint(x / spread(scale)) + (0 if zero is None else spread(zero).astype(np.float32))
        want = np.clip(level, low, high).astype(dict(u8=np.uint8, i8=np.int8, i16=np.int32)[kind])
        inputs = dict(x=x, s=scale) | ({} if zero is None else dict(z=zero))
        if kind != "i16":
            yield case("quantize_" + name, "quantize_linear", inputs, dict(y=want), dict(axis=axis, block=block, type=kind))
        back = (want.astype(np.float64) - (0 if zero is None else spread(zero).astype(np.float64))) * spread(scale).astype(np.float64)
        yield case("dequantize_" + name, "dequantize_linear", dict(inputs, x=want), dict(y=back), dict(axis=axis, block=block), relative=2e-7, absolute=1e-12)
    for name, x in (("mixed", f32(rng, 4, 9)), ("positive", np.abs(f32(rng, 11))), ("negative", -np.abs(f32(rng, 11)))):
        low, high = np.float32(min(0, x.min())), np.float32(max(0, x.max()))
        scale = np.float32((high - low) / np.float32(255))
        zero = np.rint(np.clip(np.float32(0) - low / scale, 0, 255))
        y = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8)
        assert (y == onnx_op("DynamicQuantizeLinear", [x])).all()
        yield case("dynamic_" + name, "dynamic_quantize", dict(x=x), dict(y=y, s=np.array(scale), z=np.array(zero, np.uint8)))
    yield case("dynamic_zeros", "dynamic_quantize", dict(x=np.zeros(5, np.float32)), dict(y=np.zeros(5, np.uint8), s=np.array(1, np.float32), z=np.array(0, np.uint8)))
