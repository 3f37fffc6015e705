#!/usr/bin/env python3
"""Write tiny random encoders as sentence-transformers lays them out, and the oracle's vectors.

    tiny_encoders.py    writes tests/models/tiny/{bert,roberta,bert-plain,xlm-roberta}/, encoder.ids and ENCODER.vectors.npy

bert is f32 with everything in its folder, roberta f16 with other positions, pooling and activation, bert-plain bf16 without
sentence-transformers' files and with names that have the prefix "bert.". xlm-roberta is f32 and like roberta. bert has a WordPiece tokeniser of letters:
encoder.txt are lines for it, encoder.cut.ids their ids cut to CUT by the tokenizers package. encoder.ids has one text a line, one of them
without tokens. Vectors are <f8 [way, text, width] for the ways WAYS, those of fewer numbers filled up with zeros.
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

from oracle.bert import Model

TINY = Path(__file__).resolve().parents[2] / "tests" / "models" / "tiny"
WIDTH, FEED_FORWARD, HEADS, LAYERS, ROWS, POSITIONS = 32, 48, 4, 2, 61, 140
LENGTHS = (5, 130, 1, 0, 64, 17, 65, 2, 33, 128, 3, 9)
WAYS = (dict(pooling="mean", unit=True), dict(pooling="cls_token", unit=False), dict(pooling="max_tokens", unit=True),
        dict(pooling="lasttoken", unit=True, dims=12))
CUT = 10
LINES = ("the", "", "A singing cat, the dog.", "abcdefghijklmnop", "thing  \tthing", "[SEP] in a text", "\u00c9t\u00e9")
ENCODERS = {"bert": ("bert", np.float32, ""), "roberta": ("roberta", np.float16, ""), "bert-plain": ("bert", ml_dtypes.bfloat16, "bert."),
            "xlm-roberta": ("xlm-roberta", np.float32, "")}


def tensors(name, model_type, dtype, prefix):
    rng, own = np.random.default_rng(sum(name.encode())), {}

    def matrix(name, rows, columns, gain=1.0):
        own[prefix + name + ".weight"] = rng.normal(0.0, gain / np.sqrt(columns), (rows, columns)).astype(dtype)

    def vector(name, size):
        own[prefix + name + ".bias"] = rng.normal(0.0, 0.3, size).astype(dtype)

    def norm(name):
        own[prefix + name + ".weight"] = rng.uniform(0.6, 1.4, WIDTH).astype(dtype)
        vector(name, WIDTH)
    matrix("embeddings.word_embeddings", ROWS, WIDTH, 2.4)
    matrix("embeddings.position_embeddings", POSITIONS, WIDTH)
    matrix("embeddings.token_type_embeddings", 1 if model_type.endswith("roberta") else 2, WIDTH)
    norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        p = "encoder.layer.%d." % layer
        for part in ("query", "key", "value"):
            matrix(p + "attention.self." + part, WIDTH, WIDTH, 1.0 if part == "value" else 2.0)
            vector(p + "attention.self." + part, WIDTH)
        for part, rows, columns in (("attention.output.dense", WIDTH, WIDTH), ("intermediate.dense", FEED_FORWARD, WIDTH), ("output.dense", WIDTH, FEED_FORWARD)):
            matrix(p + part, rows, columns)
            vector(p + part, rows)
        norm(p + "attention.output.LayerNorm")
        norm(p + "output.LayerNorm")
    matrix("pooler.dense", WIDTH, WIDTH)
    vector("pooler.dense", WIDTH)
    return own


def write(folder, name, value):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(value, indent=2) + "\n")


def write_folder(name, model_type, dtype, prefix):
    folder = TINY / name
    folder.mkdir(exist_ok=True)
    write(folder, "config.json", {
        "architectures": [{"bert": "BertModel", "roberta": "RobertaModel", "xlm-roberta": "XLMRobertaModel"}[model_type]], "model_type": model_type,
        "hidden_act": "gelu_new" if model_type.endswith("roberta") else "gelu", "hidden_size": WIDTH, "intermediate_size": FEED_FORWARD,
        "layer_norm_eps": 1e-05 if model_type.endswith("roberta") else 1e-12, "max_position_embeddings": POSITIONS, "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS, "pad_token_id": 1 if model_type.endswith("roberta") else 0, "position_embedding_type": "absolute",
        "type_vocab_size": 1 if model_type.endswith("roberta") else 2, "vocab_size": ROWS})
    (folder / "model.safetensors").write_bytes(save(tensors(name, model_type, dtype, prefix), metadata={"format": "pt"}))
    if prefix:
        return folder
    kinds = ["Transformer", "Pooling", "Normalize"][:2 if model_type.endswith("roberta") else 3]
    write(folder, "modules.json", [{"idx": i, "name": str(i), "path": ["", "1_Pooling", "2_Normalize"][i], "type": "sentence_transformers.models." + kind}
                                   for i, kind in enumerate(kinds)])
    write(folder, "1_Pooling/config.json", {"word_embedding_dimension": WIDTH, "pooling_mode_cls_token": model_type.endswith("roberta"),
                                            "pooling_mode_mean_tokens": not model_type.endswith("roberta"), "pooling_mode_max_tokens": False,
                                            "pooling_mode_mean_sqrt_len_tokens": False})
    write(folder, "sentence_bert_config.json", {"max_seq_length": 130, "do_lower_case": False})
    return folder


def write_tokenizer(folder):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    letters = [chr(ord("a") + i) for i in range(26)]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + letters + ["##" + c for c in letters] + ["the", "##ing", ".", ","]
    assert len(words) == ROWS
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.save(str(folder / "tokenizer.json"))
    (TINY / "encoder.txt").write_text("".join(line + "\n" for line in LINES))
    tokenizer.enable_truncation(CUT)
    (TINY / "encoder.cut.ids").write_text("".join(" ".join(map(str, tokenizer.encode(line).ids)) + "\n" for line in LINES))


def main():
    rng = np.random.default_rng(7)
    texts = [rng.integers(0, ROWS, n).tolist() for n in LENGTHS]
    (TINY / "encoder.ids").write_text("".join(" ".join(map(str, text)) + "\n" for text in texts))
    for name, (model_type, dtype, prefix) in ENCODERS.items():
        model = Model(write_folder(name, model_type, dtype, prefix))
        vectors = np.zeros((len(WAYS), len(texts), WIDTH))
        for i, way in enumerate(WAYS):
            vectors[i, :, :way.get("dims", WIDTH)] = model.vectors(texts, **way)
        if name == "bert":
            write_tokenizer(TINY / name)
        np.save(TINY / (name + ".vectors.npy"), vectors.astype("<f8"))
        print("%s: mean cosine of different texts %.2f" % (name, (vectors[0] @ vectors[0].T)[np.triu_indices(len(texts), 1)].mean()))


if __name__ == "__main__":
    main()
