#!/usr/bin/env python3
"""Write the tiny random models of both families, and what the oracle says about them.

    tiny.py            writes tests/models/tiny/{llama,gemma3}.gguf, two prompts each, full logits

Small enough to commit and to run thousands of times (fuzzing, failing the n-th allocation), yet they have what the real
ones have: grouped heads, block types of every kind that the real models use and more, a valid tokeniser of each kind, and
for Gemma a window of 8 that prompts outgrow. Seeded: a second run writes the same bytes.
"""
import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import quantize

from oracle.families import Model
from oracle.idfile import write_ids

TINY = Path(__file__).resolve().parents[2] / "tests" / "models" / "tiny"
WIDTH, FEED_FORWARD, HEADS, KEY_HEADS, LAYERS = 64, 256, 4, 2, 3
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6  # tokenizer.ggml.token_type
TRAINING_TEXT = ("the cat sat on the mat and then the other cats went to the station in the rain; there is nothing that a cat "
                 "on a train wants more than the warm seat near the window, and so they sat there and saw the trees")
PROMPTS = {
    "llama": {"a": "<|im_start|>user\nthe cat<|im_end|>\n", "b": "The other train, 1984: naïve cats sat on 37 mats."},
    "gemma3": {"a": "<start_of_turn>the cat\n\n", "b": "The other train, 1984: naïve cats  sat on the mats"},
}

# Block types of each layer's matrices: q, k, v, output, gate, up, down. Layer 1 has q, k, v and gate, up of one type
# each, so that merging them is exercised; `down` has rows of 256, which the types with blocks of 256 need.
LAYER_TYPES = {
    "llama": [
        (Type.Q8_0, Type.Q4_0, Type.F16, Type.F32, Type.Q4_1, Type.Q5_0, Type.Q4_K),
        (Type.Q4_1, Type.Q4_1, Type.Q4_1, Type.Q8_0, Type.Q4_0, Type.Q4_0, Type.Q6_K),
        (Type.Q5_1, Type.Q5_1, Type.Q8_0, Type.BF16, Type.Q8_0, Type.Q8_0, Type.Q5_K),
    ],
    "gemma3": [
        (Type.Q5_0, Type.Q5_0, Type.Q8_0, Type.Q4_0, Type.Q5_0, Type.Q5_0, Type.Q6_K),
        (Type.Q4_0, Type.Q4_0, Type.Q4_0, Type.F16, Type.Q8_0, Type.Q4_1, Type.Q4_K),
        (Type.F32, Type.F16, Type.BF16, Type.Q5_1, Type.F16, Type.F16, Type.Q5_0),
    ],
}


def k_quant(rng, rows, columns, kind, spread):
    """Random blocks of a type the package cannot quantise to: random codes under small half-precision scales.

    All codes and 6-bit scales occur; `spread` is about the standard deviation of the values.
    """
    blocks = rows * columns // 256

    def half(values):
        return values.astype("<f2").view(np.uint8).reshape(blocks, 2)

    def codes(size):
        return rng.integers(0, 256, (blocks, size), dtype=np.uint8)
    if kind == Type.Q6_K:   # ql[128] qh[64] scales[16] int8, d: value = d * scale * (q - 32)
        scales = rng.integers(-64, 64, (blocks, 16)).astype(np.int8).view(np.uint8)
        d = spread / (37.0 * 18.5) * rng.uniform(0.7, 1.3, blocks)
        parts = [codes(128), codes(64), scales, half(d)]
    else:                   # d, dmin, scales[12], (qh[32]), qs[128]: value = d * scale * q - dmin * min
        top = 31 if kind == Type.Q5_K else 15
        d = spread / (32.0 * top / 3.0) * rng.uniform(0.7, 1.3, blocks)
        dmin = d * top / 2.0
        parts = [half(d), half(dmin), codes(12)] + ([codes(32)] if kind == Type.Q5_K else []) + [codes(128)]
    return np.concatenate(parts, axis=1).reshape(rows, -1)


