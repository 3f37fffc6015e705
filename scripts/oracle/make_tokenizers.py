#!/usr/bin/env python3
"""Make the small tokenizer.json files of tests/tokens/json with Hugging Face's `tokenizers`.

    make_tokenizers.py            all of them
    make_tokenizers.py pairs      one

Each is trained on a few words and puts together steps that real models use. record_tokens.py then records what the library
makes of 10,000 strings with each.
"""
import argparse
import base64
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import venv  # scripts/venv.py

venv.enter()

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from oracle.texts import BLANKS, WORDS

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "tokens" / "json"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def lines():
    """Text to train on: the words of the random strings in any order and case."""
    rng = random.Random("rung tokenizers")
    for _ in range(2000):
        words = [rng.choice(WORDS) for _ in range(12)]
        yield "".join(w.upper() if rng.random() < 0.05 else w.title() if rng.random() < 0.1 else w + rng.choice([" ", " ", " ", ", ", ". "])
                      for w in words) + rng.choice(BLANKS)


def train_pairs(tokenizer, size, special, alphabet=()):
    tokenizer.train_from_iterator(lines(), trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, show_progress=False, initial_alphabet=list(alphabet)))
    return tokenizer


def pairs():
    """GPT-2's: byte-level BPE; tokens added to it with every combination of flags."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    t.decoder = decoders.ByteLevel()
    train_pairs(t, 900, ["<|endoftext|>"], pre_tokenizers.ByteLevel.alphabet())
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    t.add_tokens([AddedToken("model", single_word=True), AddedToken("网", normalized=True), AddedToken("<b>", rstrip=True),
                  AddedToken("<b", normalized=False), AddedToken(" the", normalized=False),
                  AddedToken("né", lstrip=True, rstrip=True, single_word=True)])
    return t


def llama3():
    """Llama 3's: a pattern, then bytes; whole words before merges; what goes around a text in two processors."""
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    train_pairs(t, 1100, ["<s>", "</s>", "<|im_end|>"], pre_tokenizers.ByteLevel.alphabet())
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 0)]),
        processors.TemplateProcessing(single="$A </s>", pair="$A $B </s>", special_tokens=[("</s>", 1)])])
    return t


def digits():
    """SmolLM's cuts with RoBERTa's blank and processor; bytes without a token are left out."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=True)])
    t.decoder = decoders.ByteLevel()
    train_pairs(t, 700, ["<s>", "</s>", "<mask>"])
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0), trim_offsets=True, add_prefix_space=True)
    return t


def fallback():
    """Llama 2's and Gemma's: characters, blanks written as U+2581, bytes for what is unknown, no cut at all."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    # Trained on words, used without a cut: as SentencePiece does it.
    t.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    special = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % byte for byte in range(256)]
    train_pairs(t, 1000, special)
    text = t.to_str()
    t = Tokenizer.from_str(text)
    t.pre_tokenizer = None
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return without_special(t, special[3:])


def without_special(t, texts):
    """The same tokenizer, in which these tokens are not looked for in texts."""
    import json
    data = json.loads(t.to_str())
    data["added_tokens"] = [token for token in data["added_tokens"] if token["content"] not in texts]
    return Tokenizer.from_str(json.dumps(data))


def unknown():
    """Characters without bytes to fall back on: unknown tokens one by one; accents go, punctuation stays with words."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous"), pre_tokenizers.Digits()])
    train_pairs(t, 500, ["<unk>", "<s>"])
    t.add_tokens([AddedToken("Œuvre", normalized=True), AddedToken("STATIC", normalized=True, single_word=True)])
    return t


def cased():
    """A cased BERT: short words only, no accents taken off."""
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=9))
    t.normalizer = normalizers.BertNormalizer(lowercase=False)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece(cleanup=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(lines(), trainers.WordPieceTrainer(vocab_size=800, special_tokens=special, show_progress=False))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    t.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    return t


def words():
    """WordPiece without a prefix, lower case without accents taken off, cut by \\w."""
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", continuing_subword_prefix=""))
    t.normalizer = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=True)
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    vocab = {"[UNK]": 0}
    rng = random.Random("rung words")
    for word in WORDS:
        for piece in [word.lower()] + list(word.lower()) + [word.lower()[:rng.randint(1, len(word))] for _ in range(2)]:
            vocab.setdefault(piece, len(vocab))
    for code in range(0x61, 0x7B):
        vocab.setdefault(chr(code), len(vocab))
    t.model = models.WordPiece(vocab, unk_token="[UNK]", continuing_subword_prefix="")
    return t


def unigram():
    """Unigram as T5 and ALBERT have it: U+2581 at the beginning of each word, the first one too."""
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    t.decoder = decoders.Metaspace(prepend_scheme="first")
    t.train_from_iterator(lines(), trainers.UnigramTrainer(
        vocab_size=600, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>", show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)])
    return t


def precompiled():
    """Unigram as XLM-RoBERTa has it. The table of replacements is left out of the file: splice() puts it in, from a vocabulary
    that llama.cpp ships, here and in the tests."""
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(list(charsmap())), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t.decoder = decoders.Metaspace()
    t.train_from_iterator(lines(), trainers.UnigramTrainer(
        vocab_size=700, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    return t


def charsmap():
    """nmt_nfkc's table, as XLM-RoBERTa and T5 use it."""
    import models as fetched  # scripts/models.py
    from oracle.weights import Weights
    folder = fetched.require("llama-cpp-src") / "vendor" / "llama.cpp" / "models"
    return bytes(value & 255 for value in Weights(folder / "ggml-vocab-nomic-bert-moe.gguf").get("tokenizer.ggml.precompiled_charsmap"))


LEFT_OUT = '"precompiled_charsmap":"%s"'


def splice(text):
    """The text of a file with its table of replacements in it."""
    if LEFT_OUT % "" not in text:
        return text
    return text.replace(LEFT_OUT % "", LEFT_OUT % base64.b64encode(charsmap()).decode())


def suffix():
    """CLIP's: bytes, of which the last one of a word carries a mark."""
    t = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>", fuse_unk=False))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    t.train_from_iterator(lines(), trainers.BpeTrainer(
        vocab_size=1300, special_tokens=["<|startoftext|>", "<|endoftext|>"], show_progress=False, initial_alphabet=alphabet,
        end_of_word_suffix="</w>"))
    t.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), trim_offsets=False, add_prefix_space=False)
    return t


def level():
    """WordLevel: whole words or nothing."""
    vocab = {"[UNK]": 0}
    for word in WORDS:
        for piece in word.lower().replace("'", " ' ").split():
            vocab.setdefault(piece, len(vocab))
    t = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    t.normalizer = normalizers.Lowercase()
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.add_tokens([AddedToken("model ", normalized=True)])
    return t


MAKERS = {f.__name__: f for f in (pairs, llama3, digits, fallback, unknown, cased, words, unigram, precompiled, suffix, level)}


def main():
    parser = argparse.ArgumentParser(description="Make small tokenizer.json files for the tests.",
                                     epilog="example: make_tokenizers.py pairs")
    parser.add_argument("name", nargs="*", choices=[[], *MAKERS], default=[])
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in parser.parse_args().name or MAKERS:
        path = FOLDER / (name + ".json")
        text = MAKERS[name]().to_str()
        if name == "precompiled":
            text = text.replace(LEFT_OUT % base64.b64encode(charsmap()).decode(), LEFT_OUT % "")
            assert LEFT_OUT % "" in text
        path.write_text(text, encoding="utf-8")
        print("%s: %d bytes" % (path.name, path.stat().st_size))


if __name__ == "__main__":
    main()
