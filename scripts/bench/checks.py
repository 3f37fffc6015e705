# SPDX-License-Identifier: MIT
"""What must hold in the settings that are measured: engines compute the same, and rung's bits do not move."""
import json
import sys
from pathlib import Path

from bench import process, texts
from bench.served import Served

MOST_DIFFERENCE = {"f32": 2e-5, "bf16": 2e-2}  # of numbers of a vector of length one, or near one
MOST_KL, LEAST_SAME = 0.05, 0.8  # engines that quantise activations differently are closer than that
POSITIONS, QUICK_POSITIONS, FEW_POSITIONS = 256, 64, 64
SCRIPT = Path(__file__).with_name("agree.py")


def _numbers(path, width):
    import numpy as np
    if str(path).endswith(".npy") and open(path, "rb").read(6) == b"\x93NUMPY":
        return np.load(path).reshape(-1)
    found = np.fromfile(path, np.float32)
    return found.reshape(-1, width).reshape(-1) if width else found


def largest_difference(files, width):
    """Between rung's numbers and any peer's, from {engine name: file of f32}; None where there is no peer."""
    import numpy as np
    found = {name: _numbers(path, width) for name, path in files.items()}
    own = found.pop("rung")
    if any(other.shape != own.shape for other in found.values()):
        return float("inf")
    with np.errstate(invalid="ignore"):
        worst = [float(np.max(np.abs(other.astype(np.float64) - own))) if len(own) else 0.0 for other in found.values()]
    return max((one if one == one else float("inf") for one in worst), default=None)


MOST_RELATIVE = 1e-4


def largest_relative(folders):
    """Largest difference over largest value of every output of a graph, from {engine name: folder of .npy}; None without a peer."""
    import numpy as np
    own, worst = folders["rung"], None
    for name, folder in folders.items():
        for path in folder.glob("*.npy") if name != "rung" else ():
            mine, other = np.load(own / path.name).astype(np.float64), np.load(path).astype(np.float64)
            if mine.shape != other.shape:
                return float("inf")
            worst = max(worst or 0.0, float(np.abs(mine - other).max() / max(np.abs(other).max(), 1e-30)) if other.size else 0.0)
    return worst


def logits_agree(bench, model, isa, title):
    """Logits of one text by rung and by llama.cpp."""
    count = QUICK_POSITIONS if bench.quick else FEW_POSITIONS if isa else POSITIONS
    rung = bench.engine("rung", isa)
    found = json.loads(process.run([sys.executable, SCRIPT, model, "--rung", rung.program, "--ids", bench.ids_file(model, count),
                                    "--threads", bench.threads], env=rung.env))
    found.update(model=model, title=title, agrees=found["mean_kl"] <= MOST_KL and found["same_best"] >= LEAST_SAME)
    return found


def language_bits(bench, model, isa, title):
    """Logits over chunks, sequences side by side, and threads (bench/bits.c)."""
    found = bench.engine("rung", isa).bits(bench.model(model), bench.threads)
    return {"title": title, "what": "chunks of 1 to 512, 1 to 16 sequences, 1 and %d threads" % bench.threads, **found}


def encoder_bits(bench, workload, title):
    """Vectors of texts alone and together, in runs of several sizes, with one thread and all."""
    files = bench.encoder(workload.model)
    lines = [" ".join(map(str, line)) for length in (37, 8, 128) for line in texts.random_ids((101, 102, 1000, 30000), 8, length)]
    together, alone = bench.lines("bits-all", lines), [bench.lines("bits-%d" % i, [line]) for i, line in enumerate(lines)]
    saved, settings = {}, [(bench.threads, None), (1, None), (bench.threads, 512), (1, 640)]
    for threads, rows in settings:
        with Served(bench.rung.encode_command(workload._replace(tokens=512), files, threads, rows)) as served:
            saved[threads, rows, "together"] = _vectors(bench, served, [together])
            if rows is None:
                saved[threads, rows, "alone"] = _vectors(bench, served, alone)
    return {"title": title, "what": "texts alone and together, runs of 512 to 1,024 tokens, 1 and %d threads" % bench.threads,
            "settings": len(saved), "rows": len(lines), "equal": len(set(saved.values())) == 1}


def _vectors(bench, served, paths):
    out = bench.path("bits-vectors")
    data = []
    for path in paths:
        served.ask("ids", path)
        served.ask("save", out)
        data.append(out.read_bytes())
    return b"".join(data)