def matrix(rng, rows, columns, kind, gain=1.0):
    """A random weight [rows, columns] whose product keeps the size of its input, times `gain`; as stored bytes."""
    spread = gain / np.sqrt(columns)
    if kind in (Type.Q4_K, Type.Q5_K, Type.Q6_K):
        return k_quant(rng, rows, columns, kind, spread)
    return quantize(rng.normal(0.0, spread, (rows, columns)).astype(np.float32), kind)


class Writer:
    """GGUFWriter with the few calls we need."""

    def __init__(self, path, architecture):
        self.writer, self.architecture = gguf.GGUFWriter(str(path), architecture), architecture

    def number(self, key, value):
        key = "%s.%s" % (self.architecture, key)
        (self.writer.add_float32 if isinstance(value, float) else self.writer.add_uint32)(key, value)

    def tensor(self, name, data, kind=Type.F32):
        self.writer.add_tensor(name, data, raw_dtype=kind)

    def finish(self):
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def norm(rng, size):
    return rng.uniform(0.6, 1.4, size).astype(np.float32)


def write_layers(writer, rng, family, head_width):
    for layer, (q, k, v, output, gate, up, down) in enumerate(LAYER_TYPES[family]):
        prefix = "blk.%d." % layer

        def weight(name, rows, columns, kind, gain=1.0):
            writer.tensor(prefix + name + ".weight", matrix(rng, rows, columns, kind, gain), kind)
        for name in ["attn_norm", "ffn_norm"] + (["post_attention_norm", "post_ffw_norm"] if family == "gemma3" else []):
            writer.tensor(prefix + name + ".weight", norm(rng, WIDTH))
        if family == "gemma3":
            for name in ("attn_q_norm", "attn_k_norm"):
                writer.tensor(prefix + name + ".weight", norm(rng, head_width))
        weight("attn_q", HEADS * head_width, WIDTH, q, 1.5)
        weight("attn_k", KEY_HEADS * head_width, WIDTH, k, 1.5)
        weight("attn_v", KEY_HEADS * head_width, WIDTH, v)
        weight("attn_output", WIDTH, HEADS * head_width, output)
        weight("ffn_gate", FEED_FORWARD, WIDTH, gate)
        weight("ffn_up", FEED_FORWARD, WIDTH, up)
        weight("ffn_down", WIDTH, FEED_FORWARD, down)


def byte_alphabet():
    """GPT-2's map from bytes to printable characters: printable ones stand for themselves, the rest follow 255."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table, extra = {}, 0
    for byte in range(256):
        if byte in printable:
            table[byte] = chr(byte)
        else:
            table[byte] = chr(256 + extra)
            extra += 1
    return table


def train_merges(words, count):
    """Byte pair encoding (Sennrich et al. 2016) on a list of symbol sequences; the most frequent pairs, in order."""
    words, merges = [list(word) for word in words], []
    while len(merges) < count:
        pairs = Counter(pair for word in words for pair in zip(word, word[1:]))
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for word in words:
            index = 0
            while index + 1 < len(word):
                if (word[index], word[index + 1]) == best:
                    word[index:index + 2] = ["".join(best)]
                index += 1
    return merges


def write_llama_tokeniser(writer):
    """Byte-level BPE with the pre-tokeniser of SmolLM2; returns the vocabulary's size."""
    alphabet = byte_alphabet()
    words = [[alphabet[byte] for byte in (word if index == 0 else " " + word).encode()]
             for index, word in enumerate(TRAINING_TEXT.split(" "))]
    merges = train_merges(words, 48)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens = special + [alphabet[byte] for byte in range(256)] + ["".join(pair) for pair in merges]
    w = writer.writer
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    w.add_token_list(tokens)
    w.add_token_types([CONTROL] * len(special) + [NORMAL] * (len(tokens) - len(special)))
    w.add_token_merges([" ".join(pair) for pair in merges])
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    w.add_pad_token_id(2)
    w.add_add_space_prefix(False)
    w.add_add_bos_token(False)
    w.add_chat_template("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
                        "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
                        "{{ '<|im_start|>assistant\n' }}{% endif %}")
    return len(tokens)


