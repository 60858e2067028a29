"""Quantised weights for random models: the formats of ggml that the `gguf` package reads and does not write.

Blocks are made as ggml's layouts say, without looking for the best scales; what they then stand for is what
`gguf.quants.dequantize` makes of them.
"""

import gguf
import numpy as np

Type = gguf.GGMLQuantizationType


def quantise(values, kind):
    """Rows of a matrix as bytes of a format."""
    own = {
        Type.Q2_K: two_bits,
        Type.Q3_K: three_bits,
        Type.Q4_K: lambda w: with_minima(w, 4),
        Type.Q5_K: lambda w: with_minima(w, 5),
        Type.Q6_K: six_bits,
        Type.IQ4_NL: table_32,
        Type.IQ4_XS: table_256,
        Type.NVFP4: floats_16,
    }
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


def two_bits(values):
    """Q2_K: sixteen parts of 16, each with a scale and a minimum of four bits."""
    w = values.reshape(-1, 16, 16)
    least = np.minimum(w.min(-1), 0)
    scale, minimum = (w.max(-1) - least) / 3, -least
    d, dmin = (np.float16(x.max(-1) / 15).astype(np.float64) for x in (scale, minimum))
    sc, m = (np.round(x / np.maximum(of, 1e-30)[:, None]).astype(np.uint8) for x, of in ((scale, d), (minimum, dmin)))
    step, least = (d[:, None] * sc)[..., None], (dmin[:, None] * m)[..., None]
    q = np.clip(np.round((w + least) / np.maximum(step, 1e-30)), 0, 3).astype(np.uint8)
    return np.concatenate([sc | m << 4, pairs_of_bits(q), half(d), half(dmin)], -1)


def pairs_of_bits(q):
    """Two bits each of 256 weights: four parts of 32 in the same bytes, from the lowest bits on."""
    q = q.reshape(-1, 2, 4, 32)
    return sum(q[:, :, i] << 2 * i for i in range(4)).reshape(-1, 64)


def three_bits(values):
    """Q3_K: sixteen parts of 16, each with a scale of six bits that counts from -32."""
    w = values.reshape(-1, 16, 16)
    scale = np.abs(w).max(-1) / 4
    d = np.float16(scale.max(-1) / 31).astype(np.float64)
    sc = np.round(scale / np.maximum(d, 1e-30)[:, None])
    step = (d[:, None] * sc)[..., None]
    q = (np.clip(np.round(w / np.maximum(step, 1e-30)), -4, 3) + 4).astype(np.uint8)
    six = (sc + 32).astype(np.uint8)
    lower = six[:, :8] & 15 | (six[:, 8:] & 15) << 4
    upper = sum((six.reshape(-1, 4, 4)[:, i] >> 4) << 2 * i for i in range(4))
    mask = (q.reshape(-1, 8, 32) >> 2 << np.arange(8, dtype=np.uint8)[:, None]).sum(1, dtype=np.uint8)
    return np.concatenate([mask, pairs_of_bits(q & 3), lower, upper, half(d)], -1)


def nearest(values, table):
    """The numbers of the entries of a table that are nearest."""
    return np.abs(values[..., None] - np.array(table)).argmin(-1).astype(np.uint8)


def nibbles(codes, run):
    """Two codes in a byte, `run` apart."""
    codes = codes.reshape(len(codes), -1, 2, run)
    return (codes[:, :, 0] | codes[:, :, 1] << 4).reshape(len(codes), -1)


def table_32(values):
    """IQ4_NL: a scale for each 32."""
    table = gguf.quants.IQ4_NL.kvalues
    w = values.reshape(-1, 32)
    d = np.float16(np.abs(w).max(-1) / 120).astype(np.float64)
    return np.concatenate([half(d), nibbles(nearest(w / np.maximum(d, 1e-30)[:, None], table), 16)], -1)


def table_256(values):
    """IQ4_XS: eight parts of 32, each with a scale of six bits that counts from -32."""
    table = gguf.quants.IQ4_NL.kvalues
    w = values.reshape(-1, 8, 32)
    scale = np.abs(w).max(-1) / 120
    d = np.float16(scale.max(-1) / 31).astype(np.float64)
    sc = np.round(scale / np.maximum(d, 1e-30)[:, None])
    step = (d[:, None] * sc)[..., None]
    codes = nearest(w / np.maximum(step, 1e-30), table).reshape(-1, 256)
    six = (sc + 32).astype(np.uint16)
    upper = (six >> 4 << 2 * np.arange(8, dtype=np.uint16)).sum(1, dtype=np.uint16)[:, None].view(np.uint8)
    return np.concatenate([half(d), upper, nibbles((six & 15).astype(np.uint8), 1), nibbles(codes, 16)], -1)


# What NVFP4's matrices of test models are multiplied by, beside their blocks.
TENSOR_SCALE = 0.0625


def floats_16(values):
    """NVFP4, of a matrix whose scale is `TENSOR_SCALE`: a float of eight bits for each 16."""
    w = values.reshape(-1, 4, 16) / TENSOR_SCALE
    codes = np.arange(1, 127, dtype=np.uint8)
    scale = codes[np.abs(np.abs(w).max(-1)[..., None] / 12 - gguf.quants.NVFP4.ue4m3_to_fp32(codes)).argmin(-1)]
    step = gguf.quants.NVFP4.ue4m3_to_fp32(scale).astype(np.float64)
    codes = nearest(w / step[..., None], gguf.quants.NVFP4.kvalues)
    return np.concatenate([scale, nibbles(codes.reshape(-1, 64), 8)], -1)
