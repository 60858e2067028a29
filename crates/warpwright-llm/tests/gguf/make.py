#!/usr/bin/env python3
"""Regenerates the GGUF files of this folder with the `gguf` package from PyPI (0.17 or later).

    python3 make.py

What is in them is what `python.rs` expects.
"""
from pathlib import Path

import gguf
import numpy as np

HERE = Path(__file__).resolve().parent


def types():
    """A key of every type, and arrays; tensors of several formats."""
    writer = gguf.GGUFWriter(HERE / "types.gguf", "llama")
    writer.add_custom_alignment(64)
    writer.add_uint8("test.u8", 200)
    writer.add_int8("test.i8", -100)
    writer.add_uint16("test.u16", 60000)
    writer.add_int16("test.i16", -30000)
    writer.add_uint32("test.u32", 4000000000)
    writer.add_int32("test.i32", -2000000000)
    writer.add_uint64("test.u64", 1 << 63)
    writer.add_int64("test.i64", -(1 << 63))
    writer.add_float32("test.f32", 0.1)
    writer.add_float64("test.f64", 0.1)
    writer.add_bool("test.bool", True)
    writer.add_string("test.string", "naïve 🦀")
    writer.add_array("test.strings", ["<s>", "▁a", "b\n"])
    writer.add_array("test.ints", [1, -2, 3])
    writer.add_array("test.floats", [0.5, -1.5])
    writer.add_array("test.bools", [True, False])
    values = np.linspace(-1, 1, 2 * 256, dtype=np.float32).reshape(2, 256)
    for name in ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q5_1", "TQ2_0"]:
        kind = gguf.GGMLQuantizationType[name]
        writer.add_tensor(name.lower(), gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.add_tensor("ids", np.arange(6, dtype=np.int32).reshape(1, 2, 3))
    finish(writer)


def split():
    """Four tensors in two parts."""
    writer = gguf.GGUFWriter(HERE / "split.gguf", "llama", split_max_tensors=2)
    for i in range(4):
        writer.add_tensor(f"t{i}", np.full((2, 3), i, dtype=np.float32))
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


types()
split()
