"""Quantised weights for random models: the formats of ggml that the `gguf` package reads and does not write.

Blocks are made as ggml's layouts say, without looking for the best scales; what they then stand for is what
`gguf.quants.dequantize` makes of them.
"""

import gguf
import numpy as np

Type = gguf.GGMLQuantizationType


def quantise(values, kind):
    """Rows of a matrix as bytes of a format."""
    own = {Type.Q4_K: lambda w: with_minima(w, 4), Type.Q5_K: lambda w: with_minima(w, 5), Type.Q6_K: six_bits}
    if kind not in own:
        return gguf.quants.quantize(values.astype(np.float32), kind)
    return own[kind](values).reshape(len(values), -1)


def half(x):
    return x.astype(np.float16)[:, None].view(np.uint8)


def with_minima(values, bits):
    """Q4_K and Q5_K: eight parts of 32, each with a scale and a minimum of six bits."""
    w = values.reshape(-1, 8, 32)
    least = np.minimum(w.min(-1), 0)
    scale, minimum = (w.max(-1) - least) / (2**bits - 1), -least
    d, dmin = (np.float16(x.max(-1) / 63).astype(np.float64) for x in (scale, minimum))
    sc, m = (np.round(x / np.maximum(of, 1e-30)[:, None]).astype(np.uint8) for x, of in ((scale, d), (minimum, dmin)))
    step, least = (d[:, None] * sc)[..., None], (dmin[:, None] * m)[..., None]
    q = np.clip(np.round((w + least) / np.maximum(step, 1e-30)), 0, 2**bits - 1).astype(np.uint8)
    lower = lambda six: six[:, :4] | six[:, 4:] >> 4 << 6
    six = np.concatenate([lower(sc), lower(m), sc[:, 4:] & 15 | (m[:, 4:] & 15) << 4], -1)
    pairs = (q & 15).reshape(-1, 4, 2, 32)
    quants = (pairs[:, :, 0] | pairs[:, :, 1] << 4).reshape(-1, 128)
    fifth = (q >> 4 << np.arange(8, dtype=np.uint8)[:, None]).sum(1, dtype=np.uint8)
    upper = [fifth] if bits == 5 else []
    return np.concatenate([half(d), half(dmin), six, *upper, quants], -1)


def six_bits(values):
    """Q6_K: sixteen parts of 16, each with a signed byte for a scale."""
    w = values.reshape(-1, 16, 16)
    scale = np.abs(w).max(-1) / 31
    d = np.float16(scale.max(-1) / 127).astype(np.float64)
    sc = np.round(scale / np.maximum(d, 1e-30)[:, None]).astype(np.int8)
    step = (d[:, None] * sc)[..., None]
    q = (np.clip(np.round(w / np.maximum(step, 1e-30)), -32, 31) + 32).astype(np.uint8)
    q = q.reshape(-1, 2, 4, 32)
    low, up = q & 15, q >> 4
    lower = np.stack([low[:, :, 0] | low[:, :, 2] << 4, low[:, :, 1] | low[:, :, 3] << 4], 2)
    upper = up[:, :, 0] | up[:, :, 1] << 2 | up[:, :, 2] << 4 | up[:, :, 3] << 6
    return np.concatenate([lower.reshape(-1, 128), upper.reshape(-1, 64), sc.view(np.uint8), half(d)], -1)
