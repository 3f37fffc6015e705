"""Reference results for language models, computed in float64 with numpy.

The forward passes in `families` are written from the papers and configurations, for clarity and not for speed; weights are
dequantised by the `gguf` package. `logits`, `record`, `compare`, `kl`, `tiny` and `record_tokens` are commands; each runs
as `python3 scripts/oracle/NAME.py`, which enters the pinned environment by itself, or as `python -m oracle.NAME` from there.
"""
