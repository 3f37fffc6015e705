#!/usr/bin/env python3
"""Logits of every position, float64, as a .npy file [positions, vocabulary].

    logits.py MODEL.gguf --ids FILE -o OUT.npy
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import numpy as np

from oracle.families import Model
from oracle.idfile import read_ids


def main():
    parser = argparse.ArgumentParser(description="Write the oracle's logits of every position.",
                                     epilog="example: logits.py MODEL.gguf --ids prompt.ids -o logits.npy")
    parser.add_argument("model")
    parser.add_argument("--ids", required=True, help="file of token ids")
    parser.add_argument("-o", "--output", required=True, help=".npy file to write")
    arguments = parser.parse_args()
    model = Model(arguments.model)
    np.save(arguments.output, model.logits(model.hidden(read_ids(arguments.ids))))


if __name__ == "__main__":
    main()
