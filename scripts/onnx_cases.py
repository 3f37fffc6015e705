#!/usr/bin/env python3
"""Run the operator cases of the pinned onnx package and print what passes, by domain and op.

    onnx_cases.py                       all cases; compares the failures with tests/onnx/failing.txt
    onnx_cases.py -k test_reshape -v    those whose name contains a text, with each failure's message
    onnx_cases.py --write               writes the list of failures again

The cases are made once by the package's own generator and kept in ${RUNG_CACHE:-${XDG_CACHE_HOME:-~/.cache}/rung}/onnx,
one model and one file of tensors each. A small program built from tests/onnx/onnx_cases.c reads many of them in
one process; where it dies, that case is said to have crashed and the next process goes on behind it. What is out of scope
(training, strings, sequences, optionals) is counted apart, as are the cases named `_expanded`, in which the package has
replaced an operator by its own definition. Exit: 0 the failures are those of the list, 1 they are not, 2 usage.
"""
import argparse
import collections
import json
import os
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import venv
from models import cache_root, locked, say

ROOT = Path(__file__).resolve().parent.parent
FAILING = ROOT / "tests/onnx/failing.txt"
KINDS = ["node", "simple", "pytorch-converted", "pytorch-operator", "light"]
FORMAT = "5"  # of what make() writes


# ---- making the cases (inside the environment, which has onnx and numpy)

TYPES = {1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64", 12: "u32",
         13: "u64", 16: "bf16", 17: "f8e4m3", 18: "f8e4m3fnuz", 19: "f8e5m2", 20: "f8e5m2fnuz", 21: "u4", 22: "i4",
         23: "f4e2m1", 24: "f8e8m0", 25: "u2", 26: "i2"}


def pack(array, bits):
    """Elements of 4 or 2 bits, low bits first, as Rung and ONNX store them."""
    import numpy as np
    per = 8 // bits
    raw = np.ascontiguousarray(array).view(np.uint8).reshape(-1) & ((1 << bits) - 1)
    raw = np.concatenate([raw, np.zeros(-len(raw) % per, np.uint8)]).reshape(-1, per)
    return sum(raw[:, i] << (bits * i) for i in range(per)).astype(np.uint8).tobytes()


def record(name, is_output, value):
    """One tensor of a case; None if it is not a plain tensor."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
    if isinstance(value, TensorProto):
        if value.data_type not in TYPES:
            return None
        array, kind = numpy_helper.to_array(value), value.data_type
    elif isinstance(value, (list, dict)) or value is None:
        return None
    else:
        array = np.asarray(value)
        try:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        except (KeyError, ValueError):
            return None
        if kind not in TYPES:
            return None
    text = TYPES[kind]
    data = pack(array, int(text[-1])) if text in ("i4", "u4", "i2", "u2") else \
        pack(array, 4) if text == "f4e2m1" else np.ascontiguousarray(array).tobytes()
    label, type_name = name.encode(), text.encode()
    head = struct.pack("<BHB", is_output, len(label), len(type_name)) + label + type_name
    shape = struct.pack("<B%dq" % array.ndim, array.ndim, *array.shape)
    return head + shape + struct.pack("<Q", len(data)) + data


OUT_OF_SCOPE = ("Sequence", "Optional", "SplitToSequence", "ConcatFromSequence")


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == 5:
                yield from nodes_of(attribute.g)


def scope_of(model):
    """Why a case is out of scope, or ''."""
    domains = {node.domain for node in nodes_of(model.graph)}
    if domains & {"ai.onnx.preview.training", "ai.onnx.training"}:
        return "training"
    for node in nodes_of(model.graph):
        if node.op_type.startswith(OUT_OF_SCOPE):
            return "strings, sequences or optionals"
    for value in list(model.graph.input) + list(model.graph.output):
        if value.type.WhichOneof("value") != "tensor_type" or value.type.tensor_type.elem_type == 8:
            return "strings, sequences or optionals"
    return ""


def data_sets_of(case):
    """A case of the package's files, which keep their tensors as protobuf beside the model."""
    import numpy as np
    import onnx
    if case.model is not None:
        return case.model, case.data_sets
    if case.url:  # a network without its weights, for numbers that the package's runner makes up, and what comes out
        path = Path(onnx.__file__).parent.parent / case.url
        model = onnx.load(str(path))
        known = {t.name for t in model.graph.initializer}
        shapes = [[d.dim_value or 1 for d in v.type.tensor_type.shape.dim] for v in model.graph.input if v.name not in known]
        inputs = [(np.arange(np.prod(s)).reshape(s) / np.prod(s)).astype(np.float32) for s in shapes]
        outputs = []
        for i in range(len(model.graph.output)):
            tensor = onnx.TensorProto()
            tensor.ParseFromString(path.with_name("%s_output_%d.pb" % (path.stem, i)).read_bytes())
            outputs.append(tensor)
        return model, [(inputs, outputs)]
    folder = Path(case.model_dir)
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    sets = []
    for place in sorted(folder.glob("test_data_set_*")):
        def read(kind, count):
            out = []
            for i in range(count):
                path = place / ("%s_%d.pb" % (kind, i))
                tensor = onnx.TensorProto()
                if path.exists():
                    tensor.ParseFromString(path.read_bytes())
                    out.append(tensor)
            return out
        sets.append((read("input", len(model.graph.input)), read("output", len(model.graph.output))))
    return model, sets


