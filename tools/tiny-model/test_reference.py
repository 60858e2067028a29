"""The exact forward agrees with llama.cpp on models of random f32 weights: what each architecture and
each way of scaling RoPE means is the same in both."""

import gguf
import numpy as np
import pytest

from llama import logits
from reference import Model, Session

HIDDEN, LAYERS, HEADS, KV_HEADS, FFN, VOCABULARY = 128, 2, 4, 2, 192, 320


def random_model(path, arch, head_dim=32, bias=False, head_norms=False, tied=False, rope_freqs=False,
                 scaling=None):
    rng = np.random.default_rng(7)
    normal = lambda *shape, std=0.1, mean=0.0: (mean + std * rng.standard_normal(shape)).astype(np.float32)
    out = gguf.GGUFWriter(path, arch)
    out.add_vocab_size(VOCABULARY)
    out.add_context_length(256)
    out.add_embedding_length(HIDDEN)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(FFN)
    out.add_head_count(HEADS)
    out.add_head_count_kv(KV_HEADS)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_freq_base(5000.0)
    if head_dim != HIDDEN // HEADS:
        out.add_key_length(head_dim)
        out.add_value_length(head_dim)
        out.add_rope_dimension_count(head_dim)
    if scaling:
        kind, factor = scaling
        out.add_rope_scaling_type(kind)
        out.add_rope_scaling_factor(factor)
        out.add_rope_scaling_orig_ctx_len(64)
    out.add_tokenizer_model("no_vocab")
    tensors = {"token_embd.weight": normal(VOCABULARY, HIDDEN, std=1), "output_norm.weight": normal(HIDDEN, mean=1)}
    if not tied:
        tensors["output.weight"] = normal(VOCABULARY, HIDDEN)
    if rope_freqs:
        tensors["rope_freqs.weight"] = np.linspace(1, 8, head_dim // 2, dtype=np.float32)
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        for name, rows, columns in [("attn_q", HEADS * head_dim, HIDDEN), ("attn_k", KV_HEADS * head_dim, HIDDEN),
                                    ("attn_v", KV_HEADS * head_dim, HIDDEN), ("attn_output", HIDDEN, HEADS * head_dim),
                                    ("ffn_gate", FFN, HIDDEN), ("ffn_up", FFN, HIDDEN), ("ffn_down", HIDDEN, FFN)]:
            tensors[at + name + ".weight"] = normal(rows, columns)
            if bias and name in ("attn_q", "attn_k", "attn_v"):
                tensors[at + name + ".bias"] = normal(rows, std=0.5)
        norms = ["attn_norm", "ffn_norm"]
        for name in norms:
            tensors[at + name + ".weight"] = normal(HIDDEN, mean=1)
        if head_norms:
            for name in ("attn_q_norm", "attn_k_norm"):
                tensors[at + name + ".weight"] = normal(head_dim, mean=1)
    for name, values in tensors.items():
        out.add_tensor(name, values)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


LINEAR, YARN = gguf.RopeScalingType.LINEAR, gguf.RopeScalingType.YARN
CASES = {
    "llama": dict(arch="llama"),
    "llama, tied": dict(arch="llama", tied=True),
    "llama, wide heads": dict(arch="llama", head_dim=64),
    "llama, rope_freqs": dict(arch="llama", rope_freqs=True),
    "llama, linear": dict(arch="llama", scaling=(LINEAR, 4.0)),
    "llama, yarn": dict(arch="llama", scaling=(YARN, 4.0)),
    "qwen2": dict(arch="qwen2", bias=True),
    "qwen2, yarn": dict(arch="qwen2", bias=True, tied=True, scaling=(YARN, 8.0)),
    "qwen3": dict(arch="qwen3", head_norms=True),
    "qwen3, wide heads": dict(arch="qwen3", head_norms=True, head_dim=64, tied=True),
}


def difference(a, b):
    return (np.linalg.norm(a - b, axis=-1) / np.linalg.norm(a, axis=-1)).max()


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_llama_cpp(case, tmp_path):
    path = str(tmp_path / "model.gguf")
    random_model(path, **CASES[case])
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, 100).tolist()
    exact = Session(Model(path)).extend(tokens)
    assert difference(exact, logits(path, tokens)) < 2e-5


def test_tokens_one_by_one_are_the_same(tmp_path):
    path = str(tmp_path / "model.gguf")
    random_model(path, **CASES["qwen3, wide heads"])
    model, tokens = Model(path), list(range(3, 40))
    session = Session(model)
    steps = np.concatenate([session.extend([t]) for t in tokens])
    assert difference(Session(model).extend(tokens), steps) < 1e-12
