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


def llama3_frequencies(frequencies, change):
    """Llama 3.1's change of slow frequencies, as its reference implementation has it."""
    wavelength = 2.0 * np.pi / frequencies
    slow = frequencies / change["factor"]
    mix = ((change["original_max_position_embeddings"] / wavelength - change["low_freq_factor"])
           / (change["high_freq_factor"] - change["low_freq_factor"]))
    return np.where(wavelength > change["original_max_position_embeddings"] / change["low_freq_factor"], slow,
                    np.where(wavelength < change["original_max_position_embeddings"] / change["high_freq_factor"],
                             frequencies, (1.0 - mix) * slow + mix * frequencies))


def yarn_frequencies(frequencies, base, factor, original, fast, slow):
    """YaRN (Peng et al. 2023), section 3.2, with whole indices as bounds of the ramp."""
    width = 2 * len(frequencies)

    def index(rotations):
        return width * math.log(original / (rotations * 2.0 * math.pi)) / (2.0 * math.log(base))
    low, high = max(math.floor(index(fast)), 0), min(math.ceil(index(slow)), width - 1)
    ramp = np.clip((np.arange(len(frequencies)) - low) / ((high - low) or 0.001), 0.0, 1.0)
    return frequencies / factor * ramp + frequencies * (1.0 - ramp)


def rope_of(weights, width, base=10000.0):
    """Frequencies of the rotary positions that a model's metadata asks for, and what multiplies sine and cosine."""
    get = weights.parameter
    width, base = get("rope.dimension_count", width), get("rope.freq_base", base)
    kind, factor = get("rope.scaling.type", "linear"), get("rope.scaling.factor", 1.0)
    magnitude = get("rope.scaling.attn_factor", 1.0)
    original = get("rope.scaling.original_context_length", 0)
    if kind == "ntk":
        base *= factor ** (width / (width - 2))
    frequencies = base ** (-np.arange(0, width, 2, dtype=np.float64) / width)
    if kind == "linear":
        frequencies = frequencies / factor
    elif kind == "yarn":
        frequencies = yarn_frequencies(frequencies, base, factor, original, get("rope.scaling.yarn_beta_fast", 32.0),
                                       get("rope.scaling.yarn_beta_slow", 1.0))
        magnitude *= 1.0 + 0.1 * math.log(factor)
    change = get("rope.llama3", {})  # a folder's; files have the tensor
    if change:
        frequencies = llama3_frequencies(frequencies, change)
    elif "rope_freqs.weight" in weights:
        frequencies = frequencies / weights.tensor("rope_freqs.weight")
    tensor = "rope_factors_%s.weight" % ("long" if (weights.context or 0) > original else "short")
    if tensor in weights:
        frequencies = frequencies / weights.tensor(tensor)
    return frequencies, magnitude


def rope_angles(positions, width, base, scale=1.0):
    """Angles [positions, width / 2] of rotary embeddings (Su et al. 2021)."""
    return positions[:, None] * scale * base ** (-np.arange(0, width, 2, dtype=np.float64) / width)[None, :]


def rope_pairs(x, angles, magnitude=1.0):
    """Rotate neighbours (2i, 2i + 1): the order of Llama's GGUF files, whose q and k rows were permuted for it.

    x is [positions, heads, head width]; elements past the rotated width stay.
    """
    cos, sin = magnitude * np.cos(angles)[:, None, :], magnitude * np.sin(angles)[:, None, :]
    width = 2 * angles.shape[1]
    out = x.copy()
    out[..., 0:width:2] = x[..., 0:width:2] * cos - x[..., 1:width:2] * sin
    out[..., 1:width:2] = x[..., 0:width:2] * sin + x[..., 1:width:2] * cos
    return out


def rope_halves(x, angles, magnitude=1.0):
    """Rotate element i with i + width / 2: the order of most published implementations, Gemma's among them."""
    cos, sin = magnitude * np.cos(angles)[:, None, :], magnitude * np.sin(angles)[:, None, :]
    half = angles.shape[1]
    out = x.copy()
    out[..., :half] = x[..., :half] * cos - x[..., half:2 * half] * sin
    out[..., half:2 * half] = x[..., :half] * sin + x[..., half:2 * half] * cos
    return out


