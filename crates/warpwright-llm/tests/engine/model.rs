//! A small Llama with random weights, as a file.

use warpwright_llm::gguf::write::GgufWriter;
use warpwright_llm::gguf::{Gguf, TensorFormat};

/// The sizes of a model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) layers: u32,
    pub(crate) hidden: u32,
    pub(crate) heads: u32,
    pub(crate) kv_heads: u32,
    pub(crate) head_dim: u32,
    pub(crate) ffn: u32,
    pub(crate) vocab: u32,
    pub(crate) context: u32,
    /// How many tokens a token sees at most.
    pub(crate) window: Option<u32>,
}

/// Numbers from -1 to 1, in an order that looks random and is the same every time.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        // splitmix64 (Steele, Lea and Flood 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// A file of that model; all matrices are `f32`.
pub(crate) fn gguf(sizes: Sizes, seed: u64) -> Gguf {
    changed(sizes, seed, |_, _| {})
}

/// The same, with changes to the numbers of tensors.
pub(crate) fn changed(sizes: Sizes, seed: u64, change: impl Fn(&str, &mut [f32])) -> Gguf {
    let Sizes { layers, hidden, heads, kv_heads, head_dim, ffn, vocab, context, window } = sizes;
    let mut file = GgufWriter::new();
    file.set("general.architecture", "llama");
    for (key, value) in [
        ("block_count", layers),
        ("embedding_length", hidden),
        ("attention.head_count", heads),
        ("attention.head_count_kv", kv_heads),
        ("attention.key_length", head_dim),
        ("attention.value_length", head_dim),
        ("rope.dimension_count", head_dim),
        ("feed_forward_length", ffn),
        ("vocab_size", vocab),
        ("context_length", context),
    ] {
        file.set(format!("llama.{key}"), value);
    }
    file.set("llama.attention.layer_norm_rms_epsilon", 1e-5f32);
    if let Some(window) = window {
        file.set("llama.attention.sliding_window", window);
    }
    let mut noise = Noise(seed);
    let mut tensor = |name: String, dims: &[u32], scale: f32, base: f32| {
        let count: u32 = dims.iter().product();
        let mut values: Vec<f32> = (0..count).map(|_| base + scale * noise.next()).collect();
        change(&name, &mut values);
        let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
        let dims: Vec<u64> = dims.iter().map(|&dim| dim.into()).collect();
        file.tensor(name, &dims, TensorFormat::F32, bytes);
    };
    let per = |k: u32| 1.7 / (k as f32).sqrt();
    tensor("token_embd.weight".into(), &[hidden, vocab], 1.7, 0.0);
    for layer in 0..layers {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        let (q, kv) = (heads * head_dim, kv_heads * head_dim);
        tensor(name("attn_norm"), &[hidden], 0.3, 1.0);
        tensor(name("attn_q"), &[hidden, q], per(hidden), 0.0);
        tensor(name("attn_k"), &[hidden, kv], per(hidden), 0.0);
        tensor(name("attn_v"), &[hidden, kv], per(hidden), 0.0);
        tensor(name("attn_output"), &[q, hidden], per(q), 0.0);
        tensor(name("ffn_norm"), &[hidden], 0.3, 1.0);
        tensor(name("ffn_gate"), &[hidden, ffn], per(hidden), 0.0);
        tensor(name("ffn_up"), &[hidden, ffn], per(hidden), 0.0);
        tensor(name("ffn_down"), &[ffn, hidden], per(ffn), 0.0);
    }
    tensor("output_norm.weight".into(), &[hidden], 0.3, 1.0);
    tensor("output.weight".into(), &[hidden, vocab], 4.0 * per(hidden), 0.0);
    let bytes = file.to_bytes().expect("a file");
    Gguf::from_bytes(bytes).expect("a model")
}
