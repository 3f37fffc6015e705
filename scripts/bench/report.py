# SPDX-License-Identifier: MIT
"""docs/benchmarks.md and its plots, from the results of one run."""
from pathlib import Path

from bench.plot import Bars

GIGA, MEGA = 1e9, 1e6


def number(value):
    if value is None:
        return "-"
    if value == 0:
        return "0"
    return "%.0f" % value if value >= 100 else "%.1f" % value if value >= 10 else "%.2f" % value


def spread(found, scale=1.0):
    """middle (lowest to highest)"""
    if not found:
        return "-"
    low, middle, high = (value * scale for value in found[:3])
    return "%s (%s to %s)" % (number(middle), number(low), number(high))


def percent(found):
    return "%.0f%%" % (100 * found[1]) if found else "-"


def table(head, rows):
    lines = ["| %s |" % " | ".join(head), "|%s" % ("---|" * len(head))]
    return lines + ["| %s |" % " | ".join(row) for row in rows] + [""]


def goal_of(result, peer):
    """The goal, and whether the middle of the ratios reaches it."""
    if result["goal"] is None:
        return "-"
    ratio = result["ratio"].get(peer)
    return "%s%s" % (number(result["goal"]), "" if not ratio else ", reached" if ratio[1] >= result["goal"] else ", missed")


def limits_table(limits, threads):
    def row(name, title, unit, scale):
        cells = [title]
        for count in (1, threads):
            found = limits.get("%s/%d" % (name, count))
            cells.append("%s %s" % (spread(found, scale), unit) if found else "-")
        return cells
    names = [("read", "memory read, 512 MiB", "GB/s", 1 / GIGA), ("read_43mb", "memory read, 43 MB", "GB/s", 1 / GIGA),
             ("fma_f32", "f32 multiply-add", "GFLOP/s", 1 / GIGA), ("dot_bf16", "bf16 dot product", "GFLOP/s", 1 / GIGA),
             ("dot_int8", "int8 dot product", "GOP/s", 1 / GIGA)]
    rows = [row(*name) for name in names]
    hand_over = limits.get("hand_over/2")
    if hand_over:
        rows.append(["a cache line from core to core", "", "%s ns" % spread(hand_over, 1e9)])
    return table(["limit", "1 thread", "%d threads" % threads], rows)


def speed_table(results, peer):
    head = ["work", "threads", "rung tok/s"] + (["%s tok/s" % peer, "ratio", "goal"] if peer else [])
    head += ["share of the limit"] + (["%s's share" % peer] if peer else []) + ["limit beside it"]
    rows = []
    for r in results:
        cells = [r["title"], str(r["threads"]), spread(r["engines"]["rung"])]
        if peer:
            cells += [spread(r["engines"][peer]), spread(r["ratio"][peer]), goal_of(r, peer)]
        cells.append(percent(r["share"].get("rung")))
        if peer:
            cells.append(percent(r["share"].get(peer)))
        beside = "%s GB/s" % number(r["read"][1] / GIGA) if r["kind"] == "decode" and r["read"] else r["bound"]
        if r["hand_over"]:
            beside += ", hand-off %s ns" % number(r["hand_over"][1] * 1e9)
        rows.append(cells + [beside])
    return table(head, rows)


def start_table(results, peer):
    head = ["work", "rung, ms to the end"] + (["%s, ms" % peer, "ratio", "goal"] if peer else []) + ["rung, ms to the first byte"]
    head += ["%s, ms" % peer, "says the same"] if peer else []
    rows = []
    for r in results:
        cells = [r["title"], spread(r["engines"]["rung"], 1e3)]
        if peer:
            cells += [spread(r["engines"][peer], 1e3), spread(r["ratio"][peer]), goal_of(r, peer)]
        cells.append(spread(r["first"]["rung"], 1e3))
        if peer:
            cells += [spread(r["first"][peer], 1e3), "yes" if r["says_same"] else "no"]
        rows.append(cells)
    return table(head, rows)


