#!/usr/bin/env python3
"""Record what llama.cpp's tokenisers make of 10,000 random strings, for the C tests.

    record_tokens.py smollm2|gemma3 ...

Writes tests/tokens/MODEL.bin; tests/tokens/README.md describes it. Each record is checked against a second implementation
built from the same vocabulary (`tokenizers` for byte-level BPE, SentencePiece itself for Gemma); where the two disagree a
record is left out and another string drawn, and the count and some examples are printed.
"""
import argparse
import random
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import models
from oracle.peer import Peer
from oracle.weights import Weights

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "tokens"
MAGIC, COUNT = b"RUNGTOK1", 10000
PARSE_SPECIAL, ADD_SPECIAL, ROUND_TRIPS = 1, 2, 4
CONTROL, USER_DEFINED = 3, 4  # tokenizer.ggml.token_type

WORDS = ("the and of to in is for that with as model network don't I'll we've they're it's you'd HELLO Hello world "
         "function return int float void const static struct printf std::vector <html> http://example.org/a?b=c "
         "naïve café über straße Œuvre señor Привет мир как дела Ελληνικά שלום العربية हिन्दी ภาษาไทย 日本語 中文字符 한국어 "
         "３．１４ ½ ² Ⅷ ٣٤ 1984 3.14159 2,300 0x1F 1e-5 e\u0301 fi ﬁ Ǆ").split()
RANGES = {
    "ascii": [(0x20, 0x7E)],
    "letters": [(0x61, 0x7A), (0x41, 0x5A)],
    "digits": [(0x30, 0x39)],
    "controls": [(0x00, 0x1F), (0x7F, 0x9F)],
    "latin": [(0xA0, 0x24F)],
    "greek, cyrillic": [(0x370, 0x3FF), (0x400, 0x52F)],
    "hebrew, arabic": [(0x5D0, 0x5EA), (0x600, 0x6FF)],
    "indic, thai": [(0x900, 0x97F), (0xE00, 0xE7F)],
    "marks, punctuation": [(0x300, 0x36F), (0x2000, 0x206F), (0x3000, 0x303F)],
    "symbols, number forms": [(0x20A0, 0x20BF), (0x2150, 0x218F), (0x2190, 0x22FF), (0x2460, 0x24FF), (0x2580, 0x259F)],
    "cjk": [(0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3)],
    "emoji": [(0x1F300, 0x1F64F), (0x1F680, 0x1F6FF), (0x1F900, 0x1F9FF), (0x200D, 0x200D), (0xFE0F, 0xFE0F)],
    "other planes": [(0x10000, 0x1044F), (0x1D400, 0x1D7FF), (0x20000, 0x2A6DF), (0xE0000, 0xE007F), (0x100000, 0x10FFFD)],
    "anything": [(0x00, 0xD7FF), (0xE000, 0x10FFFF)],
}
BLANKS = [" ", "  ", "   ", "    ", " " * 9, " " * 33, "\n", "\n\n", "\n" * 5, "\n" * 33, "\t", "\t\t", "\r\n", " \n ", "\n  ",
          "\u00a0", "\u2003", "\u3000", "\u2028", "\x0b", "\x0c", "\x85"]


def random_text(rng, special):
    """A short string of one to six pieces of different kinds; `special` texts appear in about a tenth of them."""
    parts = []
    for _ in range(rng.randint(1, 6)):
        draw = rng.random()
        if draw < 0.35:
            parts.append(" ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 3))))
        elif draw < 0.55:
            parts.append(rng.choice(BLANKS))
        elif draw < 0.57:
            parts.append(rng.choice(special))
        else:
            low_high = RANGES[rng.choice(list(RANGES))]
            parts.append("".join(chr(rng.randint(*rng.choice(low_high))) for _ in range(rng.randint(1, 6))))
    return "".join(parts)


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


def main():
    parser = argparse.ArgumentParser(description="Record token ids of 10,000 random strings per model.",
                                     epilog="example: record_tokens.py smollm2 gemma3")
    parser.add_argument("model", nargs="+", choices=["smollm2", "gemma3"])
    for name in parser.parse_args().model:
        record(name)


if __name__ == "__main__":
    main()
