"""Run the command under test and read what it wrote."""
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from oracle.idfile import write_ids


def rung_logits(rung, model, ids, options):
    """Logits [positions, vocabulary] of `rung logits` for the ids, with further options such as --quant exact."""
    with tempfile.TemporaryDirectory(prefix="rung-logits-") as folder:
        ids_file, output = Path(folder) / "prompt.ids", Path(folder) / "logits.npy"
        write_ids(ids_file, ids)
        command = [str(rung), "logits", "-m", str(model), "--ids", str(ids_file), "-o", str(output), *options]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise SystemExit("%s\nexit code %d:\n%s" % (" ".join(command), done.returncode,
                                                        done.stderr.decode(errors="replace")))
        logits = np.load(output)
    if logits.ndim != 2 or logits.shape[0] != len(ids):
        raise SystemExit("rung logits wrote %s for %d ids" % (logits.shape, len(ids)))
    return logits
