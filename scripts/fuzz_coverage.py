#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Line coverage of what reads bytes that are not trusted, by the fuzz targets: the seeds and SECONDS of fuzzing each.

    fuzz_coverage.py [SECONDS [TARGET ...]]      60 seconds a target and all targets unless given

Prints the lines that llvm-cov counts, file by file; exit 1 if a reader has less than 85% of its lines covered or a target
fails. Needs clang with its run-time libraries and llvm-profdata and llvm-cov of the same version.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "coverage"
LEAST = 85.0
# The files that a target is there for. What they call is not counted: it has tests of its own.
READERS = {
    "fuzz_gguf": ["src/formats/gguf.c", "src/formats/gguf_metadata.c", "src/formats/gguf_tensors.c",
                  "src/formats/gguf_weights.c"],
    "fuzz_text": ["src/ir/parse.c", "src/ir/lex.c", "src/ir/attrs_text.c", "src/ir/dim_text.c", "src/ir/dim.c",
                  "src/ir/dim_poly.c", "src/ir/verify.c"],
    "fuzz_compiled": ["src/ir/decode.c"],
    "fuzz_jinja": ["src/text/jinja/*.c"],
    "fuzz_onnx": ["src/formats/onnx/*.c"],
    "fuzz_safetensors": ["src/formats/safetensors.c", "src/formats/safetensors_folder.c", "src/text/json.c"],
    "fuzz_state": ["src/runtime/state_file.c"],
    "fuzz_tokenizer": ["src/text/decoder.c", "src/text/pretokenise.c", "src/text/special.c", "src/text/spm.c",
                       "src/text/tokenizer.c", "src/text/utf8.c", "src/text/vocab.c"],
    "fuzz_tokenizer_json": ["src/formats/tokenizer_json*.c", "src/text/bpe.c", "src/text/cut.c", "src/text/detokenise.c",
                            "src/text/normalise.c", "src/text/pipeline.c", "src/text/regex.c", "src/text/trie.c",
                            "src/text/unicode.c", "src/text/unigram.c", "src/text/wordpiece.c"],
    "fuzz_winners": ["src/runtime/tune/winners_text.c", "src/target/candidate.c"],
}


def must(command, **options):
    done = subprocess.run(list(map(str, command)), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", **options)
    if done.returncode:
        print(f"failed: {' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        sys.exit(1)
    return done.stdout


def tool(name):
    """With clang's own version, or plain."""
    version = re.search(r"version (\d+)", must(["clang", "--version"])).group(1)
    return shutil.which(f"{name}-{version}") or shutil.which(name) or sys.exit(f"there is no {name}; see scripts/setup.sh test")


def more_seeds(name):
    """Of ONNX, the onnx package's operator cases: a model for each operator, made by scripts/onnx_cases.py."""
    if name != "fuzz_onnx":
        return []
    import onnx_cases
    import venv
    folder, _ = onnx_cases.cases(venv.make([ROOT / "scripts/requirements.txt"]))
    return [folder / "node"]


def run_one(name, seconds, folder):
    corpus = ROOT / "tests/fuzz/corpus" / name
    found = folder / name
    found.mkdir()
    command = [BUILD / "tests/fuzz" / name, f"-max_total_time={seconds}", "-rss_limit_mb=3000", "-timeout=25",
               f"-artifact_prefix={folder}/", found, *([corpus] if corpus.exists() else []), *more_seeds(name)]
    must(command, env={**os.environ, "LLVM_PROFILE_FILE": str(folder / f"{name}.raw"),
                       "ASAN_OPTIONS": "allocator_may_return_null=1"})


def lines_of(name, folder):
    """(file, covered, lines) of each file of the reader."""
    data, program = folder / f"{name}.data", BUILD / "tests/fuzz" / name
    must([tool("llvm-profdata"), "merge", folder / f"{name}.raw", "-o", data])
    files = [path for pattern in READERS[name] for path in sorted(ROOT.glob(pattern))]
    report = json.loads(must([tool("llvm-cov"), "export", "-summary-only", program, f"-instr-profile={data}", *files]))
    return [(Path(file["filename"]).relative_to(ROOT), file["summary"]["lines"]["covered"], file["summary"]["lines"]["count"])
            for file in report["data"][0]["files"]]


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    targets = sys.argv[2:] or list(READERS)
    generator = ["-G", "Ninja"] if shutil.which("ninja") and not (BUILD / "CMakeCache.txt").exists() else []
    must(["cmake", "--preset", "fuzz", "-B", BUILD, *generator, "-DCMAKE_C_FLAGS=-fprofile-instr-generate -fcoverage-mapping"])
    must(["cmake", "--build", BUILD, "-j", os.cpu_count() or 2, "--target", *targets])
    failed = False
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        folder = Path(temporary)
        list(pool.map(lambda name: run_one(name, seconds, folder), targets))
        for name in targets:
            rows = lines_of(name, folder)
            covered, count = sum(row[1] for row in rows), sum(row[2] for row in rows)
            for file, have, of in rows:
                print(f"  {100 * have / max(of, 1):5.1f}%  {have:5} of {of:5} lines  {file}")
            share = 100 * covered / max(count, 1)
            failed |= share < LEAST
            print(f"{name}: {share:.1f}% of {count} lines, seeds and {seconds} s{'' if share >= LEAST else f'; at least {LEAST}% are wanted'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
