"""Models with random weights as GGUF files, with tokens and the exact logits after each of them.

    make.py FOLDER [--only NAME]

For each model `NAME.gguf`, `NAME.json` (a list of tokens) and `NAME.npy` (float64, a row for each token), by
`../tiny-model/reference.py`. The same name is the same model each time.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
import zlib

import gguf
import numpy as np
from quantise import TENSOR_SCALE, Type, quantise

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tiny-model"))
import reference  # noqa: E402

# Formats of matrices by name, as quantisers of files choose them: for those whose rows are no multiple of 256 others.
Q4_K_M = "Q4_K_M"
Q2_TO_IQ4 = "Q2_TO_IQ4"
QKV = ("attn_q", "attn_k", "attn_v")
ALL = QKV + ("attn_output", "ffn_gate", "ffn_up", "ffn_down")


@dataclasses.dataclass
class Model:
    """What is asked of a model. `more` are parameters beside its sizes."""

    arch: str
    kind: object
    layers: int = 2
    hidden: int = 256
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    ffn: int = 512
    vocab: int = 320
    biases: tuple = ()
    tied: bool = False
    factors: bool = False
    vectors: object = Type.F32
    more: dict = dataclasses.field(default_factory=dict)


YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32}

MODELS = {
    "llama-q4_k_m": Model("llama", Q4_K_M, layers=3, factors=True, more={"rope.freq_base": 500000.0}),
    "llama-q5_k-yarn": Model("llama", Type.Q5_K, more=YARN),
    "llama-q8_0-mqa-80": Model("llama", Type.Q8_0, hidden=160, kv_heads=1, head_dim=80, ffn=224, tied=True),
    "llama-f16-biases": Model("llama", Type.F16, hidden=200, heads=5, kv_heads=5, head_dim=40, ffn=333, biases=ALL, vectors=Type.BF16),
    "llama-f32-100-linear": Model("llama", Type.F32, hidden=77, heads=3, kv_heads=1, head_dim=100, ffn=99, vocab=211, more={"rope.scaling.type": "linear", "rope.scaling.factor": 2.0}),
    "qwen2-q6_k": Model("qwen2", Type.Q6_K, biases=QKV, more={"rope.freq_base": 1000000.0}),
    "qwen2-q4_0-tied": Model("qwen2", Type.Q4_0, hidden=128, head_dim=32, ffn=160, biases=QKV, tied=True),
    "qwen2-bf16-128": Model("qwen2", Type.BF16, hidden=256, heads=2, kv_heads=1, head_dim=128, biases=QKV + ("output",)),
    "qwen2-q4_k-yarn": Model("qwen2", Type.Q4_K, biases=QKV, more=YARN | {"rope.scaling.attn_factor": 0.9}),
    "qwen3-q4_k_m": Model("qwen3", Q4_K_M, head_dim=128, tied=True),
    "qwen3-q8_0-48": Model("qwen3", Type.Q8_0, hidden=96, heads=8, kv_heads=4, head_dim=48, ffn=160),
    "qwen3-f16-256-part": Model("qwen3", Type.F16, layers=1, hidden=64, heads=2, kv_heads=2, head_dim=256, ffn=96, more={"rope.dimension_count": 64}),
    "qwen2-q4_k_m-rows-of-896": Model("qwen2", Q4_K_M, layers=1, hidden=896, heads=14, kv_heads=2, ffn=1216, biases=QKV, tied=True),
    "llama-q4_k_m-rows-of-576": Model("llama", Q4_K_M, layers=1, hidden=576, heads=9, kv_heads=3, ffn=768, tied=True),
    "llama-q2_k-to-iq4": Model("llama", Q2_TO_IQ4),
    "qwen3-q3_k": Model("qwen3", Type.Q3_K),
    "qwen2-q2_k": Model("qwen2", Type.Q2_K, biases=QKV),
    "llama-q4_1": Model("llama", Type.Q4_1, hidden=96, head_dim=32, heads=3, kv_heads=1, ffn=160),
    "qwen2-q5_1": Model("qwen2", Type.Q5_1, hidden=224, heads=7, kv_heads=7, head_dim=32, ffn=96, biases=QKV),
    "llama-iq4_xs": Model("llama", Type.IQ4_XS),
    "qwen3-mxfp4": Model("qwen3", Type.MXFP4, hidden=160, ffn=224, head_dim=32),
    "llama-nvfp4": Model("llama", Type.NVFP4, hidden=192, head_dim=64, heads=3, kv_heads=3, ffn=320),
    "qwen3-f32-8": Model("qwen3", Type.F32, hidden=60, heads=6, kv_heads=3, head_dim=8, ffn=50, more={"rope.scale_linear": 4.0}),
}


class File:
    """A model's file as it is written."""

    def __init__(self, name, model, path):
        self.name, self.model = name, model
        self.writer = gguf.GGUFWriter(path, model.arch)

    def random(self, tensor):
        """Numbers that are this tensor's, whatever others there are."""
        return np.random.default_rng(zlib.crc32(f"{self.name} {tensor}".encode()))

    def number(self, key, value):
        key = f"{self.model.arch}.{key}"
        match value:
            case str():
                self.writer.add_string(key, value)
            case float():
                self.writer.add_float32(key, value)
            case _:
                self.writer.add_uint32(key, value)

    def matrix(self, name, n, k, deviation=None):
        kind = self.model.kind
        if kind == Q4_K_M:
            kind = Type.Q6_K if name == "output" or name.endswith(("attn_v", "ffn_down")) else Type.Q4_K
        if kind == Q2_TO_IQ4:
            of_part = {"attn_q": Type.IQ4_XS, "attn_k": Type.Q2_K, "attn_v": Type.Q5_K, "attn_output": Type.Q3_K}
            of_part |= {"ffn_gate": Type.IQ4_NL, "ffn_up": Type.IQ4_NL, "ffn_down": Type.IQ4_XS}
            kind = of_part.get(name.split(".")[-1], Type.Q6_K)
        if k % gguf.GGML_QUANT_SIZES[kind][0]:
            kind = {Type.Q4_K: Type.Q5_0, Type.Q6_K: Type.Q8_0}[kind]
        values = self.random(name).normal(0, deviation or k**-0.5, (n, k))
        self.writer.add_tensor(f"{name}.weight", quantise(values, kind), raw_dtype=kind)
        if kind == Type.NVFP4:
            self.vector(f"{name}.scale", np.array([TENSOR_SCALE]), Type.F32)
            self.vector(f"{name}.input_scale", np.array([0.5]), Type.F32)

    def vector(self, name, values, kind=None):
        kind = kind or self.model.vectors
        data = quantise(values[None], kind)[0]
        self.writer.add_tensor(name, data, raw_dtype=kind)

    def norm(self, name, n):
        """About 1; a few are large, as in trained models."""
        random = self.random(name)
        weights = random.uniform(0.5, 1.5, n) * np.where(random.random(n) < 0.02, 3, 1)
        self.vector(f"{name}.weight", weights)

    def write(self):
        m = self.model
        sizes = {
            "block_count": m.layers,
            "context_length": 2048,
            "embedding_length": m.hidden,
            "feed_forward_length": m.ffn,
            "attention.head_count": m.heads,
            "attention.head_count_kv": m.kv_heads,
            "attention.layer_norm_rms_epsilon": 1e-6,
        }
        if m.heads * m.head_dim != m.hidden:
            sizes |= {"attention.key_length": m.head_dim, "attention.value_length": m.head_dim}
        for key, value in (sizes | m.more).items():
            self.number(key, value)
        self.matrix("token_embd", m.vocab, m.hidden, deviation=1.0)
        self.norm("output_norm", m.hidden)
        if not m.tied:
            self.matrix("output", m.vocab, m.hidden)
        if m.factors:
            turned = m.more.get("rope.dimension_count", m.head_dim)
            self.vector("rope_freqs.weight", self.random("rope_freqs").uniform(1, 8, turned // 2), Type.F32)
        if "output" in m.biases:
            self.vector("output.bias", self.random("output.bias").normal(0, 0.3, m.vocab))
        for layer in range(m.layers):
            self.layer(f"blk.{layer}.")
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()

    def layer(self, at):
        m = self.model
        q, kv = m.heads * m.head_dim, m.kv_heads * m.head_dim
        self.norm(at + "attn_norm", m.hidden)
        self.norm(at + "ffn_norm", m.hidden)
        if m.arch == "qwen3":
            self.norm(at + "attn_q_norm", m.head_dim)
            self.norm(at + "attn_k_norm", m.head_dim)
        for part, n, k in (
            ("attn_q", q, m.hidden),
            ("attn_k", kv, m.hidden),
            ("attn_v", kv, m.hidden),
            ("attn_output", m.hidden, q),
            ("ffn_gate", m.ffn, m.hidden),
            ("ffn_up", m.ffn, m.hidden),
            ("ffn_down", m.hidden, m.ffn),
        ):
            self.matrix(at + part, n, k)
            if part in m.biases:
                self.vector(f"{at}{part}.bias", self.random(f"{at}{part}.bias").normal(0, 0.3, n))


def make(name, folder):
    """Writes a model, its tokens and its logits; the paths of the three."""
    model = MODELS[name]
    path = folder / f"{name}.gguf"
    File(name, model, path).write()
    tokens = np.random.default_rng(zlib.crc32(name.encode())).integers(0, model.vocab, 24).tolist()
    (folder / f"{name}.json").write_text(json.dumps(tokens))
    np.save(folder / f"{name}.npy", reference.Session(reference.Model(path)).extend(tokens))
    return path, folder / f"{name}.json", folder / f"{name}.npy"


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("folder", type=pathlib.Path)
    args.add_argument("--only", choices=MODELS)
    args = args.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in [args.only] if args.only else MODELS:
        print(make(name, args.folder)[0])


if __name__ == "__main__":
    main()
