#!/usr/bin/env python3
"""Record what structured ops must give, for tests/ops/test_structured_golden.c.

    record_structured.py

Writes tests/ops/data_structured/*.txt. Every file is made from a seed of its own, so that one can change without the
others.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

from oracle.structured_attention import attention_cases, kv_cases, ragged_cases
from oracle.structured_case import write
from oracle.structured_control import control_cases, random_cases
from oracle.structured_products import matmul_cases, positions_cases
from oracle.structured_signals import detection_cases, integer_cases, recurrent_cases, resize_cases, transform_cases
from oracle.structured_tensors import index_cases, spatial_cases

GROUPS = {"matmul": matmul_cases, "positions": positions_cases, "kv": kv_cases, "index": index_cases,
          "spatial": spatial_cases, "attention": attention_cases, "control": control_cases, "random": random_cases, "ragged": ragged_cases,
          "resize": resize_cases, "recurrent": recurrent_cases, "detection": detection_cases, "transform": transform_cases, "integer": integer_cases}

if __name__ == "__main__":
    for group, cases in GROUPS.items():
        write(group, list(cases()))
