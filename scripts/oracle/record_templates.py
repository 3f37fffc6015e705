#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Record what Python's jinja2 makes of chat templates, for the C tests.

    record_templates.py              writes tests/templates/{expect.txt,pieces.json}
    record_templates.py --rung PATH  also compares with a program that renders (PATH TEMPLATE VARIABLES.json), and shows
                                     where it differs

jinja2 runs in the settings of transformers' apply_chat_template: trim_blocks, lstrip_blocks, an immutable sandbox,
break and continue, {% generation %}, their tojson, raise_exception and strftime_now, the last at a fixed time.

expect.txt has a line for every template of the llama-cpp-python source distribution (models.py fetches it; the templates
are not ours to copy): its name, and for every conversation of conversations.json the digest of the text (FNV-1a of 64
bits), or - where jinja2 raises. pieces.txt has small templates of our own, one for each thing that the language can do,
over the variables of variables.json; pieces.json their texts, null where jinja2 raises.
"""
import argparse
import datetime
import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import jinja2
import jinja2.ext
import models
from jinja2.sandbox import ImmutableSandboxedEnvironment

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "templates"
NOW = 1721999999  # Friday, 26 July 2024, 13:19:59, as local time


class Generation(jinja2.ext.Extension):
    """{% generation %} as transformers has it: a call block whose text goes through."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_through"), [], [], body).set_lineno(line)

    def _through(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(form):
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).replace(tzinfo=None).strftime(form)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


@functools.lru_cache(maxsize=4)
def compiled(source):
    return environment().from_string(source)


def render(source, variables):
    """The text, or an exception."""
    try:
        return compiled(source).render(**variables)
    except Exception as error:  # whatever Python raises is a refusal of ours
        return error


def fnv(data):
    digest = 0xCBF29CE484222325
    for byte in data:
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return digest


def variables_of(conversation):
    """What apply_chat_template gives to a template."""
    return {"bos_token": "<BOS>", "eos_token": "<EOS>", "messages": conversation["messages"],
            "tools": conversation.get("tools"), "documents": conversation.get("documents"),
            "add_generation_prompt": conversation.get("add_generation_prompt", True),
            **conversation.get("variables", {})}


class Peer:
    """A program of ours to compare with at once."""

    def __init__(self, path):
        self.path, self.differ, self.same = path, 0, 0

    def check(self, name, source, variables, want):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "t").write_bytes(source.encode())
            (Path(folder) / "v").write_text(json.dumps(variables, ensure_ascii=False))
            done = subprocess.run([self.path, f"{folder}/t", f"{folder}/v"], capture_output=True)
        got = done.stdout.decode() if done.returncode == 0 else done.stderr.decode().strip()
        if isinstance(want, Exception) != (done.returncode in (1, 2)) or (isinstance(want, str) and got != want):
            self.differ += 1
            print(f"DIFFERS {name}\n  jinja2: {want!r}\n  rung:   {got!r}")
        else:
            self.same += 1
            if isinstance(want, Exception):
                print(f"  both refuse {name}: {str(want)[:70]!r} | {got[:150]!r}")


def record_fixtures(peer):
    conversations = json.loads((FOLDER / "conversations.json").read_text())
    lines, raised = [], 0
    for path in sorted((models.model_path("llama-cpp-src") / "vendor/llama.cpp/models/templates").glob("*.jinja")):
        source, digests = path.read_bytes().decode(), []
        for conversation in conversations:
            variables = variables_of(conversation)
            text = render(source, variables)
            raised += isinstance(text, Exception)
            digests.append("-" if isinstance(text, Exception) else "%016x" % fnv(text.encode()))
            if peer:
                peer.check(f"{path.name} {conversation['name']}", source, variables, text)
        if set(digests) == {"-"}:
            print(f"{path.name}: no conversation renders")
        lines.append(" ".join([path.name, *digests]) + "\n")
    (FOLDER / "expect.txt").write_text("".join(lines))
    print(f"{len(lines)} templates, {len(conversations)} conversations, {raised} texts raise")


def record_pieces(peer):
    variables = json.loads((FOLDER / "variables.json").read_text())
    out = []
    for source in (FOLDER / "pieces.txt").read_text().split("\n---\n"):
        text = render(source, variables)
        out.append(None if isinstance(text, Exception) else text)
        if peer:
            peer.check(repr(source), source, variables, text)
    (FOLDER / "pieces.json").write_text("[\n" + ",\n".join(json.dumps(t, ensure_ascii=False) for t in out) + "\n]\n")
    print(f"{len(out)} pieces, {out.count(None)} raise")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rung", default="")
    options = parser.parse_args()
    peer = Peer(options.rung) if options.rung else None
    record_pieces(peer)
    record_fixtures(peer)
    if peer:
        print(f"{peer.same} the same, {peer.differ} differ")
        sys.exit(peer.differ != 0)


if __name__ == "__main__":
    main()
