#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Includes point down only: a file under src/ sees its own layer and lower ones, and no folders form a circle.

The order is that of docs/design.md. Backends never see each other. Exit 1 with one line a violation.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = [["base"], ["text"], ["ir"], ["ops", "target", "weights"], ["passes"], ["plan", "formats"], ["backends"],
          ["runtime"], ["models"], ["tools"]]
RANK = {folder: rank for rank, layer in enumerate(LAYERS) for folder in layer}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
SUFFIXES = {".c", ".h", ".inc", ".def"}


def files():
    for top in ("src", "include", "tools"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path


def folder_of(name):
    """Layer folder of a path below src/, with the backend's own name where there is one."""
    parts = name.split("/")
    if parts[0] == "backends" and len(parts) > 2:
        return "backends/" + parts[1]
    return parts[0]


def main():
    problems, edges = [], {}
    for path in files():
        shown = path.relative_to(ROOT).as_posix()
        public, tool = shown.startswith("include/"), shown.startswith("tools/")
        own = "tools" if tool else folder_of(shown[len("src/"):])
        for quote, name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if public:
                if quote == '"' or "/" in name and not name.startswith("rung/"):
                    problems.append(f"{shown}: a public header includes {name}")
                continue
            if quote == "<":
                continue
            target = ROOT / "src" / name
            if not target.exists():
                if not (path.parent / name).exists() and not (tool and (ROOT / "tools" / name).exists()):
                    problems.append(f"{shown}: {name} is not there")
                elif not tool:
                    problems.append(f'{shown}: write "{path.parent.relative_to(ROOT / "src").as_posix()}/{name}"')
                continue
            other = folder_of(name)
            if own.split("/")[0] not in RANK or other.split("/")[0] not in RANK:
                problems.append(f"{shown}: {own} or {other} is no layer; see scripts/check_layers.py")
                continue
            mine, theirs = RANK[own.split("/")[0]], RANK[other.split("/")[0]]
            if theirs > mine:
                problems.append(f"{shown}: {own} includes {name} of a higher layer")
            elif own.startswith("backends/") and other.startswith("backends/") and own != other:
                problems.append(f"{shown}: one backend includes another's {name}")
            elif own != other:
                edges.setdefault(own, {}).setdefault(other, f"{shown} includes {name}")
    for a in sorted(edges):
        for b in sorted(edges[a]):
            if a < b and a in edges.get(b, {}):
                problems.append(f"circle of folders: {edges[a][b]}; {edges[b][a]}")
    print("\n".join(problems), end="\n" if problems else "")
    print(f"layers: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
