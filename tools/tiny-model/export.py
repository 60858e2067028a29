"""Writes a checkpoint as GGUF in f32, and quantises that to Q4_K_M with llama.cpp's own quantiser."""

import argparse
import ctypes
import json
import os

import gguf
import llama_cpp
import torch

from tokenizer import BOS, EOS

# Our name of a layer's weight -> its name in a GGUF.
LAYER = {"attn_norm": "attn_norm", "q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output",
         "ffn_norm": "ffn_norm", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}


def gguf_name(name):
    if name.startswith("layers."):
        _, layer, weight, _ = name.split(".")
        return f"blk.{layer}.{LAYER[weight]}.weight"
    return {"embedding": "token_embd", "norm": "output_norm", "output": "output"}[name.removesuffix(".weight")] + ".weight"


def write_vocabulary(out, path):
    """The tokenizer as GGUF metadata. Its ids are its own, so tokens go in the order of their ids."""
    with open(path) as f:
        model = json.load(f)["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    assert [model["vocab"][t] for t in tokens] == list(range(len(tokens)))
    control = {BOS, EOS}
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokens)
    out.add_token_types([gguf.TokenType.CONTROL if t in control else gguf.TokenType.NORMAL for t in tokens])
    out.add_token_merges([" ".join(m) for m in model["merges"]])
    out.add_bos_token_id(model["vocab"][BOS])
    out.add_eos_token_id(model["vocab"][EOS])
    out.add_add_bos_token(True)
    out.add_add_eos_token(False)


def write_f32(checkpoint, tokenizer, path):
    c = checkpoint["config"]
    out = gguf.GGUFWriter(path, "llama")
    out.add_type(gguf.GGUFType.MODEL)
    out.add_name("Warpwright Tiny Stories")
    out.add_description("Short stories in simple English, from a grammar of their own")
    out.add_languages(["en"])
    out.add_license("MIT OR Apache-2.0")
    out.add_size_label("6M")
    out.add_file_type(gguf.LlamaFileType.ALL_F32)
    out.add_quantization_version(gguf.GGML_QUANT_VERSION)
    out.add_vocab_size(c["vocabulary"])
    out.add_context_length(c["context"])
    out.add_embedding_length(c["hidden"])
    out.add_block_count(c["layers"])
    out.add_feed_forward_length(c["ffn"])
    out.add_head_count(c["heads"])
    out.add_head_count_kv(c["kv_heads"])
    out.add_key_length(c["head_dim"])
    out.add_value_length(c["head_dim"])
    out.add_rope_dimension_count(c["head_dim"])
    out.add_rope_freq_base(c["rope_base"])
    out.add_layer_norm_rms_eps(c["eps"])
    write_vocabulary(out, tokenizer)
    for name, weight in checkpoint["model"].items():
        out.add_tensor(gguf_name(name), weight.float().contiguous().numpy())
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def quantise(source, target):
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M
    params.nthread = 1
    error = llama_cpp.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(params))
    if error:
        raise SystemExit(f"llama.cpp cannot quantise {source}: error {error}")


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--checkpoint", default="build/checkpoint.pt")
    args.add_argument("--tokenizer", default="build/tokenizer.json")
    args.add_argument("--f32", default="build/tiny-f32.gguf")
    args.add_argument("-o", "--out", default="../../crates/warpwright/models/tiny.gguf")
    args = args.parse_args()
    checkpoint = torch.load(args.checkpoint, weights_only=True)
    write_f32(checkpoint, args.tokenizer, args.f32)
    quantise(args.f32, args.out)
    print(f"{args.out}: {os.path.getsize(args.out)} bytes, of {checkpoint['record']}")


if __name__ == "__main__":
    main()
