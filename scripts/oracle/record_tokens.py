#!/usr/bin/env python3
"""Record what other tokenisers make of 10,000 random strings, for the C tests.

    record_tokens.py smollm2|gemma3 ...     llama.cpp's, from GGUF files
    record_tokens.py json                   Hugging Face's `tokenizers`, from tokenizer.json files

The second writes tests/tokens/json/*.bin: the strings once, and digests of ids and decoded texts for MiniLM and for each
file that make_tokenizers.py made. The first writes tests/tokens/MODEL.bin; tests/tokens/README.md describes it. Each record is checked against a second implementation
built from the same vocabulary (`tokenizers` for byte-level BPE, SentencePiece itself for Gemma); where the two disagree a
record is left out and another string drawn, and the count and some examples are printed.
"""
import argparse
import random
import struct
import sys
import time
import unicodedata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import models
from oracle.peer import Peer
from oracle.texts import random_text
from oracle.weights import Weights

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "tokens"
MAGIC, COUNT = b"RUNGTOK1", 10000
PARSE_SPECIAL, ADD_SPECIAL, ROUND_TRIPS = 1, 2, 4
CONTROL, USER_DEFINED = 3, 4  # tokenizer.ggml.token_type

class BytePairs:
    """The second opinion on SmolLM2: Hugging Face's `tokenizers` with the steps of the published configuration."""

    def __init__(self, weights):
        import tokenizers
        from tokenizers import decoders, pre_tokenizers
        tokens = weights.get("tokenizer.ggml.tokens")
        merges = [tuple(merge.split(" ")) for merge in weights.get("tokenizer.ggml.merges")]
        kinds = weights.get("tokenizer.ggml.token_type")
        self.special = {token: index for index, (token, kind) in enumerate(zip(tokens, kinds)) if kind == CONTROL}

        def make():
            made = tokenizers.Tokenizer(tokenizers.models.BPE(
                vocab={token: index for index, token in enumerate(tokens)}, merges=merges))
            made.pre_tokenizer = pre_tokenizers.Sequence(
                [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
            made.decoder = decoders.ByteLevel()
            return made
        self.plain, self.parsing = make(), make()
        self.parsing.add_special_tokens(list(self.special))

    def ids(self, text, flags):
        return (self.parsing if flags & PARSE_SPECIAL else self.plain).encode(text, add_special_tokens=False).ids


class Pieces:
    """The second opinion on Gemma: SentencePiece with a model made of the file's pieces, scores and types."""

    def __init__(self, weights):
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
        tokens, kinds = weights.get("tokenizer.ggml.tokens"), weights.get("tokenizer.ggml.token_type")
        self.special = {token: index for index, (token, kind) in enumerate(zip(tokens, kinds)) if kind == CONTROL}
        self.bos = weights.get("tokenizer.ggml.bos_token_id")
        unknown = weights.get("tokenizer.ggml.unknown_token_id")
        proto = sentencepiece_model_pb2.ModelProto()
        proto.trainer_spec.model_type = proto.trainer_spec.BPE
        proto.trainer_spec.byte_fallback = True
        proto.trainer_spec.unk_id, proto.trainer_spec.bos_id = unknown, self.bos
        proto.trainer_spec.eos_id = weights.get("tokenizer.ggml.eos_token_id")
        proto.trainer_spec.pad_id = weights.get("tokenizer.ggml.padding_token_id")
        proto.normalizer_spec.name = "identity"
        proto.normalizer_spec.add_dummy_prefix = False
        proto.normalizer_spec.remove_extra_whitespaces = False
        scores = weights.get("tokenizer.ggml.scores")
        for index, (token, kind, score) in enumerate(zip(tokens, kinds, scores)):
            # GGUF has the blanks of user-defined pieces as blanks, SentencePiece as U+2581 like everywhere else.
            text = token.replace(" ", "\u2581") if kind == USER_DEFINED else token
            proto.pieces.add(piece=text, score=score, type=2 if index == unknown else kind)
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())

    def ids(self, text, flags):
        out = [self.bos] if flags & ADD_SPECIAL else []
        if not flags & PARSE_SPECIAL:
            return out + self.processor.encode(text)
        while text:  # control tokens are found before pieces; here the leftmost, then the longest
            found = min(((text.find(token), -len(token)) for token in self.special if token in text), default=None)
            if found is None:
                return out + self.processor.encode(text)
            start, end = found[0], found[0] - found[1]
            out += (self.processor.encode(text[:start]) if start else []) + [self.special[text[start:end]]]
            text = text[end:]
        return out


def record(name):
    path = models.require(name)
    peer, weights = Peer(path, vocabulary_only=True), Weights(path)
    second = BytePairs(weights) if weights.get("tokenizer.ggml.model") == "gpt2" else Pieces(weights)
    kinds, tokens = weights.get("tokenizer.ggml.token_type"), weights.get("tokenizer.ggml.tokens")
    user_defined = [token for token, kind in zip(tokens, kinds) if kind == USER_DEFINED and token.strip()]
    special = list(second.special)[:17] + ["<start_of_turn>", "<end_of_turn>", "<|im_start|>", "<unused42>"] + user_defined[:12]
    rng = random.Random("rung tokens " + name)
    records, refused, example, lossless = [], 0, [], 0
    while len(records) < COUNT:
        text = random_text(rng, special)
        flags = (PARSE_SPECIAL if rng.random() < 0.5 else 0) | (ADD_SPECIAL if rng.random() < 0.2 else 0)
        data = text.encode()
        ids = peer.tokenize(data, special=bool(flags & PARSE_SPECIAL), add_special=bool(flags & ADD_SPECIAL))
        other = second.ids(text, flags)
        if ids != other:
            refused += 1
            if len(example) < 12:
                example.append((text, flags, ids, other))
            continue
        body = ids[1:] if flags & ADD_SPECIAL and weights.get("tokenizer.ggml.add_bos_token") else ids
        if peer.detokenize(body) == data:
            flags |= ROUND_TRIPS
            lossless += 1
        records.append(struct.pack("<III", flags, len(data), len(ids)) + data + struct.pack("<%dI" % len(ids), *ids))
    FOLDER.mkdir(parents=True, exist_ok=True)
    output = FOLDER / (name + ".bin")
    output.write_bytes(MAGIC + struct.pack("<I", len(records)) + b"".join(records))
    print("%s: %d records, %d bytes, %d round-trip; the two implementations disagreed on %d strings, left out" % (
        name, len(records), output.stat().st_size, lossless, refused))
    for text, flags, ids, other in example:
        print("  %d %r\n     llama.cpp %s\n     other     %s" % (flags, text, ids, other))


def digest(data):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def newer_characters():
    """Characters that one of the libraries involved knows and another one may not know yet: those of Unicode 14 and later."""
    from tokenizers import Regex, pre_tokenizers
    known = pre_tokenizers.Split(Regex(r"[\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}]"), "isolated")
    late = set()
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        c = chr(code)
        assigned = unicodedata.category(c) not in ("Cn", "Co", "Cc", "Cf")
        if code in UNICODE_14 or (len(known.pre_tokenize_str("\0%s\0" % c)) == 3) != assigned:
            late.add(c)
    return late


UNICODE_14 = {code for first, last in ((0x870, 0x88E), (0x890, 0x891), (0x898, 0x8B5), (0x8C8, 0x8D2), (0xC3C, 0xC3C), (0xC5D, 0xC5D),
                                       (0xCDD, 0xCDD), (0x170D, 0x171F), (0x180F, 0x180F), (0x1AC1, 0x1ACE), (0x1B4C, 0x1B7E),
                                       (0x1DFA, 0x1DFA), (0x20C0, 0x20C0), (0x2C2F, 0x2C2F), (0x2C5F, 0x2C5F), (0x2E53, 0x2E5D),
                                       (0x9FFD, 0x9FFF), (0xA7C0, 0xA7C1), (0xA7D0, 0xA7D9), (0xA7F2, 0xA7F4), (0xFBC2, 0xFBC2),
                                       (0xFD40, 0xFDFF), (0x10570, 0x107BA), (0x10F70, 0x10F89), (0x11070, 0x11075), (0x110C2, 0x110C2),
                                       (0x116B9, 0x116B9), (0x11740, 0x11746), (0x11AB0, 0x11ABF), (0x12F90, 0x12FF2), (0x16A70, 0x16AC9),
                                       (0x1AFF0, 0x1B122), (0x1CF00, 0x1CFC3), (0x1D1E9, 0x1D1EA), (0x1DF00, 0x1DF1E), (0x1E290, 0x1E2AE),
                                       (0x1E7E0, 0x1E7FE), (0x1F6DD, 0x1F6DF), (0x1F7F0, 0x1F7F0), (0x1F979, 0x1F9CC), (0x1FA7B, 0x1FAF6),
                                       (0x2A6DE, 0x2A6DF), (0x2B735, 0x2B738))
        for code in range(first, last + 1)}
SPELLED = ["<|endoftext|>", "<mask>", "<s>", "</s>", "<unk>", "<|im_end|>", "[MASK]", "[CLS]", "[SEP]", "[UNK]", "<0x41>", "<b>", "<b",
           "model", " model ", "models", " the", "the", "né", " né ", "网", "Œuvre", "œuvre", "static", "STATIC", " [MASK]", "<mask> "]


def json_texts():
    """The strings, with flags; some are long, with a word of a hundred characters or more."""
    rng, late = random.Random("rung tokenizer.json"), newer_characters()
    for index in range(COUNT):
        text = random_text(rng, SPELLED)
        if rng.random() < 0.15:
            text += rng.choice(SPELLED) + random_text(rng, SPELLED)
        if index % 250 == 0:
            text += "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.choice([99, 100, 101, 300])))
        text = "".join(c for c in text if c not in late)
        yield text, (PARSE_SPECIAL if rng.random() < 0.7 else 0) | (ADD_SPECIAL if rng.random() < 0.3 else 0)


def record_json():
    from tokenizers import Tokenizer
    from oracle import make_tokenizers
    folder = FOLDER / "json"
    texts = list(json_texts())
    (folder / "texts.bin").write_bytes(MAGIC + struct.pack("<I", len(texts)) + b"".join(
        struct.pack("<III", flags, len(text.encode()), 0) + text.encode() for text, flags in texts))
    files = {path.stem: path for path in sorted(folder.glob("*.json"))}
    files["minilm"] = Path(models.require("minilm")) / "tokenizer.json"
    for name, path in files.items():
        tokenizer, body, spent = Tokenizer.from_str(make_tokenizers.splice(path.read_text(encoding="utf-8"))), [], 0.0
        tokenizer.no_padding()
        tokenizer.no_truncation()
        for text, flags in texts:
            tokenizer.encode_special_tokens = not flags & PARSE_SPECIAL
            before = time.perf_counter()
            ids = tokenizer.encode(text, add_special_tokens=bool(flags & ADD_SPECIAL)).ids
            spent += time.perf_counter() - before
            decoded = tokenizer.decode(ids, skip_special_tokens=False).encode()
            body.append(struct.pack("<IQQ", len(ids), digest(struct.pack("<%dI" % len(ids), *ids)), digest(decoded)))
        (folder / (name + ".bin")).write_bytes(b"RUNGTOK2" + struct.pack("<I", len(body)) + b"".join(body))
        print("%s: %d records, %.1f MB/s here" % (name, len(body), sum(len(text.encode()) for text, _ in texts) / spent / 1e6))


def main():
    parser = argparse.ArgumentParser(description="Record token ids of 10,000 random strings per model.",
                                     epilog="example: record_tokens.py smollm2 gemma3")
    parser.add_argument("model", nargs="+", choices=["smollm2", "gemma3", "json"])
    for name in parser.parse_args().model:
        if name == "json":
            record_json()
        else:
            record(name)


if __name__ == "__main__":
    main()
