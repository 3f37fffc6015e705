#!/usr/bin/env python3
"""Build the peer that text generation is compared with, for this machine's own processor.

    peers.py            build llama.cpp if needed, print the folder of its programs (llama-bench, llama-completion, ...)
    peers.py --path     only print the folder; fails when it was not built yet

The sources are those that `models.py fetch llama-cpp-src` brings; the build lies in
${RUNG_CACHE:-${XDG_CACHE_HOME:-~/.cache}/rung}/peers/llama.cpp. It takes about five minutes on two cores and is made once.
Needs CMake and a C++17 compiler.
"""
import argparse
import os
import shutil
import subprocess
import sys

import models
from models import FetchError, cache_root, say

TARGETS = ("llama", "llama-bench", "llama-completion", "llama-tokenize")
OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "GGML_NATIVE": "ON",        # a fair peer uses every instruction this machine has
    "GGML_CCACHE": "OFF",
    "BUILD_SHARED_LIBS": "ON",  # oracle/peer.py loads libllama
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_SERVER": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_BUILD_UI": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",
    "LLAMA_OPENSSL": "OFF",
}
STAMP = "built-from"


def folder():
    return cache_root() / "peers" / "llama.cpp"


def programs():
    return folder() / "build" / "bin"


def stamp_wanted():
    """What a finished build was made from; another source or option set makes it anew."""
    options = " ".join("%s=%s" % item for item in OPTIONS.items())
    return "%s %s %s\n" % (models.MODELS["llama-cpp-src"].sha256, options, " ".join(TARGETS))


def is_built():
    stamp = folder() / STAMP
    return stamp.is_file() and stamp.read_text() == stamp_wanted()


def run(command, log, what):
    with open(log, "ab") as output:
        code = subprocess.call(["nice", *command], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    if code != 0:
        tail = log.read_text(errors="replace").splitlines()[-15:]
        raise FetchError("%s failed; the end of %s:\n    %s" % (what, log, "\n    ".join(tail)))


def build(jobs):
    """Returns the folder of the programs after making sure that they are built."""
    for tool in ("cmake", "c++"):
        if shutil.which(tool) is None:
            raise FetchError("%s is missing (Debian, Ubuntu: apt install cmake g++)." % tool)
    sources = models.fetch("llama-cpp-src") / "vendor" / "llama.cpp"
    with models.locked(folder().with_name(".llama.cpp.lock")):
        if is_built():
            return programs()
        say("building llama.cpp with %d jobs (some minutes)" % jobs)
        target = folder() / "build"
        shutil.rmtree(folder(), ignore_errors=True)
        target.mkdir(parents=True)
        log = folder() / "build.log"
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        run(["cmake", "-S", str(sources), "-B", str(target), *generator,
             *("-D%s=%s" % item for item in OPTIONS.items())], log, "configuring llama.cpp")
        run(["cmake", "--build", str(target), "-j", str(jobs), "--target", *TARGETS], log, "building llama.cpp")
        (folder() / STAMP).write_text(stamp_wanted())
    return programs()


def require():
    """Folder of the programs of a finished build; FetchError says how to get it otherwise."""
    if not is_built():
        raise FetchError("llama.cpp is not built. Run: python3 scripts/peers.py")
    return programs()


def main():
    parser = argparse.ArgumentParser(description="Build llama.cpp as the peer of benchmarks and print its program folder.",
                                     epilog="example: $(python3 scripts/peers.py)/llama-bench -m MODEL.gguf -t 2")
    parser.add_argument("--path", action="store_true", help="only print the folder, fail if there is no build")
    parser.add_argument("-j", "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="default: 2 at most")
    arguments = parser.parse_args()
    try:
        print(require() if arguments.path else build(max(1, arguments.jobs)))
    except FetchError as error:
        say("peers.py: %s" % error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
