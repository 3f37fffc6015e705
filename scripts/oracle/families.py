"""Forward passes of the architecture families, float64 throughout.

Each family maps token ids to the final hidden rows; `Model.logits` applies the output matrix. Attention is computed whole,
with a mask, so that chunking, caches and windows of the code under test meet something that has none of them.
"""
import math

import numpy as np

from oracle.weights import Weights


def rms_norm(x, weight, eps):
    """Root mean square norm (Zhang and Sennrich 2019) over the last axis."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def silu(x):
    return x / (1.0 + np.exp(-x))


def gelu_tanh(x):
    """The tanh form of GELU (Hendrycks and Gimpel 2016)."""
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x ** 3)))


def rope_angles(positions, width, base, scale=1.0, llama3=None):
    """Angles [positions, width / 2] of rotary embeddings (Su et al. 2021), with Llama 3.1's change of slow frequencies."""
    frequencies = base ** (-np.arange(0, width, 2, dtype=np.float64) / width)
    if llama3:
        wavelength = 2.0 * np.pi / frequencies
        slow = frequencies / llama3["factor"]
        mix = ((llama3["original_max_position_embeddings"] / wavelength - llama3["low_freq_factor"])
               / (llama3["high_freq_factor"] - llama3["low_freq_factor"]))
        frequencies = np.where(wavelength > llama3["original_max_position_embeddings"] / llama3["low_freq_factor"], slow,
                               np.where(wavelength < llama3["original_max_position_embeddings"] / llama3["high_freq_factor"],
                                        frequencies, (1.0 - mix) * slow + mix * frequencies))
    return positions[:, None] * scale * frequencies[None, :]


def rope_pairs(x, angles):
    """Rotate neighbours (2i, 2i + 1): the order of Llama's GGUF files, whose q and k rows were permuted for it.

    x is [positions, heads, head width]; elements past the rotated width stay.
    """
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    width = 2 * angles.shape[1]
    out = x.copy()
    out[..., 0:width:2] = x[..., 0:width:2] * cos - x[..., 1:width:2] * sin
    out[..., 1:width:2] = x[..., 0:width:2] * sin + x[..., 1:width:2] * cos
    return out


def rope_halves(x, angles):
    """Rotate element i with i + width / 2: the order of most published implementations, Gemma's among them."""
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    half = angles.shape[1]
    out = x.copy()
    out[..., :half] = x[..., :half] * cos - x[..., half:2 * half] * sin
    out[..., half:2 * half] = x[..., :half] * sin + x[..., half:2 * half] * cos
    return out


