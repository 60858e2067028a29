//! Decoding by a persistent kernel: the length of launches, and the fallback.

use super::error::EngineError;
use super::load::Engine;
use super::options::Executor;
use std::fmt;
use warpwright_graph::{PersistentLaunch, PersistentOptions, PersistentStep, RunnerError};

/// The fallback for an unsupported executor, and the reason.
#[derive(Debug)]
#[non_exhaustive]
pub struct Fallback {
    /// The requested executor.
    pub asked: Executor,
    /// The executor in use.
    pub used: Executor,
    /// Why the device or the model does not support the requested executor.
    pub why: RunnerError,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "executor {}: {}; using {}", self.asked.name(), self.why, self.used.name())
    }
}

/// Statistics of persistent launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PersistentStatistics {
    /// Launches so far.
    pub launches: u64,
    /// Tokens that were read from them.
    pub tokens: u64,
    /// Blocks of a launch, all of them resident.
    pub blocks: u32,
    /// Grid barriers per token.
    pub barriers_per_token: u32,
}

impl PersistentStatistics {
    /// The difference to an earlier reading, for launches of the same kind.
    pub fn since(&self, before: &PersistentStatistics) -> PersistentStatistics {
        PersistentStatistics {
            launches: self.launches - before.launches,
            tokens: self.tokens - before.tokens,
            ..*self
        }
    }

    /// Launches per token read; `None` if no token was read.
    pub fn launches_per_token(&self) -> Option<f64> {
        (self.tokens > 0).then(|| self.launches as f64 / self.tokens as f64)
    }
}

impl Engine {
    /// The fallback in use, if the device or the model does not support the requested executor. It may start at any
    /// time, because another way of choosing tokens has another plan.
    pub fn fallback(&self) -> Option<&Fallback> {
        self.fallback.as_ref()
    }

    /// What decodes.
    pub(super) fn executor(&self) -> Executor {
        self.fallback.as_ref().map_or(self.options.executor, |fallback| fallback.used)
    }

    /// Makes a step of decoding ready, by the executor that is used.
    pub(super) fn make_ready(&mut self) -> Result<(), EngineError> {
        if !self.launches(1)? {
            self.decode_step(self.options.sampler.outcome(), 1)?;
        }
        Ok(())
    }

    /// Whether tokens are decoded by launches of many, of which the next can make a sequence of `length` tokens. Where that
    /// is wanted and cannot be, graphs are used from now on.
    fn launches(&mut self, length: u32) -> Result<bool, EngineError> {
        if self.executor() != Executor::Persistent {
            return Ok(false);
        }
        let asked = Executor::Persistent;
        let figures = self.persistent_step(length, 1).map(|step| {
            let persistent = step.persistent();
            (persistent.blocks(), persistent.schedule().phases.len() as u32)
        });
        match figures {
            Ok((blocks, barriers_per_token)) => {
                self.launched = PersistentStatistics { blocks, barriers_per_token, ..self.launched };
                Ok(true)
            }
            Err(why) if !why.is_unsupported() => Err(self.context.no_step(length, why)),
            Err(why) if self.options.fall_back => {
                self.fallback = Some(Fallback { asked, used: Executor::Graph, why });
                Ok(false)
            }
            Err(why) => Err(EngineError::Executor { executor: asked, why }),
        }
    }

    /// Steps that are one launch, of so many tokens, the first of which makes a sequence of `length` tokens.
    fn persistent_step(&mut self, length: u32, tokens: u32) -> Result<PersistentStep<'_>, RunnerError> {
        let variant = self.outcomes.number(self.options.sampler.outcome());
        let mut options = PersistentOptions::default();
        options.blocks = self.options.blocks;
        options.tokens = self.options.tokens_per_launch;
        options.ends = options.ends.max(self.ends.len() as u32);
        self.runner.persistent_step(variant, length, tokens, &options)
    }

    /// Issues a launch at the end of the cache, of as many tokens as are wanted, as the cache has room for, and as
    /// launches may have; nothing where another executor is used.
    pub(super) fn issue_launch(&mut self, wanted: usize) -> Result<Option<PersistentLaunch>, EngineError> {
        let length = self.sequence.held as u32 + 1;
        if !self.launches(length)? {
            return Ok(None);
        }
        // A cache that is to grow grows when its room is used up, as with other executors: in which order numbers are
        // summed up may depend on the room.
        let room = self.runner.max_seq_len().saturating_sub(length) + 1;
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        let tokens = self.options.tokens_per_launch.min(room).min(wanted).max(1);
        let ends = self.ends.clone();
        let launch = self.persistent_step(length, tokens)?.launch(&ends)?;
        self.launched.launches += 1;
        // States go on as it does.
        self.sequence.ready = false;
        Ok(Some(launch))
    }
}

/// Tokens that end a text, as far as a device is told: others end it on the host.
const MAX_ENDS: usize = 1024;

/// What the device is told of the tokens that end a text, and that what is chosen where there is none ends it too.
pub(super) fn ends(ids: &[u32], vocab: u32) -> Vec<u32> {
    let known = ids.iter().copied().filter(|&id| id < vocab).take(MAX_ENDS);
    known.chain([u32::MAX]).collect()
}
