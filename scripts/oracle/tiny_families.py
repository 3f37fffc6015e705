#!/usr/bin/env python3
"""Write a tiny random model of each family and of each scaling of rotary positions, as a GGUF file and as a Hugging Face
folder with the same numbers, and the oracle's logits for both.

    tiny_families.py [VARIANT...]           writes tests/models/tiny/families/VARIANT/
    tiny_families.py --peer [VARIANT...]    compares what is there with llama.cpp: f32, within 1e-3 of the largest logit

VARIANT/model.gguf (matrices in bf16, as llama.cpp's converter names and orders them), config.json and model.safetensors
(bf16, as Hugging Face's libraries write them), logits.npy (`<f8` [40, 61]). No tokeniser: prompt.ids are just ids.
"""
import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import gguf
import ml_dtypes
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import quantize
from safetensors.numpy import save

from oracle.families import Model, llama3_frequencies
from oracle.idfile import read_ids, write_ids
from oracle.tiny import TINY
from oracle.tiny_folders import Given, adjacent

FAMILIES = TINY / "families"
WIDTH, FEED_FORWARD, ROWS, PROMPT, CONTEXT = 32, 48, 61, 40, 256  # CONTEXT: of whoever runs them
SHARED = {"block_count": 2, "attention.head_count": 4, "attention.head_count_kv": 2, "attention.key_length": 8,
          "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 10000.0, "context_length": 512}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
WIDE = {"attention.head_count": 2, "attention.head_count_kv": 1, "attention.key_length": 16}  # more frequencies
SHORT = [1.0, 1.1, 1.25, 1.5]
LONG = [1.0, 1.5, 3.0, 6.0]


def longrope(original):
    scale = 512 / original
    own = {"rope_scaling": {"type": "longrope", "short_factor": SHORT, "long_factor": LONG},
           "original_max_position_embeddings": original, "sliding_window": None}
    return {"rope.scaling.original_context_length": original,
            "rope.scaling.attn_factor": math.sqrt(1.0 + math.log(scale) / math.log(original)) if scale > 1 else 1.0}, own


MIXTURE = {"attention.key_length": 16, "expert_used_count": 2}
# Of the experts of each layer: gate, up, down; a variant with them is a file alone.
QUANTS = [(Type.Q8_0, Type.Q4_1, Type.Q5_1), (Type.Q4_0, Type.Q4_0, Type.Q8_0)]


# Variant: architecture, parameters under GGUF's keys that differ from SHARED, keys of config.json (None: no folder).
VARIANTS = {
    "qwen2": ("qwen2", {"rope.freq_base": 1000000.0}, {"use_sliding_window": False, "sliding_window": 4096}),
    "qwen3": ("qwen3", {"attention.key_length": 16}, {"head_dim": 16, "attention_bias": False}),
    "llama-linear": ("llama", WIDE | {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
                     {"head_dim": 16, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    "llama-ntk": ("llama", WIDE | {"rope.scaling.type": "ntk", "rope.scaling.factor": 4.0},
                  {"head_dim": 16, "rope_scaling": {"type": "ntk", "factor": 4.0}}),
    "llama-llama3": ("llama", WIDE | {"rope.llama3": LLAMA3}, {"head_dim": 16, "rope_scaling": LLAMA3}),
    "llama-yarn": ("llama", WIDE | {"rope.scaling.type": "yarn", "rope.scaling.factor": 8.0,
                                    "rope.scaling.original_context_length": 64},
                   {"head_dim": 16, "rope_scaling": {"rope_type": "yarn", "factor": 8.0,
                                                     "original_max_position_embeddings": 64}}),
    "gemma2": ("gemma2", {"block_count": 3, "attention.key_length": 16, "attention.layer_norm_rms_epsilon": 1e-6,
                          "attention.sliding_window": 8, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 8.0},
               {"head_dim": 16, "hidden_activation": "gelu_pytorch_tanh", "hidden_act": "gelu_pytorch_tanh",
                "sliding_window": 8, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 2.0,
                "final_logit_softcapping": 8.0, "attention_bias": False}),
    "olmo2": ("olmo2", {"rope.freq_base": 500000.0}, {"attention_bias": False}),
    "smollm3": ("smollm3", {"block_count": 4}, {"no_rope_layers": [1, 1, 1, 0], "use_sliding_window": False,
                                                "no_rope_layer_interval": 4}),
    "phi3": ("phi3", *longrope(256)),
    "phi3-long": ("phi3", *longrope(64)),
    "phi3-window": ("phi3", {"attention.sliding_window": 8, "rope.dimension_count": 4},
                    {"sliding_window": 8, "partial_rotary_factor": 0.5, "rope_scaling": None}),
    "qwen3moe": ("qwen3moe", MIXTURE | {"expert_count": 6, "expert_feed_forward_length": 24},
                 {"model_type": "qwen3_moe", "head_dim": 16, "num_experts": 6, "num_experts_per_tok": 2,
                  "moe_intermediate_size": 24, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []}),
    "qwen3moe-quants": ("qwen3moe", MIXTURE | {"expert_count": 4, "expert_feed_forward_length": 64}, None),
}
BEFORE = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
BEHIND = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
MATRICES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
            "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
            "ffn_down": "mlp.down_proj"}
FUSED = {"attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj", "ffn_up": "mlp.gate_up_proj",
         "ffn_down": "mlp.down_proj"}
CLASSES = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3", "gemma2": "Gemma2", "olmo2": "Olmo2", "smollm3": "SmolLM3",
           "phi3": "Phi3", "qwen3moe": "Qwen3Moe"}


def parameters(variant):
    return SHARED | {"embedding_length": WIDTH, "feed_forward_length": FEED_FORWARD} | VARIANTS[variant][1]


def config(variant):
    """config.json."""
    family, _, own = VARIANTS[variant]
    get = parameters(variant)
    return {"architectures": [CLASSES[family] + "ForCausalLM"], "model_type": family, "hidden_size": WIDTH,
            "intermediate_size": FEED_FORWARD, "num_hidden_layers": get["block_count"],
            "num_attention_heads": get["attention.head_count"], "num_key_value_heads": get["attention.head_count_kv"],
            "max_position_embeddings": get["context_length"], "vocab_size": ROWS, "hidden_act": "silu",
            "rms_norm_eps": get["attention.layer_norm_rms_epsilon"], "rope_theta": get["rope.freq_base"],
            "tie_word_embeddings": family != "olmo2", "torch_dtype": "bfloat16"} | own


def tensors(variant):
    """The folder's tensors in bf16, and the same numbers under GGUF's names and in its order."""
    family, get = VARIANTS[variant][0], parameters(variant)
    rng = np.random.default_rng(list(variant.encode()))
    heads, key_heads, head = get["attention.head_count"], get["attention.head_count_kv"], get["attention.key_length"]
    offset = 1.0 if family == "gemma2" else 0.0
    own, ours = {}, {}

    def add(name, theirs, values, order=0, plus=0.0):
        values = values.astype(ml_dtypes.bfloat16)
        own[theirs] = values
        exact = values.astype(np.float64) + plus
        ours[name] = adjacent(exact, order) if order else exact

    def matrix(rows, columns, gain=1.0):
        return rng.normal(0.0, gain / np.sqrt(columns), (rows, columns))

    def norm(name, theirs, size):
        add(name + ".weight", theirs + ".weight", rng.uniform(0.6, 1.4, size) - offset, plus=offset)
    add("token_embd.weight", "model.embed_tokens.weight", matrix(ROWS, WIDTH, 2.4))
    q, kv = heads * head, key_heads * head
    shapes = {"attn_q": (q, WIDTH), "attn_k": (kv, WIDTH), "attn_v": (kv, WIDTH), "attn_output": (WIDTH, q),
              "ffn_gate": (FEED_FORWARD, WIDTH), "ffn_up": (FEED_FORWARD, WIDTH), "ffn_down": (WIDTH, FEED_FORWARD)}

    def experts(mine, theirs):
        count, rows = get["expert_count"], get["expert_feed_forward_length"]
        add(mine + "ffn_gate_inp.weight", theirs + "mlp.gate.weight", matrix(count, WIDTH, 2.0))
        for name in ("gate", "up", "down"):
            shape = (WIDTH, rows) if name == "down" else (rows, WIDTH)
            for expert in range(count):
                add("part", theirs + "mlp.experts.%d.%s_proj.weight" % (expert, name), matrix(*shape))
                ours.setdefault(mine + "ffn_%s_exps.weight" % name, []).append(ours.pop("part"))
    norms = BEFORE
    if family == "phi3":
        shapes |= {"attn_qkv": (q + 2 * kv, WIDTH), "ffn_up": (2 * FEED_FORWARD, WIDTH)}
    elif family == "olmo2":
        norms = BEHIND
    elif family == "gemma2":
        norms = BEFORE | {"ffn_norm": "pre_feedforward_layernorm"} | BEHIND
    for layer in range(get["block_count"]):
        mine, theirs = "blk.%d." % layer, "model.layers.%d." % layer
        for name, other in norms.items():
            norm(mine + name, theirs + other, WIDTH)
        if family == "qwen3moe":
            experts(mine, theirs)
        if family in ("qwen3", "qwen3moe", "olmo2"):
            whole = family == "olmo2"
            norm(mine + "attn_q_norm", theirs + "self_attn.q_norm", q if whole else head)
            norm(mine + "attn_k_norm", theirs + "self_attn.k_norm", kv if whole else head)
        for name, other in (FUSED if family == "phi3" else MATRICES).items():
            if family == "qwen3moe" and name.startswith("ffn"):
                continue
            permuted = {"attn_q": heads, "attn_k": key_heads}.get(name, 0) if family in ("llama", "smollm3") else 0
            gain = 1.5 if name in ("attn_q", "attn_k", "attn_qkv") else 1.0
            add(mine + name + ".weight", theirs + other + ".weight", matrix(*shapes[name], gain), permuted)
            if family == "qwen2" and name in ("attn_q", "attn_k", "attn_v"):
                add(mine + name + ".bias", theirs + other + ".bias", rng.normal(0.0, 0.5, shapes[name][0]))
    norm("output_norm", "model.norm", WIDTH)
    if family == "olmo2":
        add("output.weight", "lm_head.weight", matrix(ROWS, WIDTH, 2.4))
    if "rope.scaling.attn_factor" in get:
        ours["rope_factors_short.weight"], ours["rope_factors_long.weight"] = np.array(SHORT), np.array(LONG)
    return own, {name: np.stack(values) if isinstance(values, list) else values for name, values in ours.items()}


def write_gguf(path, variant, ours):
    family, get = VARIANTS[variant][0], dict(parameters(variant))
    writer = gguf.GGUFWriter(str(path), family)
    writer.add_name("Tiny random %s for tests" % variant)
    head = get["attention.key_length"]
    get |= {"attention.value_length": head, "vocab_size": ROWS,
            "rope.dimension_count": get.get("rope.dimension_count", head)}
    if get.get("rope.scaling.type") == "ntk":  # which no file says: its base is another one
        get["rope.freq_base"] *= get.pop("rope.scaling.factor") ** (head / (head - 2))
        del get["rope.scaling.type"]
    extra, change = {}, get.pop("rope.llama3", None)
    if change:
        plain = get["rope.freq_base"] ** (-np.arange(0, head, 2, dtype=np.float64) / head)
        extra["rope_freqs.weight"] = plain / llama3_frequencies(plain, change)
    for key, value in get.items():
        add = {str: writer.add_string, float: writer.add_float32, int: writer.add_uint32}[type(value)]
        add("%s.%s" % (family, key), value)
    writer.add_tokenizer_model("none")
    for name, values in (ours | extra).items():
        if values.ndim == 1 or name.endswith("ffn_gate_inp.weight"):
            writer.add_tensor(name, values.astype(np.float32))
        elif values.ndim == 3 and VARIANTS[variant][2] is None:
            kind = QUANTS[int(name.split(".")[1])][("gate", "up", "down").index(name.split("_")[1])]
            writer.add_tensor(name, quantize(values.astype(np.float32), kind), raw_dtype=kind)
        else:
            data = values.astype(ml_dtypes.bfloat16)
            writer.add_tensor(name, data.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write(variant):
    folder = FAMILIES / variant
    folder.mkdir(parents=True, exist_ok=True)
    own, ours = tensors(variant)
    write_gguf(folder / "model.gguf", variant, ours)
    if VARIANTS[variant][2] is None:
        model = Model(str(folder / "model.gguf"), CONTEXT)
    else:
        model = Model(Given(VARIANTS[variant][0], parameters(variant), ours), CONTEXT)
        (folder / "config.json").write_text(json.dumps(config(variant), indent=2) + "\n")
        (folder / "model.safetensors").write_bytes(save(own, metadata={"format": "pt"}))
    logits = model.logits(model.hidden(read_ids(FAMILIES / "prompt.ids")))
    np.save(folder / "logits.npy", logits.astype("<f8"))
    print("%s: %d bytes, logits %.2f .. %.2f, standard deviation %.2f" % (
        variant, (folder / "model.gguf").stat().st_size, logits.min(), logits.max(), logits.std()))


def compare(variant):
    """Is llama.cpp, on the file with its weights as F32, where the recorded logits are?"""
    from oracle.agree import write_as_f32
    from oracle.peer import Peer
    exact = np.load(FAMILIES / variant / "logits.npy")
    with tempfile.TemporaryDirectory(prefix="rung-families-") as folder:
        widened = str(Path(folder) / "f32.gguf")
        write_as_f32(str(FAMILIES / variant / "model.gguf"), widened)
        peer = Peer(widened)
        logits = peer.logits(read_ids(FAMILIES / "prompt.ids"), "f32", flash=False)
        peer.close()
    difference = np.abs(exact - logits).max() / np.abs(exact).max()
    print("%-14s llama.cpp differs by %.2g of the largest logit%s" % (
        variant, difference, "" if difference <= 1e-3 else "  BEYOND 1e-3"))
    return difference <= 1e-3


def main():
    parser = argparse.ArgumentParser(description="Write tiny models of all families, or compare them with llama.cpp.")
    parser.add_argument("variant", nargs="*", help="default: all (%s)" % ", ".join(VARIANTS))
    parser.add_argument("--peer", action="store_true", help="compare what is there with llama.cpp")
    arguments = parser.parse_args()
    chosen = arguments.variant or list(VARIANTS)
    if arguments.peer and not arguments.variant:
        chosen.remove("phi3-window")  # llama.cpp reads the window of this family and does not use it
    if arguments.peer:
        return 0 if all([compare(variant) for variant in chosen]) else 1
    FAMILIES.mkdir(parents=True, exist_ok=True)
    write_ids(FAMILIES / "prompt.ids", np.random.default_rng(6).integers(0, ROWS, PROMPT))
    for variant in chosen:
        write(variant)
    return 0


if __name__ == "__main__":
    sys.exit(main())
