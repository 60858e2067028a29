//! What an engine is and has, for people and programs.

use super::load::Engine;
use super::options::Executor;
use super::persistent::PersistentStatistics;
use std::fmt;
use warpwright_graph::{Arithmetic, StoreStatistics};
use warpwright_kernels::CacheDtype;
use warpwright_runtime::PoolStatistics;

/// What an engine holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineStatistics {
    /// Tokens of the sequence.
    pub position: usize,
    /// Tokens that the cache has room for. It grows up to the context.
    pub room: u32,
    /// Weights and states on the device, those of the cache included.
    pub store: StoreStatistics,
    /// What the pool of the device has done, for all that use it.
    pub pool: PoolStatistics,
    /// What persistent launches have done.
    pub persistent: PersistentStatistics,
}

/// How an engine does what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// The architecture of the model.
    pub architecture: &'static str,
    /// Numbers of the model that were learnt.
    pub parameters: u64,
    /// The device.
    pub device: String,
    /// How activations are multiplied.
    pub arithmetic: Arithmetic,
    /// What the cache holds.
    pub cache: CacheDtype,
    /// How tokens are decoded: by the executor that is used, which may be another one than was asked for.
    pub executor: Executor,
    /// Tokens of a persistent launch at most.
    pub tokens_per_launch: u32,
    /// Blocks of a persistent launch; nothing where another executor is used.
    pub blocks: Option<u32>,
    /// Tokens of a sequence at most.
    pub context: u32,
    /// Tokens of a prompt that are computed at once.
    pub chunk: u32,
    /// Fewer tokens than that are computed one by one.
    pub least_chunk: u32,
    /// Whether a step is issued ahead.
    pub ahead: bool,
}

impl Engine {
    /// What it holds now.
    pub fn statistics(&self) -> EngineStatistics {
        EngineStatistics {
            position: self.position(),
            room: self.runner.max_seq_len(),
            store: self.runner.store().statistics(),
            pool: self.device().pool_statistics(),
            persistent: self.launched,
        }
    }

    /// How it does what it does.
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
