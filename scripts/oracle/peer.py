"""llama.cpp as a second opinion: its logits and token ids, through the library that scripts/peers.py builds.

The foreign-function declarations are those of the llama-cpp-python sources (scripts/models.py fetch llama-cpp-src); only
their one module of declarations is loaded.
"""
import ctypes
import importlib
import os
import sys
import types

import numpy as np

import models
import peers

KV_TYPES = {"f32": 0, "f16": 1}  # ggml_type


def load_declarations():
    """The module of C declarations, without the rest of its package, bound to our build."""
    os.environ["LLAMA_CPP_LIB_PATH"] = str(peers.require())
    package = types.ModuleType("llama_cpp")
    package.__path__ = [str(models.require("llama-cpp-src") / "llama_cpp")]
    sys.modules["llama_cpp"] = package
    return importlib.import_module("llama_cpp.llama_cpp")


class Peer:
    """A model opened by llama.cpp. With `vocabulary_only` it tokenises and nothing else."""

    def __init__(self, path, vocabulary_only=False, verbose=False):
        self.c = c = load_declarations()
        self._quiet = c.llama_log_callback(lambda level, text, data: None)
        if not verbose:
            c.llama_log_set(self._quiet, None)
        c.llama_backend_init()
        parameters = c.llama_model_default_params()
        parameters.vocab_only = vocabulary_only
        self.model = c.llama_model_load_from_file(os.fsencode(str(path)), parameters)
        if not self.model:
            raise SystemExit("llama.cpp cannot load %s" % path)
        self.vocabulary = c.llama_model_get_vocab(self.model)

    def tokenize(self, data, special=False, add_special=False):
        """Ids of UTF-8 bytes. `special` parses the text of special tokens, `add_special` adds BOS and EOS as the file asks."""
        room = len(data) + 8
        out = (self.c.llama_token * room)()
        count = self.c.llama_tokenize(self.vocabulary, data, len(data), out, room, add_special, special)
        if count < 0:
            raise RuntimeError("llama_tokenize wants %d tokens" % -count)
        return out[:count]

    def controls(self):
        """Ids of control and unknown tokens, which a text means only where its special tokens are parsed."""
        attributes = self.c.LLAMA_TOKEN_ATTR_UNKNOWN | self.c.LLAMA_TOKEN_ATTR_CONTROL
        return {i for i in range(self.c.llama_vocab_n_tokens(self.vocabulary))
                if self.c.llama_vocab_get_attr(self.vocabulary, i) & attributes}

    def detokenize(self, ids, special=True):
        """Bytes of ids, nothing removed or cleaned up."""
        room = 64 + 64 * len(ids)
        out = ctypes.create_string_buffer(room)
        tokens = (self.c.llama_token * len(ids))(*ids)
        count = self.c.llama_detokenize(self.vocabulary, tokens, len(ids), out, room, False, special)
        if count < 0:
            raise RuntimeError("llama_detokenize wants %d bytes" % -count)
        return out.raw[:count]

    def logits(self, ids, kv="f16", threads=2, batch=512, flash=None):
        """Logits [positions, vocabulary] float32 of a sequence that starts at position 0."""
        c, count = self.c, len(ids)
        parameters = c.llama_context_default_params()
        parameters.n_ctx = max(256, count)
        parameters.n_batch = parameters.n_ubatch = min(batch, max(1, count))
        parameters.type_k = parameters.type_v = KV_TYPES[kv]
        parameters.n_threads = parameters.n_threads_batch = threads
        if flash is not None:
            parameters.flash_attn_type = 1 if flash else 0
        context = c.llama_init_from_model(self.model, parameters)
        if not context:
            raise RuntimeError("llama.cpp cannot make a context")
        width = c.llama_vocab_n_tokens(self.vocabulary)
        out = np.empty((count, width), np.float32)
        try:
            for first in range(0, count, batch):
                part = ids[first:first + batch]
                feed = c.llama_batch_init(len(part), 0, 1)
                feed.n_tokens = len(part)
                for index, token in enumerate(part):
                    feed.token[index], feed.pos[index] = token, first + index
                    feed.n_seq_id[index], feed.seq_id[index][0], feed.logits[index] = 1, 0, 1
                if c.llama_decode(context, feed) != 0:
                    raise RuntimeError("llama_decode failed")
                c.llama_batch_free(feed)
                pointer = c.llama_get_logits(context)
                out[first:first + len(part)] = np.ctypeslib.as_array(pointer, (len(part), width))
        finally:
            c.llama_free(context)
        return out

    def close(self):
        self.c.llama_model_free(self.model)