def memory_table(results, peer):
    head = ["work", "rung, MB"] + (["%s, MB" % peer, "ratio", "goal"] if peer else []) + ["predicted + host, MB", "VmHWM growth, MB"]
    rows = []
    for r in results:
        p = r["promise"]
        cells = [r["title"], spread(r["engines"]["rung"], 1 / MEGA)]
        if peer:
            cells += [spread(r["engines"][peer], 1 / MEGA), spread(r["ratio"][peer]), goal_of(r, peer)]
        rows.append(cells + ["%.1f" % ((p["predicted_most"] + p["host_most"]) / MEGA), "%.1f" % ((p["most"] - p["before"]) / MEGA)])
    return table(head, rows)


def classes_table(results):
    classes = [key[len("predicted_"):] for key in results[0]["promise"] if key.startswith("predicted_") and key != "predicted_most"]
    classes = [name for name in classes if any(r["promise"]["predicted_" + name] or r["promise"]["held_" + name] for r in results)]
    rows = [[r["title"]] + ["%.2f / %.2f" % (r["promise"]["predicted_" + name] / MEGA, r["promise"]["held_" + name] / MEGA) for name in classes]
            for r in results]
    return table(["MB predicted / held at the end"] + classes, rows)


def agreement_table(agreement):
    rows = [[a["title"], str(a["positions"]), "%.5f" % a["mean_kl"], "%.5f" % a["kl_99"], "%.1f%%" % (100 * a["same_best"]),
             "yes" if a["agrees"] else "no"] for a in agreement]
    return table(["logits of one text", "positions", "mean KL", "99% of positions below", "same best token", "agree"], rows)


def of_kind(run, *kinds):
    return [r for r in run["results"] if r["kind"] in kinds]


def plots(run, peer):
    """{file name: SVG}"""
    engines = ["rung"] + ([peer] if peer else [])
    note = "%s, %s" % (run["machine"]["date"], run["machine"]["commit"][:12])
    made = {}
    ratios = [(r["title"], [r["ratio"][peer]], r["goal"]) for r in run["results"] if peer and r["ratio"].get(peer)]
    if ratios:
        made["ratios.svg"] = Bars("rung against %s: times as fast, or as small" % peer, "ratio, above 1 is better", ["rung / %s" % peer], ratios, note)
    for kind, title, unit, scale in (("prompt", "Reading a prompt", "tokens per second", 1.0), ("decode", "Decoding", "tokens per second", 1.0),
                                     ("start", "Start to first token, whole process", "milliseconds, less is better", 1e3),
                                     ("memory", "Most resident memory", "MB, less is better", 1 / MEGA)):
        rows = [(r["title"], [tuple(v * scale for v in r["engines"][e][:3]) for e in engines], None) for r in of_kind(run, kind)]
        if rows:
            made["%s.svg" % kind] = Bars(title, unit, engines, rows, note)
    return {name: bars.svg() for name, bars in made.items()}


def machine_lines(run):
    m = run["machine"]
    lines = ["- Machine: %s; %d cores%s; %s; %.1f GB of memory; %s" % (
        m["processor"], m["cores"], " (virtual)" if m["virtual"] else "", m["caches"], m["memory_bytes"] / GIGA, m["system"]),
             "- Models: %s" % "; ".join(run["models"]),
             "- Date: %s, commit %s, instruction set `%s`" % (m["date"], m["commit"], run["isa"]),
             "- Command: `%s` (%d minutes)" % (run["command"], round(run["seconds"] / 60)),
             "- Load average: %.1f at the start, %.1f at the end, our own work included" % tuple(run["load"])]
    if run["peer"]:
        lines.append("- Peer: %s, built for this machine's own processor; same model files, same threads, keys and values as f16" % run["peer_version"])
    return lines + [""]


