# SPDX-License-Identifier: MIT
"""A language model of SmolLM2's shape whose weights are made up: a GGUF file written with nothing but the standard library, so
that speed can be measured where there is no model. Every block has small scales, so that no number leaves its range."""
import random
import struct

WIDTH, FEED, LAYERS, HEADS, KV_HEADS, VOCABULARY, CONTEXT = 576, 1536, 30, 9, 3, 49152, 2048
F32, Q4_1, Q8_0 = 0, 3, 8
UINT32, FLOAT32, STRING, ARRAY, INT32 = 4, 6, 8, 9, 5
ALIGNMENT = 32


def _string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _half(value):
    return struct.pack("<e", value)


def _blocks(rng, kind, count):
    """So many elements of a type; a stretch of random blocks again and again."""
    if kind == F32:
        return struct.pack("<f", 1.0) * count
    if kind == Q4_1:
        piece = b"".join(_half(0.004) + _half(-0.03) + rng.randbytes(16) for _ in range(1009))
    else:
        piece = b"".join(_half(0.0004) + rng.randbytes(32) for _ in range(1009))
    size = count // 32 * (20 if kind == Q4_1 else 34)
    return (piece * (size // len(piece) + 1))[:size]


def _tensors():
    head = WIDTH // HEADS
    yield "token_embd.weight", Q8_0, (WIDTH, VOCABULARY)
    yield "output_norm.weight", F32, (WIDTH,)
    for layer in range(LAYERS):
        for name, kind, extent in (("attn_norm", F32, (WIDTH,)), ("attn_q", Q4_1, (WIDTH, WIDTH)), ("attn_k", Q4_1, (WIDTH, KV_HEADS * head)),
                                   ("attn_v", Q4_1, (WIDTH, KV_HEADS * head)), ("attn_output", Q4_1, (WIDTH, WIDTH)), ("ffn_norm", F32, (WIDTH,)),
                                   ("ffn_gate", Q4_1, (WIDTH, FEED)), ("ffn_up", Q4_1, (WIDTH, FEED)), ("ffn_down", Q4_1, (FEED, WIDTH))):
            yield "blk.%d.%s.weight" % (layer, name), kind, extent


def _characters():
    """The 256 characters that byte-level vocabularies write bytes with, and words of three behind them."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in printable]
    letters = [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(rest))]
    words = ("%s%s%s" % (letters[i // 4096 % 64], letters[i // 64 % 64], letters[i % 64]) for i in range(VOCABULARY))
    return (letters + list(words))[:VOCABULARY]


def _metadata():
    text = {"general.architecture": "llama", "general.name": "SmolLM2's shape", "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm"}
    numbers = {"block_count": LAYERS, "context_length": CONTEXT, "embedding_length": WIDTH, "feed_forward_length": FEED,
               "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "rope.dimension_count": WIDTH // HEADS, "vocab_size": VOCABULARY}
    out = [_string(key) + struct.pack("<I", STRING) + _string(value) for key, value in text.items()]
    out += [_string("llama." + key) + struct.pack("<II", UINT32, value) for key, value in numbers.items()]
    out += [_string("llama." + key) + struct.pack("<If", FLOAT32, value)
            for key, value in (("attention.layer_norm_rms_epsilon", 1e-5), ("rope.freq_base", 100000.0))]
    out += [_string("tokenizer.ggml.%s_token_id" % name) + struct.pack("<II", UINT32, 0) for name in ("bos", "eos")]
    out.append(_string("tokenizer.ggml.tokens") + struct.pack("<IIQ", ARRAY, STRING, VOCABULARY) + b"".join(map(_string, _characters())))
    out.append(_string("tokenizer.ggml.token_type") + struct.pack("<IIQ", ARRAY, INT32, VOCABULARY) + struct.pack("<i", 1) * VOCABULARY)
    out.append(_string("tokenizer.ggml.merges") + struct.pack("<IIQ", ARRAY, STRING, 0))
    return out


def write(path, seed=1):
    """Writes the file and returns its path."""
    rng, metadata, tensors = random.Random(seed), _metadata(), list(_tensors())
    data, infos, at = [], [], 0
    for name, kind, extent in tensors:
        count = 1
        for size in extent:
            count *= size
        infos.append(_string(name) + struct.pack("<I", len(extent)) + struct.pack("<%dQ" % len(extent), *extent) + struct.pack("<IQ", kind, at))
        block = _blocks(rng, kind, count)
        data.append(block + b"\0" * (-len(block) % ALIGNMENT))
        at += len(data[-1])
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + b"".join(metadata) + b"".join(infos)
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % ALIGNMENT))
        file.writelines(data)
    return path
