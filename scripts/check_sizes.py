#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""File and function budgets: 1,000 and 120 lines are refused, above 500 and 60 is printed.

A file whose first lines say "generated" may be of any size. Functions are found by form: they start at column 0 and end
with a line that is just a closing brace.
"""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE_SOFT, FILE_HARD, FUNCTION_SOFT, FUNCTION_HARD = 500, 1000, 60, 120
FOLDERS = ("src", "include", "tools", "tests", "bench", "examples")
SUFFIXES = {".c", ".h", ".inc", ".cu"}


def functions(lines):
    """Pairs (first line, length) of what ends with "}" at column 0."""
    start = None
    for number, line in enumerate(lines):
        if line == "}" and start is not None:
            yield start, number - start + 1
            start = None
        elif line[:1].isalpha() or line[:1] == "_":
            # A signature over several lines starts at its first; a declaration that ended gives way to the next.
            if start is None or lines[number - 1].rstrip().endswith((";", "}")) or not lines[number - 1].strip():
                start = number


def main():
    hard, soft = [], []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            lines = path.read_text(encoding="utf-8").split("\n")
            if any("generated" in line.lower() for line in lines[:4]):
                continue
            shown = path.relative_to(ROOT).as_posix()
            if len(lines) > FILE_SOFT:
                (hard if len(lines) > FILE_HARD else soft).append(f"{shown}: {len(lines)} lines")
            for start, length in functions(lines):
                if length > FUNCTION_SOFT:
                    text = f"{shown}:{start + 1}: {length} lines: {lines[start].strip()[:80]}"
                    (hard if length > FUNCTION_HARD else soft).append(text)
    for text in soft:
        print("soft:", text)
    for text in hard:
        print("TOO LONG:", text)
    print(f"sizes: {len(soft)} over the soft budget, {len(hard)} over the hard one")
    return 1 if hard else 0


if __name__ == "__main__":
    sys.exit(main())
