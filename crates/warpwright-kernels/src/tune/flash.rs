//! FlashAttention: the queries and keys of a tile.

use super::{DeviceModel, Launch, Shape};
use crate::attention::flash::{KEYS, ROWS};
use crate::{Dtype, FlashAttention};
use warpwright_dsl::{BuildError, Config, Kernel};

/// The launch of a [`FlashAttention`].
#[derive(Clone, Debug, PartialEq, Config)]
#[config(name = "flash")]
pub struct FlashShape {
    /// Query heads.
    #[field(range = 1..=65535)]
    pub heads: u32,
    /// Heads of keys and values.
    #[field(range = 1..=65535)]
    pub kv_heads: u32,
    /// Elements of a head.
    #[field(range = 16..=256)]
    pub head_dim: u32,
    /// Element type of queries.
    #[field(default = "f16")]
    pub q: Dtype,
    /// Element type of keys and values.
    #[field(default = "f16")]
    pub kv: Dtype,
    /// Whether queries see no later keys.
    #[field(default = true)]
    pub causal: bool,
    /// Queries of the longest sequence; `any` for a choice that does not depend on their number.
    #[field(none = "any", range = 1..=u32::MAX)]
    pub tokens: Option<u32>,
}

/// The tiles of a block and of its steps. How many keys a tile has fixes the order of the sums.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct FlashChoice {
    /// Queries of a block.
    #[field(domain = ROWS)]
    pub rows: u32,
    /// Keys of a tile.
    #[field(domain = KEYS)]
    pub keys: u32,
}

impl FlashChoice {
    /// Applies the choice to a kernel.
    pub fn apply(&self, kernel: FlashAttention) -> FlashAttention {
        FlashAttention { rows: Some(self.rows), keys: Some(self.keys), ..kernel }
    }
}

impl FlashShape {
    /// The shape of a kernel's launch, for so many queries, or any.
    pub fn of(kernel: &FlashAttention, tokens: Option<u32>) -> Self {
        let &FlashAttention { heads, kv_heads, head_dim, q, kv, causal, .. } = kernel;
        FlashShape { heads, kv_heads, head_dim, q, kv, causal, tokens }
    }

    fn kernel(&self) -> FlashAttention {
        let &FlashShape { heads, kv_heads, head_dim, q, kv, causal, tokens } = self;
        let factors = [q, kv].into_iter().find(|&dtype| dtype != Dtype::F32).unwrap_or(Dtype::F16);
        let max_seq_len = tokens.unwrap_or(4096).min(1 << 24);
        FlashAttention {
            q,
            kv,
            out: q,
            factors,
            causal,
            ..FlashAttention::new(heads, kv_heads, head_dim, max_seq_len)
        }
    }
}

impl Shape for FlashShape {
    type Choice = FlashChoice;

    /// Half as many queries in a block where the device would have fewer blocks than multiprocessors.
    fn estimate(&self, device: &DeviceModel) -> FlashChoice {
        let kernel = self.kernel();
        let most = kernel.rows();
        let tokens = self.tokens.unwrap_or(u32::MAX);
        let blocks = u64::from(self.heads) * u64::from(tokens.div_ceil(most));
        let rows = if blocks < u64::from(device.multiprocessors) { most.min(64) } else { most };
        FlashChoice { rows, keys: kernel.keys(device.arch) }
    }

    fn check(&self, choice: &FlashChoice) -> Result<(), BuildError> {
        choice.apply(self.kernel()).check()
    }

    fn space(&self) -> Vec<FlashChoice> {
        let keys = [16, 32, 48, 64, 128];
        [64, 128].into_iter().flat_map(|rows| keys.map(|keys| FlashChoice { rows, keys })).collect()
    }

    fn launch(&self, choice: &FlashChoice) -> Option<Launch> {
        let tokens = u64::from(self.tokens.unwrap_or(512));
        let numbers = [("batch", 1), ("q_len", tokens), ("kv_len", tokens)];
        Some(Launch::new(choice.apply(self.kernel()), &numbers))
    }
}
