"""The exact forward: a GGUF of architecture llama, qwen2 or qwen3 in float64, with numpy alone.

It is written to be read, and shares no code with what it is compared with. Weights are what
`gguf.quants.dequantize` says; everything after that is float64, the attention over every earlier
position included. What the metadata means follows llama.cpp.

    reference.py MODEL.gguf --tokens 1,2,3 -o logits.npy     one row a position
    reference.py MODEL.gguf --tokens 1,2,3 --greedy 64       the most probable continuation
"""

import argparse
import json
import math

import gguf
import numpy as np

# How an architecture pairs the values that RoPE turns: (2i, 2i + 1), or (i, i + d / 2).
INTERLEAVED = {"llama": True, "qwen2": False, "qwen3": False}


class Model:
    """The metadata that the forward needs, and the weights by name."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.fields = reader.fields
        self.tensors = {t.name: t for t in reader.tensors}
        self.arch = self.meta("general.architecture")
        if self.arch not in INTERLEAVED:
            raise SystemExit(f"architecture {self.arch!r} is not one of {', '.join(INTERLEAVED)}")
        of = lambda key, default=None: self.meta(f"{self.arch}.{key}", default)
        self.layers = of("block_count")
        self.hidden = of("embedding_length")
        self.heads = of("attention.head_count")
        self.kv_heads = of("attention.head_count_kv", self.heads)
        self.head_dim = of("attention.key_length", self.hidden // self.heads)
        self.value_dim = of("attention.value_length", self.hidden // self.heads)
        self.eps = of("attention.layer_norm_rms_epsilon")
        self.frequency, self.magnitude = self.rope_frequencies(of)
        self.kept = {}

    def meta(self, key, default=None):
        field = self.fields.get(key)
        return default if field is None else field.contents()

    def weight(self, name, default=None):
        """The tensor in float64, a matrix as `[out, in]`."""
        if name not in self.kept:
            t = self.tensors.get(name)
            if t is None:
                return default
            values = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64)
            if t.tensor_type == gguf.GGMLQuantizationType.NVFP4:
                values = values * float(self.weight(name.removesuffix("weight") + "scale", np.ones(1))[0])
            self.kept[name] = values.reshape(t.shape[::-1])
        return self.kept[name]

    def linear(self, x, name):
        """`x · Wᵀ + b`; the bias is there or not."""
        return x @ self.weight(name + ".weight").T + self.weight(name + ".bias", 0.0)

    def rope_frequencies(self, of):
        """The angle of each pair at position 1, and what cos and sin are multiplied by.

        Linear scaling divides every frequency; YaRN (https://arxiv.org/abs/2309.00071) leaves the fast
        ones, divides the slow ones, and goes from one to the other between two dimensions;
        `rope_freqs.weight` has a divisor of its own for each.
        """
        n = of("rope.dimension_count", self.head_dim)
        base = of("rope.freq_base", 10000.0)
        pair = np.arange(n // 2, dtype=np.float64)
        frequency = base ** (-2 * pair / n)
        frequency /= self.weight_of_rope(n // 2)
        kind = of("rope.scaling.type", "linear")
        factor = of("rope.scaling.factor", of("rope.scale_linear", 0.0)) or 1.0
        if kind == "none":
            factor = 1.0
        magnitude = of("rope.scaling.attn_factor", 1.0)
        if kind != "yarn":
            return frequency / factor, magnitude
        length = of("rope.scaling.original_context_length", of("context_length"))
        # The dimension whose pair turns `rotations` times within the original context.
        at = lambda rotations: n * math.log(length / (rotations * 2 * math.pi)) / (2 * math.log(base))
        low = max(0, math.floor(at(of("rope.scaling.yarn_beta_fast", 32.0))))
        high = min(n - 1, math.ceil(at(of("rope.scaling.yarn_beta_slow", 1.0))))
        kept = 1 - np.clip((pair - low) / max(0.001, high - low), 0, 1)
        kept *= of("rope.scaling.yarn_ext_factor", 1.0)
        return frequency / factor * (1 - kept) + frequency * kept, magnitude * (1 + 0.1 * math.log(factor))

    def weight_of_rope(self, pairs):
        t = self.tensors.get("rope_freqs.weight")
        return np.ones(pairs) if t is None else t.data.astype(np.float64).reshape(-1)[:pairs]

    def rope(self, x, positions):
        """`x [tokens, heads, head_dim]`; dimensions beyond the turned ones stay."""
        angle = positions[:, None, None] * self.frequency
        cos, sin = np.cos(angle) * self.magnitude, np.sin(angle) * self.magnitude
        n = 2 * len(self.frequency)
        first, second = (slice(0, n, 2), slice(1, n, 2)) if INTERLEAVED[self.arch] else (slice(0, n // 2), slice(n // 2, n))
        a, b = x[..., first], x[..., second]
        out = x.copy()
        out[..., first], out[..., second] = a * cos - b * sin, a * sin + b * cos
        return out

    def norm(self, x, name):
        w = self.weight(name + ".weight")
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * w


class Session:
    """A model and the keys and values of the tokens so far."""

    def __init__(self, model):
        self.model = model
        empty = lambda dim: [np.zeros((0, model.kv_heads, dim)) for _ in range(model.layers)]
        self.keys, self.values = empty(model.head_dim), empty(model.value_dim)
        self.length = 0

    def extend(self, tokens):
        """Logits after each of `tokens`, `[tokens, vocabulary]`."""
        m = self.model
        positions = np.arange(self.length, self.length + len(tokens), dtype=np.float64)
        self.length += len(tokens)
        x = m.weight("token_embd.weight")[tokens]
        for layer in range(m.layers):
            x = x + self.attention(layer, x, positions)
            at = f"blk.{layer}."
            h = m.norm(x, at + "ffn_norm")
            gate = m.linear(h, at + "ffn_gate")
            silu = gate / (1 + np.exp(-gate))
            x = x + m.linear(silu * m.linear(h, at + "ffn_up"), at + "ffn_down")
        h = m.norm(x, "output_norm")
        return h @ m.weight("output.weight", m.weight("token_embd.weight")).T + m.weight("output.bias", 0.0)

    def attention(self, layer, x, positions):
        m, at = self.model, f"blk.{layer}."
        h = m.norm(x, at + "attn_norm")
        q = m.linear(h, at + "attn_q").reshape(-1, m.heads, m.head_dim)
        k = m.linear(h, at + "attn_k").reshape(-1, m.kv_heads, m.head_dim)
        v = m.linear(h, at + "attn_v").reshape(-1, m.kv_heads, m.value_dim)
        if at + "attn_q_norm.weight" in m.tensors:
            q, k = m.norm(q, at + "attn_q_norm"), m.norm(k, at + "attn_k_norm")
        q, k = m.rope(q, positions), m.rope(k, positions)
        keys = self.keys[layer] = np.concatenate([self.keys[layer], k])
        values = self.values[layer] = np.concatenate([self.values[layer], v])
        later = np.arange(self.length) > positions[:, None]
        out = []
        for head in range(m.heads):
            group = head // (m.heads // m.kv_heads)
            scores = q[:, head] @ keys[:, group].T / math.sqrt(m.head_dim)
            scores[later] = -np.inf
            p = np.exp(scores - scores.max(-1, keepdims=True))
            out.append(p / p.sum(-1, keepdims=True) @ values[:, group])
        return m.linear(np.concatenate(out, -1), at + "attn_output")

    def greedy(self, tokens, count, stop=None):
        """The most probable token `count` times after `tokens`, and each one's lead over the next best logit."""
        ids, margins = [], []
        logits = self.extend(tokens)[-1]
        while len(ids) < count:
            second, first = np.sort(logits)[-2:]
            ids.append(int(logits.argmax()))
            margins.append(float(first - second))
            if ids[-1] == stop or len(ids) == count:
                break
            logits = self.extend([ids[-1]])[-1]
        return ids, margins


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("model")
    args.add_argument("--tokens", required=True, help="ids with commas, or @FILE with a JSON list")
    args.add_argument("-o", "--out", help="logits as float64 .npy, one row a position")
    args.add_argument("--greedy", type=int, metavar="N", help="print N tokens more, with their margins, as JSON")
    args = args.parse_args()
    if args.tokens.startswith("@"):
        with open(args.tokens[1:]) as f:
            tokens = json.load(f)
    else:
        tokens = [int(t) for t in args.tokens.split(",")]
    model = Model(args.model)
    if args.out:
        np.save(args.out, Session(model).extend(tokens))
    if args.greedy:
        ids, margins = Session(model).greedy(tokens, args.greedy)
        print(json.dumps({"ids": ids, "margins": margins}))


if __name__ == "__main__":
    main()
