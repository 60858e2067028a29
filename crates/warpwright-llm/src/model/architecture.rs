//! The architectures: one decoder with a few differences, which are data.
//!
//! A decoder that differs from these in nothing but what a row can say is added as a row.

use super::error::ModelError;
use std::fmt;
use warpwright_kernels::{Activation, RopePairs};

/// What distinguishes the models of a family from those of another.
///
/// All of them are decoders of the Llama kind: RMS norms before attention and before a gated feed-forward
/// network, rotary positions, grouped heads, and biases wherever a file has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Architecture {
    /// What a file calls it in `general.architecture`; the keys of its parameters begin with that.
    pub name: &'static str,
    /// Which elements of a head turn together, in the order that files of this architecture store rows of q and k.
    pub rope_pairs: RopePairs,
    /// Whether each head of q and k goes through a norm before it is turned: `attn_q_norm`, `attn_k_norm`.
    pub head_norms: bool,
    /// The activation of the gate of the feed-forward network.
    pub activation: Activation,
}

impl Architecture {
    /// Those that are known.
    pub const ALL: &'static [Architecture] = &[
        // Llama 1 to 3.x, Mistral, and others that were converted to it.
        Architecture {
            name: "llama",
            rope_pairs: RopePairs::Interleaved,
            head_norms: false,
            activation: Activation::Silu,
        },
        // Qwen1.5, Qwen2, Qwen2.5: with biases of q, k and v.
        Architecture {
            name: "qwen2",
            rope_pairs: RopePairs::Neox,
            head_norms: false,
            activation: Activation::Silu,
        },
        Architecture {
            name: "qwen3",
            rope_pairs: RopePairs::Neox,
            head_norms: true,
            activation: Activation::Silu,
        },
    ];

    /// The architecture of that name.
    ///
    /// # Errors
    ///
    /// [`ModelError::Architecture`], which says which are known.
    pub fn named(name: &str) -> Result<&'static Architecture, ModelError> {
        let found = Self::ALL.iter().find(|architecture| architecture.name == name);
        found.ok_or_else(|| ModelError::Architecture {
            name: name.into(),
            known: Self::ALL.iter().map(|architecture| architecture.name).collect::<Vec<_>>().join(", "),
        })
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
