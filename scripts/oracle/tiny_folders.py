#!/usr/bin/env python3
"""Write tiny random model folders as Hugging Face's libraries lay them out, and what the oracle says about them.

    tiny_folders.py    writes tests/models/tiny/{llama,gemma3}-{f32,f16,bf16,shards}/ and FAMILY-FORM.logits.npy

Without a tokeniser: FAMILY-folder.ids are just ids. The numbers are rounded to the type first and the oracle (families.py) gets
the rounded ones, under GGUF's names and in GGUF's order: rows of queries and keys permuted
for neighbours, "1 +" added to Gemma's norms. `shards` is f32 in two files with an index; llama's has a head of its own there
and the frequencies of Llama 3.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import ml_dtypes
import numpy as np
from safetensors.numpy import save

from oracle.families import Model
from oracle.idfile import write_ids
from oracle.tiny import TINY

TYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "shards": np.float32}
TEXT_TYPE = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "shards": "float32"}
WIDTH, FEED_FORWARD, HEADS, KEY_HEADS, LAYERS, ROWS, PROMPT = 32, 80, 4, 2, 3, 61, 40
HEAD_WIDTH = {"llama": WIDTH // HEADS, "gemma3": 16}
NAMES = {  # GGUF's name: the folder's
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
NORMS = {
    "llama": {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"},
    "gemma3": {"attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm",
               "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
               "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"},
}


def config(family, form):
    """config.json, and the oracle's parameters for it."""
    own = {"num_hidden_layers": LAYERS, "hidden_size": WIDTH, "intermediate_size": FEED_FORWARD, "num_attention_heads": HEADS,
           "num_key_value_heads": KEY_HEADS, "max_position_embeddings": 512, "vocab_size": ROWS,
           "torch_dtype": TEXT_TYPE[form], "attention_bias": False}
    gguf = {"block_count": LAYERS, "embedding_length": WIDTH, "attention.head_count": HEADS,
            "attention.head_count_kv": KEY_HEADS}
    if family == "llama":
        own |= {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-05,
                "rope_theta": 10000.0, "rope_scaling": None, "tie_word_embeddings": form != "shards"}
        gguf |= {"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 10000.0}
        if form == "shards":
            own["rope_scaling"] = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 8.0,
                                   "original_max_position_embeddings": 256}
            gguf["rope.llama3"] = own["rope_scaling"]
        return own, gguf
    # Layer 1 is the global one, as no pattern would have it; queries are scaled by another number than the head's width.
    own |= {"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "hidden_activation": "gelu_pytorch_tanh",
            "rms_norm_eps": 1e-06, "head_dim": 16, "rope_theta": 500000.0, "rope_local_base_freq": 20000,
            "rope_scaling": {"rope_type": "linear", "factor": 4.0}, "query_pre_attn_scalar": 20, "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "final_logit_softcapping": None,
            "use_bidirectional_attention": False}
    gguf |= {"attention.layer_norm_rms_epsilon": 1e-6, "attention.key_length": 16, "rope.freq_base": 500000.0,
             "rope.freq_base_swa": 20000.0, "rope.scaling.factor": 4.0, "attention.sliding_window": 8,
             "attention.query_scale": 20.0, "attention.global_layers": [1]}
    return own, gguf