def make(folder):
    import onnx
    from onnx.backend.test.loader import load_model_tests
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for kind in KINDS:
        say("making the cases of kind %s" % kind)
        for case in sorted(load_model_tests(kind="real" if kind == "light" else kind), key=lambda c: c.name):
            model, sets = data_sets_of(case)
            row = {"kind": kind, "name": case.name, "rtol": case.rtol, "atol": case.atol, "scope": scope_of(model),
                   "ops": sorted({(n.domain or "ai.onnx") + ":" + n.op_type for n in nodes_of(model.graph)})}
            row["op"] = "%s:%s" % (model.graph.node[0].domain or "ai.onnx", model.graph.node[0].op_type) if model.graph.node else "none"
            base = folder / kind / case.name
            base.parent.mkdir(exist_ok=True)
            base.with_suffix(".onnx").write_bytes(model.SerializeToString())
            parts = []
            for inputs, outputs in sets[:1] if not row["scope"] else []:
                known = {t.name for t in model.graph.initializer} if kind == "light" else ()
                given = [v.name for v in model.graph.input if v.name not in known]
                parts += [record(given[i], 0, v) for i, v in enumerate(inputs)]
                parts += [record(model.graph.output[i].name, 1, v) for i, v in enumerate(outputs)]
            if any(part is None for part in parts) and not row["scope"]:
                row["scope"] = "strings, sequences or optionals"
            base.with_suffix(".data").write_bytes(b"".join(part for part in parts if part is not None))
            rows.append(row)
    (folder / "cases.json").write_text(json.dumps({"format": FORMAT, "onnx": onnx.__version__, "cases": rows}))


def cases(python):
    version = subprocess.run([str(python), "-c", "import onnx; print(onnx.__version__)"], capture_output=True, text=True,
                             check=True).stdout.strip()
    folder = cache_root() / "onnx" / ("cases-%s-%s" % (version, FORMAT))
    with locked(folder.with_name(".cases.lock")):
        try:
            known = json.loads((folder / "cases.json").read_text())
            if known["format"] == FORMAT:
                return folder, known["cases"]
        except (OSError, ValueError, KeyError):
            pass
        subprocess.run([str(python), __file__, "--make", str(folder)], check=True)
    return folder, json.loads((folder / "cases.json").read_text())["cases"]


# Why cases fail, by the beginning of their names; what is not here speaks for itself.
REASONS = [("test_attention_", "numpy rounds to the narrow type after every step; here sums are kept wide"),
           ("test_bernoulli", "random numbers of another generator"), ("test_training_dropout", "random numbers of another generator"),
           ("test_dft_inverse", "noise of the package's own transform, above its tolerance"),
           ("test_tree_ensemble", "trees are not there"), ("test_ai_onnx_ml_tree", "trees are not there"),
           ("test_loop11", "rows of different extents are stacked"), ("test_scan_sum", "version 8 has a batch axis of its own"),
           ("test_affine_grid", "branches of different ranks"), ("test_image_decoder", "pictures are not decoded"),
           ("test_tfidf", "n-grams are not there")]


