#!/usr/bin/env python3
"""Record what other tokenisers make of random strings with every vocabulary that llama.cpp ships, for the C tests.

    record_vocabs.py              strings, all vocabularies, all pre-tokenisers
    record_vocabs.py falcon cuts  one vocabulary; the pre-tokenisers

The vocabularies are vendor/llama.cpp/models/ggml-vocab-NAME.gguf of the llama-cpp-python sources (scripts/models.py fetch
llama-cpp-src). Written are tests/tokens/vocab/texts.bin, a digest a string in NAME.bin and, for `cuts`, a digest a string and
pre-tokeniser in cuts.bin; tests/tokens/README.md describes them.

Ids are llama.cpp's, except for WordPiece, where it does not normalise as BERT's makers do: there they are those of
`tokenizers`. Each is checked against a second implementation built from the same vocabulary as the model's makers
publish it: `tokenizers` for BPE and WordPiece, SentencePiece for the rest. Where the two disagree no digest is kept, and
how many, with some examples, is printed. Of broken UTF-8 each bad byte is U+FFFD to BPE, and checked so; SentencePiece BPE
has no second opinion there; for Unigram ids are SentencePiece's with U+FFFD for what is broken. Cuts are those of
`tokenizers` with the patterns that the models' makers publish.
"""
import argparse
import codecs
import random
import re
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

import models
from oracle.peer import Peer
from oracle.record_tokens import ADD_SPECIAL, CONTROL, MAGIC, PARSE_SPECIAL, USER_DEFINED, digest, newer_characters
from oracle.texts import random_text
from oracle.weights import Weights

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "tokens" / "vocab"
COUNT, BROKEN = 11000, 500
UNKNOWN, UNUSED = 2, 5  # tokenizer.ggml.token_type
NAMES = ("aquila baichuan bert-bge command-r deepseek-coder deepseek-llm falcon gemma-4 gpt-2 gpt-neox llama-bpe llama-spm mpt "
         "nomic-bert-moe phi-3 qwen2 qwen35 refact starcoder").split()
SPELLED = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<unk>", "<mask>", "[MASK]", "[CLS]", "[SEP]", "[UNK]", "[gMASK]",
           "<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>", "<BOS_TOKEN>", "<EOS_TOKEN>", "<fim_prefix>", "<fim_suffix>", "<filename>",
           "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|eot_id|>", "<｜begin▁of▁sentence｜>", "<｜fim▁hole｜>", "<|EOT|>",
           "<|assistant|>", "<|end|>", "<|user|> ", "<|assistant|>\n", " <mask>", "<|tool>", "<|think|>", "<turn|>", "<|tool_call>", "<|\"|>",
           ">>TITLE<<", "[PAD151646]", "<0x0A>", "ø", "÷", "            ", "▁", "▁the", "##ing", "<|LDWANG|>", "\n\n\n"]

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
ENDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = ENDS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CASES = r"[^\r\n\p{L}\p{N}]?UPPER*LOWER+%s|[^\r\n\p{L}\p{N}]?UPPER+LOWER*%s|%s| ?[^\s\p{L}\p{N}]+[\r\n/]*".replace(
    "UPPER", UPPER).replace("LOWER", LOWER) + TAIL
CJK = "[一-龥ࠀ-一가-\ud7ff]+"
LETTERS = ("[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3"
           "ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]")
SIGNS = "[!-/:-~！-／：-～‘-‟　-。]"
DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*" + TAIL)
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
# What is done to a text before bytes are merged; each name stands for all that are cut like it.
CUTS = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "llama-bpe": [LLAMA3 % r"\p{N}{1,3}"],
    "dbrx": [LLAMA3 % r"\p{N}{1,3}"],
    "glm4": [LLAMA3 % r"\p{N}{1,3}"],
    "qwen2": [LLAMA3 % r"\p{N}"],
    "qwen35": [ENDS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + TAIL],
    "seed-coder": [ENDS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+" + TAIL],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "gpt-4o": [CASES % (ENDS + "?", ENDS + "?", r"\p{N}{1,3}")],
    "tekken": [CASES % ("", "", r"\p{N}")],
    "deepseek-llm": ["[\r\n]", r"\s?" + LETTERS + "+", r"\s?" + SIGNS + "+", r"\s+$", CJK, r"\p{N}+"],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", DEEPSEEK3],
    "falcon": [r"[\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"],
    "bloom": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],
    "default": [r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
}
LIKE = {"mpt": "gpt-2", "refact": "smollm", "starcoder": "smollm", "command-r": "smollm"}
WHOLE_WORDS = ("llama-bpe",)  # taken as they are before any merge


