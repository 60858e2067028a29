//! Properties and statistics of an engine, for people and programs.

use super::load::Engine;
use super::options::Executor;
use super::persistent::PersistentStatistics;
use std::fmt;
use warpwright_graph::{Arithmetic, StoreStatistics};
use warpwright_kernels::CacheDtype;
use warpwright_runtime::PoolStatistics;

/// The current contents of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineStatistics {
    /// Tokens of the sequence.
    pub position: usize,
    /// Current capacity of the cache in tokens. It grows up to the context.
    pub room: u32,
    /// Weights and states on the device, including the cache.
    pub store: StoreStatistics,
    /// Statistics of the device's memory pool, for all its users.
    pub pool: PoolStatistics,
    /// Statistics of persistent launches.
    pub persistent: PersistentStatistics,
}

/// The configuration of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// The architecture of the model.
    pub architecture: &'static str,
    /// Number of learnt parameters of the model.
    pub parameters: u64,
    /// The device.
    pub device: String,
    /// How activations are multiplied.
    pub arithmetic: Arithmetic,
    /// The element type of the KV cache.
    pub cache: CacheDtype,
    /// The executor in use, which may differ from the requested one.
    pub executor: Executor,
    /// Maximum number of tokens of a persistent launch.
    pub tokens_per_launch: u32,
    /// Blocks of a persistent launch; `None` for other executors.
    pub blocks: Option<u32>,
    /// Maximum number of tokens of a sequence.
    pub context: u32,
    /// Tokens of a prompt that are computed at once.
    pub chunk: u32,
    /// Fewer tokens than this are computed one by one.
    pub least_chunk: u32,
    /// Whether a step is issued ahead.
    pub ahead: bool,
}

impl Engine {
    /// The current contents of the engine.
    pub fn statistics(&self) -> EngineStatistics {
        EngineStatistics {
            position: self.position(),
            room: self.runner.max_seq_len(),
            store: self.runner.store().statistics(),
            pool: self.device().pool_statistics(),
            persistent: self.launched,
        }
    }

    /// The configuration of the engine.
    pub fn describe(&self) -> Description {
        Description {
            architecture: self.model.architecture().name,
            parameters: self.model.parameters(),
            device: self.device().properties().name.clone(),
            arithmetic: self.options.arithmetic,
            cache: self.options.cache,
            executor: self.executor(),
            tokens_per_launch: self.options.tokens_per_launch,
            blocks: (self.executor() == Executor::Persistent).then_some(self.launched.blocks),
            context: self.context.tokens,
            chunk: self.chosen.chunk,
            least_chunk: self.chosen.least,
            ahead: self.chosen.ahead,
        }
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millions = self.parameters as f64 / 1e6;
        write!(f, "{}, {millions:.1} M parameters, on {}: ", self.architecture, self.device)?;
        write!(f, "{} arithmetic, cache {}, ", self.arithmetic.name(), self.cache)?;
        write!(f, "context {}, prompts in chunks of {}", self.context, self.chunk)?;
        if self.least_chunk > 2 {
            write!(f, " and fewer than {} token by token", self.least_chunk)?;
        }
        write!(f, ", {} executor", self.executor.name())?;
        match self.blocks {
            Some(blocks) => {
                write!(f, " of {blocks} blocks, up to {} tokens a launch", self.tokens_per_launch)
            }
            None if self.ahead => f.write_str(", a step ahead"),
            None => Ok(()),
        }
    }
}
