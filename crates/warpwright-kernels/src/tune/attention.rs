//! Decode attention: how many blocks share a sequence.

use super::{DeviceModel, Launch, Shape};
use crate::attention::incremental::WARPS;
use crate::attention::split::{MAX_SPLITS, MIN_CHUNK};
use crate::{CacheDtype, IncrementalAttention};
use warpwright_dsl::{BuildError, Config, Kernel};

/// The launch of an [`IncrementalAttention`].
#[derive(Clone, Debug, PartialEq, Config)]
#[config(name = "attention")]
pub struct AttentionShape {
    /// Query heads.
    #[field(range = 1..=1024)]
    pub heads: u32,
    /// Heads of the cache.
    #[field(range = 1..=1024)]
    pub kv_heads: u32,
    /// Elements of a head.
    #[field(range = 32..=256)]
    pub head_dim: u32,
    /// Element type of the cache.
    #[field(default = "f16")]
    pub cache: CacheDtype,
    /// Maximum number of tokens of a sequence.
    #[field(range = 1..=u32::MAX)]
    pub length: u32,
    /// Sequences; `any` for a choice that does not depend on their number.
    #[field(none = "any", range = 1..=u32::MAX, default = 1)]
    pub batch: Option<u32>,
}

/// How many blocks share a sequence. This fixes the order of the sums.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct AttentionChoice {
    /// Blocks that share a sequence.
    #[field(range = 1..=MAX_SPLITS)]
    pub splits: u32,
    /// Warps of a block.
    #[field(domain = WARPS, default = 4)]
    pub warps: u32,
}

impl AttentionChoice {
    /// Applies the choice to a kernel.
    pub fn apply(&self, kernel: IncrementalAttention) -> IncrementalAttention {
        let &AttentionChoice { splits, warps } = self;
        IncrementalAttention { splits, warps, ..kernel }
    }
}

impl AttentionShape {
    /// The shape of a kernel's launch, for sequences of up to `length` tokens and this batch, or any batch.
    pub fn of(kernel: &IncrementalAttention, length: u32, batch: Option<u32>) -> Self {
        let &IncrementalAttention { heads, kv_heads, head_dim, cache, .. } = kernel;
        AttentionShape { heads, kv_heads, head_dim, cache, length: length.min(kernel.max_seq_len), batch }
    }

    fn kernel(&self) -> IncrementalAttention {
        let &AttentionShape { heads, kv_heads, head_dim, cache, length, .. } = self;
        IncrementalAttention { cache, ..IncrementalAttention::new(heads, kv_heads, head_dim, length) }
    }
}

impl Shape for AttentionShape {
    type Choice = AttentionChoice;

    /// As many blocks share a sequence as are resident at once, as long as each has 256 tokens; one where the heads of the
    /// batch fill the device already.
    fn estimate(&self, device: &DeviceModel) -> AttentionChoice {
        let kernel = self.kernel();
        let batch = u64::from(self.batch.unwrap_or(1));
        let blocks = batch * u64::from(self.kv_heads) * u64::from(kernel.passes());
        let slots = u64::from(device.multiprocessors) * u64::from(device.resident(&kernel.launch()));
        let max = u64::from(self.length / MIN_CHUNK);
        let splits = (slots / blocks.max(1)).min(max).clamp(1, MAX_SPLITS.into());
        AttentionChoice { splits: splits as u32, warps: kernel.warps }
    }

    fn check(&self, choice: &AttentionChoice) -> Result<(), BuildError> {
        choice.apply(self.kernel()).check()
    }

    fn space(&self) -> Vec<AttentionChoice> {
        let splits = (0..).map(|power| 1 << power).take_while(|&splits| splits <= MAX_SPLITS);
        let splits = splits.filter(|&splits| splits == 1 || splits <= self.length / MIN_CHUNK);
        splits.flat_map(|splits| [2, 4, 8].map(|warps| AttentionChoice { splits, warps })).collect()
    }

    fn launch(&self, choice: &AttentionChoice) -> Option<Launch> {
        let numbers = [("batch", self.batch.unwrap_or(1).into()), ("length", self.length.into())];
        Some(Launch::new(choice.apply(self.kernel()), &numbers))
    }
}
