# SPDX-License-Identifier: MIT
"""Numbers with their spread, and what bounds them."""
import json
from pathlib import Path
from statistics import median
from typing import NamedTuple


class Spread(NamedTuple):
    low: float
    middle: float
    high: float
    count: int

    @staticmethod
    def of(values):
        return Spread(min(values), median(values), max(values), len(values)) if values else None


class Shape:
    """What one run over a model costs at least, from the tensors and metadata of its file."""

    def __init__(self, path):
        from gguf import GGUFReader  # of the virtual environment
        reader = GGUFReader(path)
        tensors = {tensor.name: tensor for tensor in reader.tensors}
        family = str(bytes(reader.fields["general.architecture"].parts[-1]), "utf-8")

        def number(key, otherwise=0):
            field = reader.fields.get("%s.%s" % (family, key))
            return int(field.parts[-1][0]) if field else otherwise

        self.layers = number("block_count")
        heads = number("attention.head_count")
        self.kv_heads = number("attention.head_count_kv", heads)
        self.head_dim = number("attention.key_length", number("embedding_length") // heads)
        self.heads = heads
        self.window = number("attention.sliding_window")
        self.pattern = 6 if self.window else 0  # every sixth layer of Gemma 3 sees everything
        head = "output.weight" if "output.weight" in tensors else "token_embd.weight"
        self.head_products = int(tensors[head].n_elements)
        self.layer_products = sum(int(t.n_elements) for name, t in tensors.items() if name.startswith("blk.") and len(t.shape) == 2)
        # An embedding that is no output matrix as well is only read for the tokens that come.
        self.weight_bytes = sum(int(t.n_bytes) for name, t in tensors.items() if name == head or name != "token_embd.weight")

    def seen(self, position):
        """Positions that a row at `position` reads, summed over the layers."""
        if not self.window:
            return self.layers * (position + 1)
        wide = self.layers // self.pattern
        return wide * (position + 1) + (self.layers - wide) * min(position + 1, self.window)

    def prompt_operations(self, tokens):
        """Multiplications and additions; logits of the last row only."""
        attention = sum(self.seen(position) for position in range(tokens)) * self.heads * self.head_dim * 2
        return 2.0 * (self.layer_products * tokens + self.head_products + attention)

    def decode_bytes(self, tokens, sequences, depth, kv_bytes=2):
        """Bytes read by `tokens` steps of all sequences: weights once a step, keys and values of each."""
        seen = sum(self.seen(depth + step) for step in range(tokens))
        return float(self.weight_bytes) * tokens + 2.0 * seen * self.kv_heads * self.head_dim * kv_bytes * sequences


class EncoderShape:
    """The same of a BERT's folder."""

    def __init__(self, folder):
        config = json.loads((Path(folder) / "config.json").read_text())
        self.layers, self.width, self.inner = config["num_hidden_layers"], config["hidden_size"], config["intermediate_size"]
        self.products = self.layers * (4 * self.width * self.width + 2 * self.width * self.inner)
        self.weight_bytes = 4.0 * self.products  # all layers; of the embedding only the rows of the tokens

    def operations(self, texts, length):
        """Multiplications and additions of all matrix products and of attention."""
        return 2.0 * texts * length * (self.products + 2 * self.layers * length * self.width)