def attention(q, k, v, scale, window=None, cap=None):
    """Causal attention with grouped keys (Ainslie et al. 2023).

    q is [n, heads, width], k and v are [n, key heads, width]. With a window w, a query at position p sees positions
    p - w + 1 to p: w of them, its own included. A cap c makes scores c tanh(score / c).
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
        if cap is not None:
            scores = cap * np.tanh(scores / cap)
        scores[hidden] = -np.inf
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        out[:, head] = (scores / scores.sum(axis=1, keepdims=True)) @ v[:, head // group]
    return out.reshape(n, -1)


def split_heads(x, heads):
    return x.reshape(x.shape[0], heads, -1)


def of_layer(weights, layer):
    """Function from a short name to a weight of the layer; `name.bias` for its bias."""
    def get(name):
        return weights.tensor("blk.%d.%s" % (layer, name if name.endswith(".bias") else name + ".weight"))
    return get


def llama_hidden(weights, ids, unturned=(), biases=False, head_norms=False, rotate=rope_pairs, feed_forward=None):
    """Llama (Touvron et al. 2023): rms norm, rotary grouped attention, SwiGLU, residuals around both. Families that differ
    in a detail say which."""
    get, eps = weights.parameter, weights.parameter("attention.layer_norm_rms_epsilon")
    heads, key_heads = get("attention.head_count"), get("attention.head_count_kv")
    head_width = get("attention.key_length", get("embedding_length") // heads)
    frequencies, magnitude = rope_of(weights, head_width)
    angles = np.arange(len(ids))[:, None] * frequencies[None, :]
    x = weights.gather("token_embd.weight", ids)
    for layer in range(get("block_count")):
        w = of_layer(weights, layer)
        h = rms_norm(x, w("attn_norm"), eps)
        q, k, v = h @ w("attn_q").T, h @ w("attn_k").T, h @ w("attn_v").T
        if biases:
            q, k, v = q + w("attn_q.bias"), k + w("attn_k.bias"), v + w("attn_v.bias")
        q, k, v = split_heads(q, heads), split_heads(k, key_heads), split_heads(v, key_heads)
        if head_norms:
            q, k = rms_norm(q, w("attn_q_norm"), eps), rms_norm(k, w("attn_k_norm"), eps)
        if layer not in unturned:
            q, k = rotate(q, angles, magnitude), rotate(k, angles, magnitude)
        x = x + attention(q, k, v, head_width ** -0.5) @ w("attn_output").T
        h = rms_norm(x, w("ffn_norm"), eps)
        if feed_forward:
            x = x + feed_forward(weights, w, h)
        else:
            x = x + (silu(h @ w("ffn_gate").T) * (h @ w("ffn_up").T)) @ w("ffn_down").T
    return rms_norm(x, weights.tensor("output_norm.weight"), eps)


def experts_half(weights, w, h):
    """A mixture of experts (Qwen3): softmax over all, the best few, their weights normalised, a SwiGLU half each."""
    used = weights.parameter("expert_used_count")
    scores = h @ w("ffn_gate_inp").T
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    gate, up, down = w("ffn_gate_exps"), w("ffn_up_exps"), w("ffn_down_exps")
    out = np.zeros_like(h)
    for row, x in enumerate(h):
        chosen = np.argsort(-share[row], kind="stable")[:used]
        weight = share[row, chosen]
        if weights.parameter("norm_topk_prob", 1):
            weight = weight / weight.sum()
        for expert, factor in zip(chosen, weight):
            out[row] += factor * (down[expert] @ (silu(gate[expert] @ x) * (up[expert] @ x)))
    return out


def qwen3moe_hidden(weights, ids):
    """Qwen3's mixtures: Qwen3 with experts on every layer."""
    return llama_hidden(weights, ids, head_norms=True, rotate=rope_halves, feed_forward=experts_half)


def qwen2_hidden(weights, ids):
    """Qwen2 (technical report, 2024): biases of queries, keys and values."""
    return llama_hidden(weights, ids, biases=True, rotate=rope_halves)


def qwen3_hidden(weights, ids):
    """Qwen3 (technical report, 2025): a norm of each head of queries and keys."""
    return llama_hidden(weights, ids, head_norms=True, rotate=rope_halves)


def smollm3_hidden(weights, ids):
    """SmolLM3 (Hugging Face 2025): no rotary positions on every fourth layer, or where `no_rope_layers` has 0."""
    layers = weights.parameter("block_count")
    turned = weights.parameter("no_rope_layers", []) or [int((layer + 1) % 4 != 0) for layer in range(layers)]
    return llama_hidden(weights, ids, unturned=[layer for layer in range(layers) if not turned[layer]])


def phi3_hidden(weights, ids):
    """Phi-3 (technical report, 2024): one tensor of queries, keys and values, one of gate and up, LongRoPE, and on every
    layer the window that its configuration names."""
    get, eps = weights.parameter, weights.parameter("attention.layer_norm_rms_epsilon")
    heads, key_heads = get("attention.head_count"), get("attention.head_count_kv")
    head_width, half = get("embedding_length") // heads, get("feed_forward_length")
    frequencies, magnitude = rope_of(weights, head_width)
    angles, window = np.arange(len(ids))[:, None] * frequencies[None, :], get("attention.sliding_window", 0)
    ends = [heads * head_width, (heads + key_heads) * head_width]
    x = weights.gather("token_embd.weight", ids)
    for layer in range(get("block_count")):
        w = of_layer(weights, layer)
        q, k, v = np.split(rms_norm(x, w("attn_norm"), eps) @ w("attn_qkv").T, ends, axis=1)
        q = rope_halves(split_heads(q, heads), angles, magnitude)
        k = rope_halves(split_heads(k, key_heads), angles, magnitude)
        x = x + attention(q, k, split_heads(v, key_heads), head_width ** -0.5, window or None) @ w("attn_output").T
        both = rms_norm(x, w("ffn_norm"), eps) @ w("ffn_up").T
        x = x + (silu(both[:, :half]) * both[:, half:]) @ w("ffn_down").T
    return rms_norm(x, weights.tensor("output_norm.weight"), eps)


