# SPDX-License-Identifier: MIT
"""docs/benchmarks.md and its plots, from the results of one run. Sections are rows of sections.py."""
from pathlib import Path

from bench import goals
from bench.plot import Bars
from bench.sections import SECTIONS

GIGA, MEGA = 1e9, 1e6


def number(value):
    if value is None:
        return "-"
    if value == 0:
        return "0"
    return "%.0f" % value if value >= 100 else "%.1f" % value if value >= 10 else "%.2f" % value if value >= 0.1 else "%.3g" % value


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


def peers_of(results):
    """Every peer of some results, in the order in which they come."""
    return list(dict.fromkeys(name for r in results for name in r["peers"]))


def better_peer(result):
    """The peer that rung is the least ahead of."""
    return min(result["ratio"], key=lambda name: result["ratio"][name][1], default=None)


def ratio_cell(result):
    best = better_peer(result)
    if best is None:
        return "-"
    return spread(result["ratio"][best]) + (" to %s" % best if len(result["ratio"]) > 1 else "")


def each(result, found, form):
    """One cell with a figure for each engine: "rung 71%, OpenVINO 63%"."""
    names = ["rung"] + result["peers"]
    known = [(name, found[name]) for name in names if found.get(name)]
    return ", ".join("%s %s" % (name, form(value)) for name, value in known) or "-"


def beside_cell(result):
    """The limits that were measured beside it."""
    forms = (("read", "%s GB/s", 1 / GIGA), ("read_43mb", "%s GB/s of 43 MB", 1 / GIGA), ("fma_f32", "%s GFLOP/s", 1 / GIGA),
             ("dot_bf16", "%s GFLOP/s of bf16", 1 / GIGA), ("hand_over", "hand-off %s ns", 1e9))
    return ", ".join(form % number(result["beside"][name][1] * scale) for name, form, scale in forms if result["beside"].get(name)) or "-"


def section_table(section, results):
    """The same columns for every kind; those that no result fills are left out."""
    peers = peers_of(results)
    names = ["rung"] + peers
    columns = [("work", lambda r: r["title"]), ("threads", lambda r: str(r["threads"]))]
    columns += [("%s, %s" % (name, section.unit), lambda r, name=name: spread(r["engines"].get(name), section.scale)) for name in names]
    if peers:
        columns += [("ratio to the better peer" if len(peers) > 1 else "ratio", ratio_cell), ("goals", goals.words)]
    for label in dict.fromkeys(label for r in results for label in r["shares"]):
        columns.append(("share of %s" % label, lambda r, label=label: each(r, r["shares"].get(label, {}), percent)))
    columns.append(("limits beside it", beside_cell))
    columns.append(("most memory, MB", lambda r: each(r, r["peak"], lambda found: number(found[1] / MEGA))))
    columns += section.more(results)
    rows = [[cell(r) for _, cell in columns] for r in results]
    kept = [i for i in range(len(columns)) if any(row[i] != "-" for row in rows)]
    return table([columns[i][0] for i in kept], [[row[i] for i in kept] for row in rows])


def limits_table(limits, threads):
    def row(name, title, unit, scale):
        cells = [title]
        for count in dict.fromkeys((1, threads)):
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
    return table(["limit"] + ["1 thread", "%d threads" % threads][:len(rows[0]) - 1], rows)


def classes_table(results):
    """Memory by class, as it was promised and as it was held."""
    promises = [r["extra"]["promise"] for r in results]
    classes = [key[len("predicted_"):] for key in promises[0] if key.startswith("predicted_") and key != "predicted_most"]
    classes = [name for name in classes if any(p["predicted_" + name] or p["held_" + name] for p in promises)]
    rows = [[r["title"]] + ["%.2f / %.2f" % (p["predicted_" + name] / MEGA, p["held_" + name] / MEGA) for name in classes]
            for r, p in zip(results, promises)]
    return table(["MB predicted / held at the end"] + classes, rows)


def agreement_table(agreement):
    rows = [[a["title"], str(a["positions"]), "%.5f" % a["mean_kl"], "%.5f" % a["kl_99"], "%.1f%%" % (100 * a["same_best"]),
             "yes" if a["agrees"] else "no"] for a in agreement]
    return table(["logits of one text", "positions", "mean KL", "99% of positions below", "same best token", "agree"], rows)


def bits_table(bits):
    rows = [[b["title"], b["what"], str(b["settings"]), str(b["rows"]), "yes" if b["equal"] else "no"] for b in bits]
    return table(["rung alone", "over", "settings", "rows compared", "equal bits"], rows)


def of_section(run, name):
    return [r for r in run["results"] if r["section"] == name]


def plots(run):
    """{file name: SVG}"""
    note = "%s, %s" % (run["machine"]["date"], run["machine"]["commit"][:12])
    made = {}
    wanted = {r["name"]: next((goal["ratio"] for goal in r["goals"] if goal["ratio"]), None) for r in run["results"]}
    ratios = [(r["title"], [r["ratio"][better_peer(r)]], wanted[r["name"]]) for r in run["results"] if r["ratio"] and r["section"] != "tokens"]
    if ratios:
        made["ratios.svg"] = Bars("rung against the better peer: times as fast, or as small", "ratio, above 1 is better", ["rung / peer"], ratios, note)
    for section in SECTIONS:
        results = of_section(run, section.name)
        names = ["rung"] + peers_of(results)
        rows = [(r["title"], [r["engines"].get(name) and tuple(v * section.scale for v in r["engines"][name][:3]) for name in names], None)
                for r in results]
        if rows:
            made["%s.svg" % section.name] = Bars(section.plot, section.axis, names, rows, note)
    return {name: bars.svg() for name, bars in made.items()}