def attention(q, k, v, scale, window=None):
    """Causal attention with grouped keys (Ainslie et al. 2023).

    q is [n, heads, width], k and v are [n, key heads, width]. With a window w, a query at position p sees positions
    p - w + 1 to p: w of them, its own included.
    """
    n, heads, width = q.shape
    group = heads // k.shape[1]
    distance = np.arange(n)[:, None] - np.arange(n)[None, :]
    hidden = distance < 0
    if window is not None:
        hidden |= distance >= window
    out = np.empty((n, heads, v.shape[2]))
    for head in range(heads):
        scores = scale * (q[:, head] @ k[:, head // group].T)
        scores[hidden] = -np.inf
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        out[:, head] = (scores / scores.sum(axis=1, keepdims=True)) @ v[:, head // group]
    return out.reshape(n, -1)


def split_heads(x, heads):
    return x.reshape(x.shape[0], heads, -1)


def llama_hidden(weights, ids):
    """Llama (Touvron et al. 2023): rms norm, rotary grouped attention, SwiGLU, residuals around both."""
    get, eps = weights.parameter, weights.parameter("attention.layer_norm_rms_epsilon")
    heads, key_heads = get("attention.head_count"), get("attention.head_count_kv")
    head_width = get("attention.key_length", get("embedding_length") // heads)
    angles = rope_angles(np.arange(len(ids)), get("rope.dimension_count", head_width), get("rope.freq_base", 10000.0),
                         llama3=get("rope.llama3", {}))
    if "rope_freqs.weight" in weights:
        raise NotImplementedError("the oracle has no scaled rotary frequencies")
    x = weights.gather("token_embd.weight", ids)
    for layer in range(get("block_count")):
        def w(name):
            return weights.tensor("blk.%d.%s.weight" % (layer, name))
        h = rms_norm(x, w("attn_norm"), eps)
        q = rope_pairs(split_heads(h @ w("attn_q").T, heads), angles)
        k = rope_pairs(split_heads(h @ w("attn_k").T, key_heads), angles)
        v = split_heads(h @ w("attn_v").T, key_heads)
        x = x + attention(q, k, v, head_width ** -0.5) @ w("attn_output").T
        h = rms_norm(x, w("ffn_norm"), eps)
        x = x + (silu(h @ w("ffn_gate").T) * (h @ w("ffn_up").T)) @ w("ffn_down").T
    return rms_norm(x, weights.tensor("output_norm.weight"), eps)


def gemma3_hidden(weights, ids):
    """Gemma 3 (technical report, 2025): scaled embeddings, norms before and after both halves of a layer, norms of
    queries and keys, five layers with a sliding window and their own rotary base to each global one.

    GGUF stores every norm weight with Gemma's "1 +" already added.
    """
    get, eps = weights.parameter, weights.parameter("attention.layer_norm_rms_epsilon")
    heads, key_heads = get("attention.head_count"), get("attention.head_count_kv")
    width, head_width = get("embedding_length"), get("attention.key_length", 256)
    pattern, window = get("attention.sliding_window_pattern", 6), get("attention.sliding_window")
    chosen = get("attention.global_layers", [])  # as a folder lists them; GGUF has no such key, nor the query scale
    if get("block_count") == 62:  # the 27B model scales by the width per head instead of the head's own width
        scale = (width / heads) ** -0.5
    else:
        scale = get("attention.query_scale", head_width) ** -0.5
    positions = np.arange(len(ids))
    local_angles = rope_angles(positions, head_width, get("rope.freq_base_swa", 10000.0))
    global_angles = rope_angles(positions, head_width, get("rope.freq_base", 1e6),
                                1.0 / get("rope.scaling.factor", 1.0))
    x = weights.gather("token_embd.weight", ids) * math.sqrt(width)
    for layer in range(get("block_count")):
        def w(name):
            return weights.tensor("blk.%d.%s.weight" % (layer, name))
        is_global = layer in chosen if chosen else layer % pattern == pattern - 1
        angles = global_angles if is_global else local_angles
        h = rms_norm(x, w("attn_norm"), eps)
        q = rms_norm(split_heads(h @ w("attn_q").T, heads), w("attn_q_norm"), eps)
        k = rms_norm(split_heads(h @ w("attn_k").T, key_heads), w("attn_k_norm"), eps)
        v = split_heads(h @ w("attn_v").T, key_heads)
        h = attention(rope_halves(q, angles), rope_halves(k, angles), v, scale, None if is_global else window)
        x = x + rms_norm(h @ w("attn_output").T, w("post_attention_norm"), eps)
        h = rms_norm(x, w("ffn_norm"), eps)
        h = (gelu_tanh(h @ w("ffn_gate").T) * (h @ w("ffn_up").T)) @ w("ffn_down").T
        x = x + rms_norm(h, w("post_ffw_norm"), eps)
    return rms_norm(x, weights.tensor("output_norm.weight"), eps)


FAMILIES = {"llama": llama_hidden, "gemma3": gemma3_hidden}


class Model:
    """A model file with its family's forward pass."""

    def __init__(self, source):
        """A path, or what has the methods of Weights."""
        self.weights = source if hasattr(source, "tensor") else Weights(source)
        if self.weights.architecture not in FAMILIES:
            raise SystemExit("the oracle knows %s, not %s" % (", ".join(FAMILIES), self.weights.architecture))
        self.output = "output.weight" if "output.weight" in self.weights else "token_embd.weight"
        self.vocabulary = self.weights.row_count(self.output)

    def hidden(self, ids):
        """Final hidden rows [positions, width] of a sequence that starts at position 0."""
        return FAMILIES[self.weights.architecture](self.weights, np.asarray(ids))

    def logits(self, hidden, block=32768):
        """Logits [rows, vocabulary] of hidden rows; the output matrix is widened in blocks."""
        out = np.empty((hidden.shape[0], self.vocabulary))
        for first in range(0, self.vocabulary, block):
            last = min(first + block, self.vocabulary)
            out[:, first:last] = hidden @ self.weights.rows(self.output, first, last).T
        return out


def log_sum_exp(logits):
    """Of each row."""
    top = logits.max(axis=-1)
    return top + np.log(np.exp(logits - top[:, None]).sum(axis=-1))