def cutter(pre):
    from tokenizers import Regex, pre_tokenizers
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in CUTS[LIKE.get(pre, pre)]])


class Second:
    """A second opinion: `plain` is what the text between special tokens becomes."""

    def __init__(self, weights):
        get = weights.get
        self.tokens, self.kinds = get("tokenizer.ggml.tokens"), get("tokenizer.ggml.token_type")
        self.before, self.after = [], []
        if get("tokenizer.ggml.add_bos_token", self.adds_bos):
            self.before = [get("tokenizer.ggml.bos_token_id", get("tokenizer.ggml.cls_token_id", 1))]
        if get("tokenizer.ggml.add_eos_token", self.adds_eos):
            self.after = [get("tokenizer.ggml.eos_token_id", 2)]
        self.make(weights)

    adds_bos = adds_eos = False
    counts = False  # instead of llama.cpp
    repairs = False  # each byte that belongs to no character becomes U+FFFD; otherwise bytes may be tokens
    replaces = False  # counts for broken UTF-8: U+FFFD is a character like others, which the table of replacements knows

    def takes_blanks(self, token):
        """Whether a special token takes the white space before (after) it along."""
        return False, False

    def know(self, controls):
        """Tokens that are found in texts always, and with those that are only when special tokens are parsed. llama.cpp takes
        each "</s>" for special, which is plain text in some vocabularies: strings with it are left out there."""
        self.doubtful = [t for t, kind in zip(self.tokens, self.kinds) if t == "</s>" and kind != CONTROL]
        controls = {i for i in controls if self.tokens[i] not in self.doubtful}
        self.always = {token: i for i, (token, kind) in enumerate(zip(self.tokens, self.kinds)) if kind == USER_DEFINED and i not in controls}
        self.parsed = dict(self.always, **{self.tokens[i]: i for i in controls})

    def ids(self, text, flags):
        out = list(self.before) if flags & ADD_SPECIAL else []
        listed = self.parsed if flags & PARSE_SPECIAL else self.always
        while text:  # the leftmost, then the longest
            found = min(((text.find(token), -len(token)) for token in listed if token in text), default=None)
            if found is None:
                out += self.plain(text)
                break
            start, end = found[0], found[0] - found[1]
            token, head = text[start:end], text[:start]
            left, right = self.takes_blanks(token)
            head = head.rstrip() if left else head
            out += (self.plain(head) if head else []) + [listed[token]]
            text = text[end:].lstrip(" \t\n\v\f\r") if right else text[end:]
        return out + (list(self.after) if flags & ADD_SPECIAL else [])


