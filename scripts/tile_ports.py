#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the inner loop of a matrix product executes, from the generated code, and the share of the peak that this allows.

For each kernel the loop over k of its highest tile is taken out of the disassembly and its vector instructions are
sorted: steps (dot products, multiply-adds of the product itself, on avx2 multiplications of bytes), others that need the
ports of multiplications (scales, sums brought to 32 bits), and those that any vector port takes. Loads and broadcasts
need none. With 512 bits, multiplications have two of four ports to themselves if the rest goes to the other two; with 256
bits all four are counted as well, since a step there is a multiplication and an addition."""
import argparse
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEVELS = {"avx512": ("zmm", "vpdpbusd"), "avx2": ("ymm", "vpmaddubsw")}
KERNELS = ["a8_%s_many" % kind for kind in ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k")] + ["f32_many_tile",
                                                                                                              "pairs_many_tile"]
STEPS = {"f32_many_tile": "vfmadd", "pairs_many_tile": "vdpbf16ps"}
MULTIPLIES = re.compile(r"vpdp|vdpbf16|vmul|vfn?m(add|sub)|vpmadd|vpmul")
LOADS = re.compile(r"v?mov|vp?broadcast|vlddqu")


def functions(binary):
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", binary], check=True, capture_output=True, text=True).stdout
    for part in text.split("\n\n"):
        head = re.match(r"\s*[0-9a-f]+ <(\w+)>:\n", part)
        if head:
            yield head.group(1), [line.split("\t") for line in part[head.end():].splitlines()]


def innermost(lines, register, step):
    """Of the loops that hold no other loop with steps: the one with most, which is the highest tile's."""
    code = [(line[0].strip().rstrip(":"), line[1].split("#")[0].strip()) for line in lines if len(line) > 1]
    at = {address: i for i, (address, _) in enumerate(code)}
    steps = [text.startswith(step) and register in text for _, text in code]
    found = []
    for i, (_, text) in enumerate(code):
        jump = re.match(r"j\w+\s+([0-9a-f]+)", text)
        if jump and at.get(jump.group(1), i) < i and any(steps[at[jump.group(1)]:i]):
            found.append((at[jump.group(1)], i + 1))
    inner = [(a, b) for a, b in found if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in found)]
    if not inner:
        return None
    first, end = max(inner, key=lambda body: sum(steps[body[0]:body[1]]))
    return [text for _, text in code[first:end]]


def report(name, body, register, step):
    texts = [text for text in body if register in text and not LOADS.match(text)]
    steps = sum(text.startswith(step) for text in texts)
    multiplies = sum(MULTIPLIES.match(text) is not None for text in texts)
    if step == "vfmadd":
        steps = multiplies
    ideal = steps / 2  # cycles at the peak; those of bytes are an addition each besides, on the other two ports
    need = max(multiplies / 2, len(texts) / 4)
    stack = sum("(%rsp" in text or "(%rbp" in text for text in body)
    rest = Counter(text.split()[0] for text in texts if not MULTIPLIES.match(text))
    print("%-16s %5d %5d %7d %6d %6d  %5.0f%%  %s" % (name, len(body), steps, multiplies - steps, len(texts) - multiplies, stack,
                                                  100 * ideal / need, " ".join("%s:%d" % item for item in rest.most_common(5))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?", default=str(ROOT / "build/release/rung"), help="default: build/release/rung")
    parser.add_argument("--level", choices=sorted(LEVELS), default="avx512")
    options = parser.parse_args()
    register, dot = LEVELS[options.level]
    print("%-16s %5s %5s %7s %6s %6s  %6s  %s" % ("kernel", "all", "steps", "scales", "other", "stack", "at most", "most of the others"))
    seen, texts = 0, {}
    for name, lines in functions(options.binary):
        if name in KERNELS:
            texts.setdefault(name, []).append(lines)
    for name in KERNELS:
        step = STEPS.get(name, dot)
        bodies = [body for lines in texts.get(name, []) for body in [innermost(lines, register, step)] if body]
        if bodies:
            report(name, bodies[0], register, step)
            seen += 1
    if not seen:
        sys.exit("%s has no kernels of %s with names: is it stripped?" % (options.binary, options.level))


main()
