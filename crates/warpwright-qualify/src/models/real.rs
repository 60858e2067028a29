//! The shapes of models that people run, by their published configurations.

use super::model::{Biases, Formats, ModelConfig};
use warpwright_graph::RopeParams;
use warpwright_kernels::{CacheDtype, RopePairs, WeightFormat};

impl ModelConfig {
    /// Llama-3.2-1B in Q4_K_M: its table is Q6_K, since it is tied.
    pub fn llama_3_2_1b() -> Self {
        ModelConfig {
            layers: 16,
            hidden: 2048,
            heads: 32,
            kv_heads: 8,
            head_dim: 64,
            ffn: 8192,
            vocab: 128_256,
            formats: Formats { embedding: WeightFormat::Q6K, ..Formats::q4_k_m() },
            biases: Biases::None,
            head_norms: false,
            tied: true,
            rope: llama_rope(64, true),
            epsilon: 1e-5,
            cache: CacheDtype::F16,
            max_seq_len: 8192,
        }
    }

    /// Llama-3-8B in Q4_K_M.
    pub fn llama_3_8b() -> Self {
        ModelConfig {
            layers: 32,
            hidden: 4096,
            heads: 32,
            kv_heads: 8,
            head_dim: 128,
            ffn: 14_336,
            vocab: 128_256,
            formats: Formats::q4_k_m(),
            tied: false,
            rope: llama_rope(128, false),
            ..Self::llama_3_2_1b()
        }
    }

    /// Qwen2.5-1.5B in Q4_K_M: q, k and v have biases.
    pub fn qwen_2_5_1_5b() -> Self {
        ModelConfig {
            layers: 28,
            hidden: 1536,
            heads: 12,
            kv_heads: 2,
            head_dim: 128,
            ffn: 8960,
            vocab: 151_936,
            biases: Biases::Qkv,
            rope: qwen_rope(),
            epsilon: 1e-6,
            ..Self::llama_3_2_1b()
        }
    }

    /// Qwen3-1.7B in Q4_K_M: heads of q and k go through norms.
    pub fn qwen_3_1_7b() -> Self {
        ModelConfig {
            layers: 28,
            hidden: 2048,
            heads: 16,
            kv_heads: 8,
            head_dim: 128,
            ffn: 6144,
            vocab: 151_936,
            head_norms: true,
            rope: qwen_rope(),
            epsilon: 1e-6,
            ..Self::llama_3_2_1b()
        }
    }

    /// Qwen3-4B in Q4_K_M.
    pub fn qwen_3_4b() -> Self {
        ModelConfig { layers: 36, hidden: 2560, heads: 32, ffn: 9728, ..Self::qwen_3_1_7b() }
    }

    /// Models of all kinds, by name.
    pub fn real() -> [(&'static str, Self); 4] {
        [
            ("Llama-3.2-1B", Self::llama_3_2_1b()),
            ("Llama-3-8B", Self::llama_3_8b()),
            ("Qwen2.5-1.5B", Self::qwen_2_5_1_5b()),
            ("Qwen3-1.7B", Self::qwen_3_1_7b()),
        ]
    }
}

/// GGUF files have the pairs of Llama side by side.
fn llama_rope(head_dim: u32, factors: bool) -> RopeParams {
    RopeParams { pairs: RopePairs::Interleaved, base: 5e5, factors, ..RopeParams::new(head_dim) }
}

fn qwen_rope() -> RopeParams {
    RopeParams { base: 1e6, ..RopeParams::new(128) }
}