class BytePairs(Second):
    repairs = True

    def make(self, weights):
        from tokenizers import Tokenizer, models, pre_tokenizers
        pre = weights.get("tokenizer.ggml.pre", "default")
        vocab = {token: index for index, token in enumerate(self.tokens)}
        merges = [tuple(merge.split(" ")) for merge in weights.get("tokenizer.ggml.merges")]
        self.tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=pre in WHOLE_WORDS))
        self.tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cutter(pre), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        if pre == "llama-bpe" and not self.before:
            self.before = [weights.get("tokenizer.ggml.bos_token_id")]

    def plain(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids


class Gemma4(BytePairs):
    def make(self, weights):
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
        vocab = {token: index for index, token in enumerate(self.tokens)}
        merges = []
        for merge in weights.get("tokenizer.ggml.merges"):
            at = merge.index(" ", 1)
            merges.append((merge[:at], merge[at + 1:]))
        self.tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        self.tokenizer.normalizer = normalizers.Replace(" ", "▁")
        self.tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[^\n]+|\n+"), "isolated")


class WordPieces(Second):
    adds_bos = counts = True

    def make(self, weights):
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
        vocab = {}
        for index, token in enumerate(self.tokens):  # back to how the model's makers write it
            special = token.startswith("[") and token.endswith("]")
            vocab[token if special else token[1:] if token.startswith("▁") else "##" + token] = index
        assert len(vocab) == len(self.tokens)
        self.tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
        self.tokenizer.normalizer = normalizers.BertNormalizer()
        self.tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self.after = [weights.get("tokenizer.ggml.seperator_token_id")]

    plain = BytePairs.plain


class Pieces(Second):
    """SentencePiece with a model made of the file's pieces, scores and types."""
    adds_bos = True

    def make(self, weights):
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
        get, proto = weights.get, sentencepiece_model_pb2.ModelProto()
        unigram = self.replaces = get("tokenizer.ggml.model") == "t5"
        spec = proto.trainer_spec
        spec.model_type = spec.UNIGRAM if unigram else spec.BPE
        spec.byte_fallback = not unigram
        spec.unk_id, spec.bos_id = get("tokenizer.ggml.unknown_token_id", 0), get("tokenizer.ggml.bos_token_id")
        spec.eos_id, spec.pad_id = get("tokenizer.ggml.eos_token_id"), -1
        proto.normalizer_spec.name = "identity"
        proto.normalizer_spec.add_dummy_prefix = get("tokenizer.ggml.add_space_prefix", True)
        proto.normalizer_spec.remove_extra_whitespaces = get("tokenizer.ggml.remove_extra_whitespaces", False)
        proto.normalizer_spec.precompiled_charsmap = bytes(value & 255 for value in get("tokenizer.ggml.precompiled_charsmap", []))
        self.right = "phi3" in get("general.name", "").lower()
        self.left = "nomic-bert-moe" == get("general.architecture", "")
        for index, (token, kind, score) in enumerate(zip(self.tokens, self.kinds, get("tokenizer.ggml.scores"))):
            kind = UNKNOWN if index == spec.unk_id else CONTROL if kind == UNKNOWN else kind
            proto.pieces.add(piece=token, score=score, type=kind)
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())

    def takes_blanks(self, token):
        return self.left and token == "<mask>", self.right and token not in ("<unk>", "<s>", "<|endoftext|>")

    def plain(self, text):
        return self.processor.encode(text)


SECOND = {"gpt2": BytePairs, "gemma4": Gemma4, "bert": WordPieces, "llama": Pieces, "t5": Pieces}


codecs.register_error("each byte", lambda error: ("\ufffd" * (error.end - error.start), error.end))
# Overlong forms, surrogates and characters beyond the last one: what becomes of these each implementation does its own way.
UNDEFINED = re.compile(rb"[\xc0\xc1\xf5-\xfd]|\xe0[\x80-\x9f]|\xed[\xa0-\xbf]|\xf0[\x80-\x8f]|\xf4[\x90-\xbf]")