def markdown(run):
    peer = run["peer"]
    lines = ["# Benchmarks", "",
             "Written by `make bench` from one run; not edited by hand.", ""] + machine_lines(run)
    lines += ["Every figure is the middle of several measurements with the lowest and the highest. The engines take turns; a ratio is that of two "
              "measurements side by side. Read bandwidth and hand-off between the cores change from minute to minute on some machines, so both "
              "are measured again before each pair, and a share of the bandwidth is that of the moment.", "", "![ratios](benchmarks/ratios.svg)" if peer else "", "",
              "## Limits of the machine", ""] + limits_table(run["limits"], run["machine"]["cores"])
    speeds = of_kind(run, "prompt")
    if speeds:
        lines += ["## Prompts", "", "Share: multiplications and additions of all matrix products and of attention, against the peak named beside it.", ""]
        lines += speed_table(speeds, peer) + ["![prompts](benchmarks/prompt.svg)", ""]
    speeds = of_kind(run, "decode")
    if speeds:
        lines += ["## Decoding", "", "Share: bytes of weights, once for each step of all sequences, and of the keys and values that rows see, against the read "
                  "bandwidth measured right before. From an empty state unless a depth is named; behind 512 positions rung's figure includes sampling. "
                  "A share above 100% means that part of what is read came from a cache.", ""]
        lines += speed_table(speeds, peer) + ["![decoding](benchmarks/decode.svg)", ""]
    starts = of_kind(run, "start")
    if starts:
        lines += ["## Start to first token", "", "Whole processes with a prompt of %d tokens and one token made, %s. File in the page cache." % (
            starts[0]["prompt_tokens"], "`rung generate` against `llama-completion --no-warmup`" if peer else "`rung generate`"), ""]
        lines += start_table(starts, peer) + ["![start](benchmarks/start.svg)", ""]
    memories = of_kind(run, "memory")
    if memories:
        lines += ["## Memory", "", "VmHWM of whole processes: load, prompt of %d, %d tokens decoded, context of 2048, keys and values as f16. Beside it the "
                  "promise: what was predicted before loading plus class `host`, and how far VmHWM rose from just before the load (`bench/memory.c`)." % (
                      memories[0]["prompt_tokens"], memories[0]["tokens"]), ""]
        lines += memory_table(memories, peer) + classes_table(memories) + ["![memory](benchmarks/memory.svg)", ""]
    if run["agreement"]:
        lines += ["## Agreement", "", "The engines compute the same up to their 8-bit activations: divergence of rung's distributions from %s's." % peer, ""]
        lines += agreement_table(run["agreement"])
    return "\n".join(lines).rstrip("\n") + "\n"


def write(run, folder):
    """Writes benchmarks.md and benchmarks/*.svg below `folder`."""
    folder = Path(folder)
    target = folder / "benchmarks"
    target.mkdir(parents=True, exist_ok=True)
    made = plots(run, run["peer"])
    for old in target.glob("*.svg"):
        if old.name not in made:
            old.unlink()
    for name, svg in made.items():
        (target / name).write_text(svg, encoding="utf-8")
    text = markdown(run)
    for name in ("ratios", "prompt", "decode", "start", "memory"):  # no picture, no link
        if "%s.svg" % name not in made:
            text = "\n".join(line for line in text.split("\n") if "(benchmarks/%s.svg)" % name not in line)
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    (folder / "benchmarks.md").write_text(text, encoding="utf-8")


def line(result, peer):
    """One result for the terminal."""
    kind = result["kind"]
    scale, unit = {"start": (1e3, "ms"), "memory": (1 / MEGA, "MB")}.get(kind, (1.0, "tok/s"))
    words = ["%-28s" % result["name"], "rung %s %s" % (spread(result["engines"]["rung"], scale), unit)]
    if peer:
        words += ["%s %s" % (peer, spread(result["engines"][peer], scale)), "ratio %s" % spread(result["ratio"][peer]), "goal %s" % goal_of(result, peer)]
    if result.get("share"):
        words.append("share %s of %s" % (percent(result["share"].get("rung")), result["bound"]))
    if result["read"]:
        words.append("read %s GB/s" % number(result["read"][1] / GIGA))
    if result["hand_over"]:
        words.append("hand-off %s ns" % number(result["hand_over"][1] * 1e9))
    words.append("load %.1f" % result["load"][1])
    return "  ".join(words)