def machine_lines(run):
    m = run["machine"]
    lines = ["- Machine: %s; %d cores%s; %s; %.1f GB of memory; %s" % (
        m["processor"], m["cores"], " (virtual)" if m["virtual"] else "", m["caches"], m["memory_bytes"] / GIGA, m["system"]),
             "- Models: %s" % "; ".join(run["models"]),
             "- Date: %s, commit %s, instruction set `%s`" % (m["date"], m["commit"], run["isa"]),
             "- Command: `%s` (%d minutes)" % (run["command"], round(run["seconds"] / 60)),
             "- Load average: %.1f at the start, %.1f at the end, our own work included" % tuple(run["load"])]
    if run["peers"]:
        lines.append("- Peers, with the same inputs and threads: %s" % "; ".join(run["peers"]))
    return [line for line in lines if not line.endswith(": ")] + [""]


def goals_lines(run):
    """How many goals are reached, and which are not."""
    found = [(r, goal) for r in run["results"] for goal in r["goals"]]
    if not found:
        return []
    missed = {}
    for r, goal in found:
        if not goal["reached"]:
            missed.setdefault(r["title"], []).append(goal["text"])
    lines = ["%d of %d goals are reached.%s" % (len(found) - sum(map(len, missed.values())), len(found), " Missed:" if missed else ""), ""]
    return lines + ["- %s: %s" % (title, "; ".join(texts)) for title, texts in missed.items()] + [""]


def section_lines(section, results):
    lines = ["## " + section.title, "", section.text(results), ""] + section_table(section, results)
    if section.classes:
        lines += classes_table(results)
    return lines + ["![%s](benchmarks/%s.svg)" % (section.title.lower(), section.name), ""]


def markdown(run):
    lines = ["# Benchmarks", "", "Written by `make bench` from one run; not edited by hand.", ""] + machine_lines(run)
    lines += ["Every figure is the middle of several measurements with the lowest and the highest. The engines take turns; a ratio is that of two "
              "measurements side by side. What the machine can do changes from minute to minute on some machines, so the limits that matter "
              "are measured again before each round, and a share is that of the moment. Most memory is the resident high-water mark of a "
              "process that does this work alone, for peers that run inside Python without what the interpreter held before it loaded the engine.", ""]
    lines += goals_lines(run) + ["![ratios](benchmarks/ratios.svg)", "", "## Limits of the machine", ""]
    lines += limits_table(run["limits"], run["machine"]["cores"])
    for section in SECTIONS:
        results = of_section(run, section.name)
        lines += section_lines(section, results) if results else []
    if run["skipped"]:
        lines += ["## Not measured", ""] + ["- %s: %s" % (one["title"], one["why"]) for one in run["skipped"]] + [""]
    if run["agreement"]:
        lines += ["## Agreement", "", "Rung and llama.cpp compute the same up to their 8-bit activations: divergence of rung's distributions from "
                  "llama.cpp's.", ""] + agreement_table(run["agreement"])
    if run["bits"]:
        lines += ["## Bits", "", "Rung's results in the settings that are measured here, compared byte by byte.", ""] + bits_table(run["bits"])
    return "\n".join(lines).rstrip("\n") + "\n"


def write(run, folder):
    """Writes benchmarks.md and benchmarks/*.svg below `folder`."""
    folder = Path(folder)
    target = folder / "benchmarks"
    target.mkdir(parents=True, exist_ok=True)
    made = plots(run)
    for old in target.glob("*.svg"):
        if old.name not in made:
            old.unlink()
    for name, svg in made.items():
        (target / name).write_text(svg, encoding="utf-8")
    lines = markdown(run).split("\n")
    if "ratios.svg" not in made:  # no picture, no link
        lines = [line for line in lines if "(benchmarks/ratios.svg)" not in line]
    text = "\n".join(lines)
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    (folder / "benchmarks.md").write_text(text, encoding="utf-8")


def line(result):
    """One result for the terminal."""
    section = next(s for s in SECTIONS if s.name == result["section"])
    words = ["%-28s" % result["name"], "rung %s %s" % (spread(result["engines"]["rung"], section.scale), section.unit)]
    words += ["%s %s" % (name, spread(result["engines"][name], section.scale)) for name in result["peers"]]
    if result["ratio"]:
        words.append("ratio %s" % ratio_cell(result))
    words += ["%s of %s" % (percent(found.get("rung")), label) for label, found in result["shares"].items()]
    if any(result["peak"].values()):
        words.append("MB: %s" % each(result, result["peak"], lambda found: number(found[1] / MEGA)))
    if result["goals"]:
        words.append("goals: %s" % goals.words(result))
    if "agrees" in result:
        words.append("agree" if result["agrees"] else "DIFFER")
    return "  ".join(words + [beside_cell(result), "load %.1f" % result["load"][1]])