def break_up(rng, data):
    """Bytes that are no UTF-8: some go, some come in, a tail is cut off."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        draw = rng.random()
        if draw < 0.4:
            data.insert(at, rng.choice([0x80, 0x9F, 0xBF, 0xC3, 0xE2, 0xF0, 0xFE, 0xFF]))
        elif draw < 0.7:
            del data[at:at + 1]
        else:
            data[at:at + 1] = bytes([rng.randint(0x80, 0xBF)])
    return bytes(data)


def texts():
    """(bytes, flags), the same for all vocabularies."""
    rng, late = random.Random("rung vocabularies"), newer_characters()
    made = []
    while len(made) < COUNT + BROKEN:
        text = "".join(c for c in random_text(rng, SPELLED) if c not in late)
        if rng.random() < 0.15:
            text += rng.choice(SPELLED) + "".join(c for c in random_text(rng, SPELLED) if c not in late)
        if len(made) % 250 == 0:
            text += "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.choice([60, 99, 300])))
        data = text.encode()
        if len(made) >= COUNT:
            data = break_up(rng, data)
            if UNDEFINED.search(data):
                continue
            try:
                data.decode()
                continue
            except UnicodeDecodeError:
                pass
        made.append((data, (PARSE_SPECIAL if rng.random() < 0.5 else 0) | (ADD_SPECIAL if rng.random() < 0.3 else 0)))
    return made


def folded(data):
    """32 bits of a digest, never 0: that is a string left out."""
    value = digest(data)
    return (value ^ value >> 32) & 0xFFFFFFFF or 1


def write(name, digests):
    (FOLDER / (name + ".bin")).write_bytes(b"RUNGTOK3" + struct.pack("<I%dI" % len(digests), len(digests), *digests))


def record(name, strings):
    path = models.require("llama-cpp-src") / "vendor" / "llama.cpp" / "models" / ("ggml-vocab-%s.gguf" % name)
    peer, weights = Peer(path, vocabulary_only=True), Weights(path)
    second = SECOND[weights.get("tokenizer.ggml.model")](weights)
    second.know(peer.controls())
    digests, differ, example = [], 0, []
    for data, flags in strings:
        ids = peer.tokenize(data, special=bool(flags & PARSE_SPECIAL), add_special=bool(flags & ADD_SPECIAL))
        digests.append(folded(struct.pack("<%dI" % len(ids), *ids)))
        if len(digests) > COUNT and second.replaces:
            other = second.ids(data.decode(errors="replace"), flags)
            digests[-1] = folded(struct.pack("<%dI" % len(other), *other))
        if len(digests) > COUNT and not second.counts:
            if any(token.encode() in data for token in second.doubtful):
                digests[-1] = 0
            if second.repairs and second.ids(data.decode(errors="each byte"), flags) != ids:
                digests[-1] = 0
            continue
        other = second.ids(data.decode(errors="replace"), flags)
        if ids == other:
            continue
        differ += 1
        digests[-1] = folded(struct.pack("<%dI" % len(other), *other)) if second.counts else 0
        if len(example) < 5:
            example.append((data.decode(), flags, ids, other))
    write(name, digests)
    print("%s: %d strings, the two implementations disagree on %d, %s" % (
        name, len(digests), differ, "where the second counts" if second.counts else "left out"), flush=True)
    for text, flags, ids, other in example:
        print("  %d %r\n     llama.cpp %s\n     other     %s" % (flags, text, ids, other))


def record_cuts(strings):
    """Per pre-tokeniser: its name, then a digest of the pieces' bytes for each string that is UTF-8."""
    body = b""
    for name in CUTS:
        cut, digests = cutter(name), []
        for data, _ in strings[:COUNT]:
            pieces = [len(piece.encode()) for piece, _ in cut.pre_tokenize_str(data.decode())]
            assert sum(pieces) == len(data), (name, data)
            digests.append(folded(struct.pack("<%dI" % len(pieces), *pieces)))
        body += struct.pack("<32s%dH" % len(digests), name.encode(), *(value & 0xFFFF for value in digests))
    (FOLDER / "cuts.bin").write_bytes(b"RUNGCUT1" + struct.pack("<II", len(CUTS), COUNT) + body)
    print("cuts: %d pre-tokenisers" % len(CUTS))


def main():
    parser = argparse.ArgumentParser(description="Record token ids and cuts of random strings.", epilog="example: record_vocabs.py falcon")
    parser.add_argument("name", nargs="*", choices=[[], "cuts", *NAMES], default=[])
    names = parser.parse_args().name or ["cuts", *NAMES]
    FOLDER.mkdir(parents=True, exist_ok=True)
    strings = texts()
    (FOLDER / "texts.bin").write_bytes(MAGIC + struct.pack("<I", len(strings)) + b"".join(
        struct.pack("<III", flags, len(data), 0) + data for data, flags in strings))
    for name in names:
        record_cuts(strings) if name == "cuts" else record(name, strings)


if __name__ == "__main__":
    main()
