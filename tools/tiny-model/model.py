"""The model in PyTorch: Llama, with RoPE over interleaved pairs (2i, 2i+1), which is the order in
which a GGUF of this architecture stores q and k, so the weights are exported as they are."""

import dataclasses

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Config:
    vocabulary: int = 3072
    hidden: int = 256
    layers: int = 6
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    ffn: int = 768
    context: int = 512
    rope_base: float = 10000.0
    eps: float = 1e-5


def rope_table(c, length, dtype=torch.float32):
    """cos and sin, `[length, head_dim / 2]`."""
    frequency = c.rope_base ** (-torch.arange(0, c.head_dim, 2, dtype=torch.float64) / c.head_dim)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency
    return angle.cos().to(dtype), angle.sin().to(dtype)


def rope(x, cos, sin):
    """`x [batch, heads, length, head_dim]`, turned in pairs of neighbours."""
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).to(x.dtype)


@torch.autocast("cpu", enabled=False)
def attention(q, k, v, mask):
    """`q [batch, heads, length, head_dim]`, `k`, `v` with fewer heads: the queries of a group are rows
    of one product. Written out, since at these lengths it is several times faster on a CPU than the fused one."""
    batch, heads, length, head_dim = q.shape
    q = q.reshape(batch, k.shape[1], -1, head_dim) * head_dim ** -0.5
    scores = q @ k.transpose(-1, -2) + mask[: length, : length].to(q.dtype).repeat(heads // k.shape[1], 1)
    return (scores.softmax(-1) @ v).reshape(batch, heads, length, head_dim)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.attn_norm = nn.RMSNorm(c.hidden, c.eps)
        self.q = nn.Linear(c.hidden, c.heads * c.head_dim, bias=False)
        self.k = nn.Linear(c.hidden, c.kv_heads * c.head_dim, bias=False)
        self.v = nn.Linear(c.hidden, c.kv_heads * c.head_dim, bias=False)
        self.o = nn.Linear(c.heads * c.head_dim, c.hidden, bias=False)
        self.ffn_norm = nn.RMSNorm(c.hidden, c.eps)
        self.gate = nn.Linear(c.hidden, c.ffn, bias=False)
        self.up = nn.Linear(c.hidden, c.ffn, bias=False)
        self.down = nn.Linear(c.ffn, c.hidden, bias=False)

    def forward(self, x, cos, sin, mask):
        h = self.attn_norm(x)
        q, k, v = (f(h).unflatten(-1, (-1, self.c.head_dim)).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = x + self.o(attention(rope(q, cos, sin), rope(k, cos, sin), v, mask).transpose(1, 2).flatten(-2))
        h = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embedding = nn.Embedding(c.vocabulary, c.hidden)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.norm = nn.RMSNorm(c.hidden, c.eps)
        self.output = nn.Linear(c.hidden, c.vocabulary, bias=False)
        cos, sin = rope_table(c, c.context)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.register_buffer("mask", torch.full((c.context, c.context), -torch.inf).triu(1), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                # The matrices that end a residual branch start smaller, one share for each branch.
                deep = name.endswith(("o.weight", "down.weight"))
                nn.init.normal_(p, std=0.04 / (2 * c.layers) ** 0.5 if deep else 0.04)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x, self.cos[:n], self.sin[:n], self.mask)
        return self.output(self.norm(x))
