#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""House rules that a compiler does not check.

- Under src/ outside base/: no calls of the system (memory, threads, files, printing, ending the process).
- Every C file has the licence line and says in the next line what it is for; headers are guarded.
- Attributes and builtins stay in base/compiler.h.
- No call builds nodes in two of its arguments: C leaves their order open, and a graph's text and hash depend on it.
- No tabs, no trailing blanks, no absolute paths of a developer's machine.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "include", "tools", "tests", "bench", "examples")
SUFFIXES = {".c", ".h", ".inc", ".def", ".cu"}
CALLS = re.compile(
    r"(?<![\w.>])(malloc|calloc|realloc|free|aligned_alloc|posix_memalign|mmap|munmap|mprotect|madvise|pthread_\w+|"
    r"printf|vprintf|puts|putchar|fprintf|perror|abort|exit|_exit|quick_exit|setjmp|longjmp|fopen|open|read|write|fork|"
    r"system|signal|sleep|usleep)\s*\(")
LIBRARY_BUILTINS = re.compile(r"__attribute__|__builtin_\w+|__extension__")
# Asking for the processor's features is a builtin by nature, and kernels may need one that has no portable form; they name
# it in their own vocabulary headers.
BUILTIN_FREE = re.compile(r"^src/(base/compiler\.h|backends/cpu/isa\.c|backends/cpu/simd/|backends/cuda/kernels/)")
MACHINE = re.compile(r"(?<![\w.])/(?:work|home|root)/[a-z]")
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


BUILDS = re.compile(r"(\w+)\((?:g|b|b->graph)\b")
ONLY_ASKS = re.compile(r"rung_build_(type|null)$|rung_(graph_type_of|graph_status|graph_message|dims_\w+|one)$|axis_of$")


def arguments(code, at):
    """The arguments of the call whose bracket opens at `at`."""
    found, depth, start = [], 0, at + 1
    for i in range(at, len(code)):
        if code[i] in "([{":
            depth += 1
        elif code[i] in ")]}":
            depth -= 1
            if not depth:
                return found + [code[start:i]]
        elif code[i] == "," and depth == 1:
            found.append(code[start:i])
            start = i + 1
    return found


def check_order(code, say):
    for call in re.finditer(r"\b\w+\(", code):
        building = [argument for argument in arguments(code, call.end() - 1)
                    if any(not ONLY_ASKS.match(name) for name in BUILDS.findall(argument))]
        if len(building) > 1:
            say(code.count("\n", 0, call.start()) + 1, f"{call.group(0)}...) builds nodes in two of its arguments")


def code_only(text):
    """Comments and literals blanked, lines kept."""
    return NOISE.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def check(path, shown, text, say):
    lines = text.split("\n")
    if "SPDX-License-Identifier: MIT" not in lines[0] and path.suffix != ".cu":
        say(1, "the first line must carry SPDX-License-Identifier: MIT")
    elif path.suffix in (".c", ".inc", ".h") and len(lines[1].strip(" */")) < 8:
        say(2, "the line below the licence must say what the file is for")
    if path.suffix == ".h" and "#ifndef RUNG_" not in text and "_H" not in text:
        say(1, "header without a guard")
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            say(number, "tab")
        if line != line.rstrip():
            say(number, "trailing blank")
        if MACHINE.search(line):
            say(number, "a path of somebody's machine")
    if not shown.startswith("src/"):
        return
    code = code_only(text)
    if path.suffix == ".c":
        check_order(code, say)
    for number, line in enumerate(code.split("\n"), 1):
        if not shown.startswith("src/base/") and path.suffix != ".cu":
            for call in CALLS.findall(line):
                say(number, f"{call}() belongs into base/")
        if not BUILTIN_FREE.match(shown):
            for word in LIBRARY_BUILTINS.findall(line):
                say(number, f"{word} belongs into base/compiler.h")


def main():
    problems = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            shown = path.relative_to(ROOT).as_posix()
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                problems.append(f"{shown}: not UTF-8")
                continue
            check(path, shown, text, lambda line, what, s=shown: problems.append(f"{s}:{line}: {what}"))
    for pattern in ("scripts/**/*", "cmake/*", "docs/**/*", "*.md", "Makefile", "CMakeLists.txt"):
        for path in sorted(ROOT.glob(pattern)):
            if path.suffix not in (".py", ".sh", ".cmake", ".md", ".txt", ""):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n") if path.is_file() else [], 1):
                if MACHINE.search(line):
                    problems.append(f"{path.relative_to(ROOT).as_posix()}:{number}: a path of somebody's machine")
    print("\n".join(problems), end="\n" if problems else "")
    print(f"style: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
