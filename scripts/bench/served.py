# SPDX-License-Identifier: MIT
"""The other end of bench/serve.h and serve.py: engines that stay loaded while others take their turn."""
import json
import os
import subprocess
import tempfile
import threading

from bench.process import TIMEOUT, EngineError


class Served:
    """One process. ask("time", 0.5) gives what it answers; ends with the block."""

    def __init__(self, command, env=None):
        self.command = [str(word) for word in command]
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        bufsize=1, env={**os.environ, **(env or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        timer = threading.Timer(30, self.process.kill)
        timer.start()
        self.process.wait()
        timer.cancel()
        self.process.stdout.close()
        self.errors.close()

    def _failed(self, what):
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace")[-2000:]
        raise EngineError("%s: %s\n%s" % (" ".join(self.command), what, said))

    def ask(self, *words):
        timer = threading.Timer(TIMEOUT, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            self._failed("ended")
        found = json.loads(line)
        if "error" in found:
            self._failed(found["error"])
        return found

    def peak(self):
        """Most resident memory, without what a peer's interpreter held before it loaded the engine."""
        found = self.ask("peak")
        return found["peak"] - found["before"]