def reason(name):
    return next((why for start, why in REASONS if name.split("/")[-1].startswith(start)), "")


# ---- running them

def run(program, folder, rows, device):
    """{name: (state, message)} with state pass, fail, refused, crash."""
    results = {}
    left = list(rows)
    while left:
        text = "".join("%s\t%s\t%r\t%r\n" % (row["kind"] + "/" + row["name"], folder / row["kind"] / row["name"],
                                              row["rtol"], row["atol"]) for row in left)
        done = subprocess.run([str(program), device], input=text, capture_output=True, text=True, errors="replace")
        seen = 0
        for line in done.stdout.splitlines():
            part = line.split("\t", 2)
            if len(part) == 3 and seen < len(left) and part[0] == left[seen]["kind"] + "/" + left[seen]["name"]:
                results[part[0]] = (part[1], part[2])
                seen += 1
        if seen < len(left):
            results[left[seen]["kind"] + "/" + left[seen]["name"]] = \
                ("crash", "ended with %d: %s" % (done.returncode, done.stderr.strip()[-300:].replace("\n", " ")))
            seen += 1
        left = left[seen:]
    return results


def table(title, rows, results):
    count = collections.defaultdict(lambda: [0, 0])
    for row in rows:
        entry = count[row["op"] if row["kind"] == "node" else row["name"]]
        entry[1] += 1
        entry[0] += results[row["kind"] + "/" + row["name"]][0] == "pass"
    passed = sum(entry[0] for entry in count.values())
    print("%s: %d of %d" % (title, passed, len(rows)))
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", metavar="TEXT", default="", help="only cases whose name contains it")
    parser.add_argument("-v", action="store_true", help="show the message of every failure")
    parser.add_argument("--ops", action="store_true", help="show every op, not only those with failures")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/tests/onnx/onnx_cases")
    parser.add_argument("--write", action="store_true", help="write the list of failures")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make(options.make)
        return 0
    folder, rows = cases(venv.make([Path(venv.__file__).parent / "requirements.txt"]))
    chosen = [row for row in rows if options.k in row["name"]]
    inside = [row for row in chosen if not row["scope"]]
    results = run(options.program, folder, inside, options.device)
    expanded = [row for row in inside if "_expanded" in row["name"]]
    plain = [row for row in inside if "_expanded" not in row["name"] and row["kind"] == "node"]
    shipped = [("models: " + kind, [row for row in inside if row["kind"] == kind]) for kind in KINDS[1:]]
    for title, part in [("node cases", plain), ("node cases, _expanded", expanded), *shipped]:
        if part:
            count = table(title, part, results)
            for op, (good, total) in sorted(count.items()):
                if options.ops or good < total:
                    print("    %-44s %4d / %d" % (op, good, total))
    states = collections.Counter(state for state, _ in results.values())
    skipped = collections.Counter(row["scope"] for row in chosen if row["scope"])
    print("all: %d of %d passed, %d wrong, %d refused, %d crashed, %d with inputs given at opening; out of scope: %s" % (
        states["pass"], len(inside), states["fail"], states["refused"], states["crash"],
        sum(state == "pass" and "pinned" in text for state, text in results.values()),
        ", ".join("%d %s" % (n, why) for why, n in skipped.items()) or "none"))
    failing = {name: state + ": " + text for name, (state, text) in results.items() if state != "pass"}
    if options.v:
        for name, text in sorted(failing.items()):
            print("%s\t%s" % (name, text))
    if options.write:
        FAILING.write_text("# Cases of the onnx package that do not pass, each with what Rung says; written by "
                           "scripts/onnx_cases.py --write.\n" +
                           "".join("%s\t%s\t%s\n" % (name, text, reason(name)) for name, text in sorted(failing.items())))
        return 0
    try:
        known = {line.split("\t")[0] for line in FAILING.read_text().splitlines() if line and line[0] != "#"}
    except OSError:
        known = set()
    fresh = sorted(name for name in failing if name not in known)
    gone = sorted(name for name in known if name in results and name not in failing)
    for name in fresh:
        print("fails and is not in the list: %s: %s" % (name, failing[name]))
    for name in gone:
        print("passes and is in the list: %s" % name)
    return 1 if fresh or gone else 0


if __name__ == "__main__":
    sys.exit(main())