def write_gemma3_tokeniser(writer):
    """SentencePiece BPE with byte fallback, laid out as Gemma's; returns the vocabulary's size."""
    words = [list("▁" + word) for word in TRAINING_TEXT.split(" ")]
    pieces = ["".join(pair) for pair in train_merges(words, 36)]
    letters = ["▁"] + sorted({letter for letter in TRAINING_TEXT if letter != " "} | set("Tm.,:"))
    tokens, scores, types = [], [], []

    def add(texts, kind, score):
        for text in texts:
            tokens.append(text)
            types.append(kind)
            scores.append(score(len(tokens)))
    add(["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"], CONTROL, lambda n: -1000.0)
    add(["\n", "\n\n", "  ", "   "], USER_DEFINED, lambda n: -1000.0)
    add(["<0x%02X>" % byte for byte in range(256)], BYTE, lambda n: 0.0)
    first = len(tokens) + 1
    add(pieces + letters, NORMAL, lambda n: float(first - n))
    w = writer.writer
    w.add_tokenizer_model("llama")
    w.add_tokenizer_pre("default")
    w.add_token_list(tokens)
    w.add_token_scores(scores)
    w.add_token_types(types)
    w.add_bos_token_id(2)
    w.add_eos_token_id(1)
    w.add_unk_token_id(3)
    w.add_pad_token_id(0)
    w.add_add_bos_token(True)
    w.add_add_eos_token(False)
    w.add_add_space_prefix(False)
    return len(tokens)


def write_model(family, path):
    rng = np.random.default_rng({"llama": 1, "gemma3": 2}[family])
    writer = Writer(path, family)
    writer.writer.add_name("Tiny random %s for tests" % family)
    writer.number("context_length", 512)
    writer.number("embedding_length", WIDTH)
    writer.number("block_count", LAYERS)
    writer.number("feed_forward_length", FEED_FORWARD)
    writer.number("attention.head_count", HEADS)
    writer.number("attention.head_count_kv", KEY_HEADS)
    if family == "llama":
        head_width = WIDTH // HEADS
        writer.number("attention.layer_norm_rms_epsilon", 1e-5)
        writer.number("rope.dimension_count", head_width)
        writer.number("rope.freq_base", 10000.0)
        vocabulary = write_llama_tokeniser(writer)
        writer.number("vocab_size", vocabulary)
    else:
        head_width = 32  # Gemma's head width is not width / heads
        writer.number("attention.layer_norm_rms_epsilon", 1e-6)
        writer.number("attention.key_length", head_width)
        writer.number("attention.value_length", head_width)
        writer.number("rope.freq_base", 1000000.0)
        writer.number("attention.sliding_window", 8)
        writer.number("attention.sliding_window_pattern", 3)  # layers 0 and 1 slide, layer 2 is global
        vocabulary = write_gemma3_tokeniser(writer)
    writer.tensor("token_embd.weight", matrix(rng, vocabulary, WIDTH, Type.Q8_0, 2.4), Type.Q8_0)
    write_layers(writer, rng, family, head_width)
    writer.tensor("output_norm.weight", norm(rng, WIDTH))
    writer.finish()


def record(family, path):
    """Ids of the two prompts (from llama.cpp's tokeniser) and the oracle's logits for them."""
    from oracle.peer import Peer
    model, peer = Model(str(path)), Peer(path, vocabulary_only=True)
    for name, text in PROMPTS[family].items():
        ids = peer.tokenize(text.encode(), special=True, add_special=True)
        logits = model.logits(model.hidden(ids))
        (TINY / ("%s.%s.txt" % (family, name))).write_bytes(text.encode())
        write_ids(TINY / ("%s.%s.ids" % (family, name)), ids)
        np.save(TINY / ("%s.%s.logits.npy" % (family, name)), logits.astype("<f8"))
        print("%s %s: %d positions, logits %.2f .. %.2f, standard deviation %.2f" % (
            family, name, len(ids), logits.min(), logits.max(), logits.std()))


def main():
    argparse.ArgumentParser(description="Write the tiny random models and the oracle's logits for them.").parse_args()
    TINY.mkdir(parents=True, exist_ok=True)
    for family in LAYER_TYPES:
        path = TINY / (family + ".gguf")
        write_model(family, path)
        print("%s: %d bytes" % (path.name, path.stat().st_size))
        record(family, path)


if __name__ == "__main__":
    main()