def olmo2_hidden(weights, ids):
    """OLMo 2 (2024): norms only behind both halves of a layer; queries and keys are normed over all heads at once."""
    get, eps = weights.parameter, weights.parameter("attention.layer_norm_rms_epsilon")
    heads, key_heads = get("attention.head_count"), get("attention.head_count_kv")
    head_width = get("embedding_length") // heads
    frequencies, magnitude = rope_of(weights, head_width)
    angles = np.arange(len(ids))[:, None] * frequencies[None, :]
    x = weights.gather("token_embd.weight", ids)
    for layer in range(get("block_count")):
        w = of_layer(weights, layer)
        q = split_heads(rms_norm(x @ w("attn_q").T, w("attn_q_norm"), eps), heads)
        k = split_heads(rms_norm(x @ w("attn_k").T, w("attn_k_norm"), eps), key_heads)
        v = split_heads(x @ w("attn_v").T, key_heads)
        h = attention(rope_halves(q, angles, magnitude), rope_halves(k, angles, magnitude), v, head_width ** -0.5)
        x = x + rms_norm(h @ w("attn_output").T, w("post_attention_norm"), eps)
        h = (silu(x @ w("ffn_gate").T) * (x @ w("ffn_up").T)) @ w("ffn_down").T
        x = x + rms_norm(h, w("post_ffw_norm"), eps)
    return rms_norm(x, weights.tensor("output_norm.weight"), eps)


def gemma2_hidden(weights, ids):
    """Gemma 2 (2024): scaled embeddings, norms before and behind both halves, capped scores, a window on every other
    layer beginning with the first. The cap of the logits is the output matrix's business (Model.logits)."""
    get, eps = weights.parameter, weights.parameter("attention.layer_norm_rms_epsilon")
    heads, key_heads = get("attention.head_count"), get("attention.head_count_kv")
    width, head_width = get("embedding_length"), get("attention.key_length")
    cap, window = get("attn_logit_softcapping", 50.0), get("attention.sliding_window", 4096)
    scale = get("attention.query_scale", width // heads if get("block_count") == 46 else head_width) ** -0.5
    frequencies, magnitude = rope_of(weights, head_width)
    angles = np.arange(len(ids))[:, None] * frequencies[None, :]
    x = weights.gather("token_embd.weight", ids) * math.sqrt(width)
    for layer in range(get("block_count")):
        w = of_layer(weights, layer)
        h = rms_norm(x, w("attn_norm"), eps)
        q, k = split_heads(h @ w("attn_q").T, heads), split_heads(h @ w("attn_k").T, key_heads)
        v = split_heads(h @ w("attn_v").T, key_heads)
        h = attention(rope_halves(q, angles, magnitude), rope_halves(k, angles, magnitude), v, scale,
                      window if layer % 2 == 0 else None, cap)
        x = x + rms_norm(h @ w("attn_output").T, w("post_attention_norm"), eps)
        h = rms_norm(x, w("ffn_norm"), eps)
        h = (gelu_tanh(h @ w("ffn_gate").T) * (h @ w("ffn_up").T)) @ w("ffn_down").T
        x = x + rms_norm(h, w("post_ffw_norm"), eps)
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


FAMILIES = {"llama": llama_hidden, "qwen2": qwen2_hidden, "qwen3": qwen3_hidden, "gemma2": gemma2_hidden,
            "gemma3": gemma3_hidden, "phi3": phi3_hidden, "olmo2": olmo2_hidden, "smollm3": smollm3_hidden,
            "qwen3moe": qwen3moe_hidden}


class Model:
    """A model file with its family's forward pass."""

    def __init__(self, source, context=None):
        """A path, or what has the methods of Weights; `context` is the size of the context, where that matters (LongRoPE)."""
        self.weights = source if hasattr(source, "tensor") else Weights(source)
        self.weights.context = context
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
        if self.weights.architecture == "gemma2":
            cap = self.weights.parameter("final_logit_softcapping", 30.0)
            out = cap * np.tanh(out / cap)
        return out


def log_sum_exp(logits):
    """Of each row."""
    top = logits.max(axis=-1)
    return top + np.log(np.exp(logits - top[:, None]).sum(axis=-1))
