#!/usr/bin/env python3
"""Build the peer that text generation is compared with.

    peers.py                 build llama.cpp for this machine's own processor if needed, print the folder of its programs
                             (llama-bench, llama-completion, ...)
    peers.py --for avx2      the same for processors with AVX2 and nothing later
    peers.py --path          only print the folder; fails when it was not built yet

The sources are those that `models.py fetch llama-cpp-src` brings; the builds lie in
${RUNG_CACHE:-${XDG_CACHE_HOME:-~/.cache}/rung}/peers, a folder each. One takes about five minutes on two cores, is made once,
and goes on where it was interrupted. Needs CMake and a C++17 compiler.
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
BUILDS = {  # name: (folder, what differs)
    "native": ("llama.cpp", {}),
    "avx2": ("llama.cpp-avx2", {"GGML_NATIVE": "OFF", "GGML_AVX2": "ON", "GGML_FMA": "ON", "GGML_F16C": "ON", "GGML_BMI2": "ON",
                                "GGML_AVX512": "OFF"}),
}
STAMP, BEGUN = "built-from", "building-from"


def folder(name="native"):
    return cache_root() / "peers" / BUILDS[name][0]


def programs(name="native"):
    return folder(name) / "build" / "bin"


def options_of(name):
    return {**OPTIONS, **BUILDS[name][1]}


def stamp_wanted(name):
    """What a build is made from; another source or option set makes it anew."""
    options = " ".join("%s=%s" % item for item in options_of(name).items())
    return "%s %s %s\n" % (models.MODELS["llama-cpp-src"].sha256, options, " ".join(TARGETS))


def holds(path, text):
    return path.is_file() and path.read_text() == text


def is_built(name="native"):
    return holds(folder(name) / STAMP, stamp_wanted(name))


def run(command, log, what):
    with open(log, "ab") as output:
        code = subprocess.call(["nice", *command], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    if code != 0:
        tail = log.read_text(errors="replace").splitlines()[-15:]
        raise FetchError("%s failed; the end of %s:\n    %s" % (what, log, "\n    ".join(tail)))


def make(name, sources, jobs):
    """The build itself, under its lock. What an interrupted one left is gone on with if it was of the same options."""
    target, wanted, log = folder(name) / "build", stamp_wanted(name), folder(name) / "build.log"
    if not holds(folder(name) / BEGUN, wanted):
        shutil.rmtree(folder(name), ignore_errors=True)
        target.mkdir(parents=True)
        (folder(name) / BEGUN).write_text(wanted)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    run(["cmake", "-S", str(sources), "-B", str(target), *generator,
         *("-D%s=%s" % item for item in options_of(name).items())], log, "configuring llama.cpp")
    run(["cmake", "--build", str(target), "-j", str(jobs), "--target", *TARGETS], log, "building llama.cpp")
    (folder(name) / BEGUN).replace(folder(name) / STAMP)


def build(jobs, name="native"):
    """Returns the folder of the programs after making sure that they are built."""
    for tool in ("cmake", "c++"):
        if shutil.which(tool) is None:
            raise FetchError("%s is missing (Debian, Ubuntu: apt install cmake g++)." % tool)
    sources = models.fetch("llama-cpp-src") / "vendor" / "llama.cpp"
    with models.locked(folder(name).with_name(".%s.lock" % BUILDS[name][0])):
        if not is_built(name):
            say("building llama.cpp (%s) with %d jobs (some minutes)" % (name, jobs))
            make(name, sources, jobs)
    return programs(name)


def require(name="native"):
    """Folder of the programs of a finished build; FetchError says how to get it otherwise."""
    if not is_built(name):
        raise FetchError("llama.cpp is not built. Run: python3 scripts/peers.py --for %s" % name)
    return programs(name)


def main():
    parser = argparse.ArgumentParser(description="Build llama.cpp as the peer of benchmarks and print its program folder.",
                                     epilog="example: $(python3 scripts/peers.py)/llama-bench -m MODEL.gguf -t 2")
    parser.add_argument("--for", dest="name", choices=list(BUILDS), default="native", help="which instructions it may use")
    parser.add_argument("--path", action="store_true", help="only print the folder, fail if there is no build")
    parser.add_argument("-j", "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="default: 2 at most")
    arguments = parser.parse_args()
    try:
        print(require(arguments.name) if arguments.path else build(max(1, arguments.jobs), arguments.name))
    except FetchError as error:
        say("peers.py: %s" % error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