def adjacent(rows, heads):
    """The order of GGUF for Llama: row i of a head's first half beside row i of the second."""
    out, columns = rows.shape
    return rows.reshape(heads, 2, out // heads // 2, columns).swapaxes(1, 2).reshape(out, columns)


def tensors(family, form):
    """The folder's tensors, and the oracle's in float64."""
    rng = np.random.default_rng([sum(family.encode()), sorted(TYPES).index(form)])
    own, gguf = {}, {}

    def add(name, theirs, values, heads=0, offset=0.0):
        values = values.astype(TYPES[form])
        own[theirs + ".weight"] = values
        exact = values.astype(np.float64) + offset
        gguf[name + ".weight"] = adjacent(exact, heads) if heads else exact

    def matrix(rows, columns, gain=1.0):
        return rng.normal(0.0, gain / np.sqrt(columns), (rows, columns))

    def norm(size):  # Gemma's are kept as differences from 1
        return rng.uniform(0.6, 1.4, size) - (1.0 if family == "gemma3" else 0.0)
    offset, head, llama = (1.0 if family == "gemma3" else 0.0), HEAD_WIDTH[family], family == "llama"
    shapes = {"attn_q": (HEADS * head, WIDTH), "attn_k": (KEY_HEADS * head, WIDTH), "attn_v": (KEY_HEADS * head, WIDTH),
              "attn_output": (WIDTH, HEADS * head), "ffn_gate": (FEED_FORWARD, WIDTH), "ffn_up": (FEED_FORWARD, WIDTH),
              "ffn_down": (WIDTH, FEED_FORWARD)}
    add("token_embd", "model.embed_tokens", matrix(ROWS, WIDTH, 2.4))
    for layer in range(LAYERS):
        ours, theirs = "blk.%d." % layer, "model.layers.%d." % layer
        for name, other in NORMS[family].items():
            add(ours + name, theirs + other, norm(head if name.endswith(("q_norm", "k_norm")) else WIDTH), offset=offset)
        for name, other in NAMES.items():
            heads = {"attn_q": HEADS, "attn_k": KEY_HEADS}.get(name, 0) if llama else 0
            add(ours + name, theirs + other, matrix(*shapes[name], 1.5 if name in ("attn_q", "attn_k") else 1.0), heads)
    add("output_norm", "model.norm", norm(WIDTH), offset=offset)
    if llama and form == "shards":
        add("output", "lm_head", matrix(ROWS, WIDTH, 2.4))
    return own, gguf


class Given:
    """Parameters and tensors under GGUF's names, as families.py asks for them."""

    def __init__(self, architecture, parameters, arrays):
        self.architecture, self.parameters, self.arrays = architecture, parameters, arrays

    def parameter(self, key, default=None):
        value = self.parameters.get(key, default)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, name):
        return name in self.arrays

    def tensor(self, name):
        return self.arrays[name]

    def gather(self, name, indices):
        return self.arrays[name][np.asarray(indices)]

    def rows(self, name, first, last):
        return self.arrays[name][first:last]

    def row_count(self, name):
        return self.arrays[name].shape[0]


def write_tensors(folder, form, own):
    if form != "shards":
        (folder / "model.safetensors").write_bytes(save(own, metadata={"format": "pt"}))
        return
    names, weight_map = list(own), {}
    for part, chosen in enumerate((names[:len(names) // 2], names[len(names) // 2:]), 1):
        file = "model-%05d-of-00002.safetensors" % part
        (folder / file).write_bytes(save({name: own[name] for name in chosen}, metadata={"format": "pt"}))
        weight_map |= {name: file for name in chosen}
    index = {"metadata": {"total_size": sum(array.nbytes for array in own.values())}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


def main():
    for family in NORMS:
        ids = np.random.default_rng(len(family)).integers(0, ROWS, PROMPT)
        write_ids(TINY / (family + "-folder.ids"), ids)
        for form in TYPES:
            folder = TINY / ("%s-%s" % (family, form))
            folder.mkdir(exist_ok=True)
            own, gguf = tensors(family, form)
            settings, parameters = config(family, form)
            (folder / "config.json").write_text(json.dumps(settings, indent=2) + "\n")
            write_tensors(folder, form, own)
            model = Model(Given(family, parameters, gguf))
            logits = model.logits(model.hidden(ids))
            np.save(TINY / ("%s-%s.logits.npy" % (family, form)), logits.astype("<f8"))
            print("%s: logits %.2f .. %.2f, standard deviation %.2f" % (folder.name, logits.min(), logits.max(), logits.std()))


if __name__ == "__main__":
    main()
