//! Options for loading and running a model.

use super::error::EngineError;
use super::sampler::SamplerOptions;
use warpwright_graph::{Arithmetic, device_model};
use warpwright_kernels::CacheDtype;
use warpwright_kernels::tune::Tuning;
use warpwright_runtime::Device;

/// The longest chunk.
const MAX_CHUNK: u32 = 1 << 16;

/// The most tokens of a launch.
const MAX_TOKENS_PER_LAUNCH: u32 = 1 << 16;

/// Options for loading and running a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// The device.
    pub device: Device,
    /// How kernels are chosen for the device. Default: by estimates.
    pub tuning: Tuning,
    /// How activations are multiplied. Default: [`Arithmetic::Exact`].
    pub arithmetic: Arithmetic,
    /// The element type of the KV cache. Default: `f16`.
    pub cache: CacheDtype,
    /// Maximum number of tokens, prompts and answers together. Default: 4096, or the model's maximum if that is less.
    pub context: Option<u32>,
    /// Initial capacity of the cache in tokens. Default: 512, or the context if that is less. The capacity doubles
    /// whenever it is too small, up to the context; each time steps are planned again.
    pub room: u32,
    /// How tokens are decoded. Default: as graphs.
    pub executor: Executor,
    /// Maximum number of tokens per launch of [`Executor::Persistent`]. Default: 128. A launch makes fewer tokens if
    /// the cache has no room for more, and ends at a token that ends the text.
    pub tokens_per_launch: u32,
    /// Blocks of such a launch. Default: as many as can be resident at once, and on a virtual GPU as many as it has
    /// threads.
    pub blocks: Option<u32>,
    /// Whether to use graphs if an executor is not supported; [`Engine::fallback`](super::Engine::fallback) reports it.
    /// If false, that is an error. Default: true.
    pub fall_back: bool,
    /// Tokens of a prompt that are computed at once. Default: 256, and 16 on a virtual GPU, where larger chunks cost
    /// the same per token and only respond later.
    pub chunk: Option<u32>,
    /// Whether [`Engine::decode`](super::Engine::decode) issues the step after the one that it waits for, or the launch
    /// after a prompt. Default: true on devices, so that they are busy while the host handles a token; false on virtual
    /// GPUs, where the host's time is negligible and an unneeded step is slow.
    pub ahead: Option<bool>,
    /// How tokens are chosen.
    pub sampler: SamplerOptions,
}

impl EngineOptions {
    /// The default options for a device.
    pub fn new(device: Device) -> Self {
        EngineOptions {
            tuning: Tuning::new(device_model(&device)),
            device,
            arithmetic: Arithmetic::Exact,
            cache: CacheDtype::F16,
            context: None,
            room: 512,
            executor: Executor::Graph,
            tokens_per_launch: 128,
            blocks: None,
            fall_back: true,
            chunk: None,
            ahead: None,
            sampler: SamplerOptions::default(),
        }
    }
}

/// How the launches of a step are issued. All executors give the same tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Executor {
    /// Recorded once and replayed as one graph launch.
    #[default]
    Graph,
    /// One by one.
    Eager,
    /// A persistent kernel: one launch for many tokens, which continues with the token that it has chosen. Prompts are
    /// computed as with `Graph`.
    Persistent,
}

impl Executor {
    /// Its name: `graph`, `eager` or `persistent`.
    pub fn name(self) -> &'static str {
        match self {
            Executor::Graph => "graph",
            Executor::Eager => "eager",
            Executor::Persistent => "persistent",
        }
    }
}

/// What was chosen where nothing was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) context: u32,
    pub(super) chunk: u32,
    /// The fewest tokens that are computed at once; fewer are computed one by one.
    pub(super) least: u32,
    pub(super) ahead: bool,
}

impl EngineOptions {
    /// What is asked for, or what there is, for sequences that may be so long.
    pub(super) fn choose(&self, context: u32) -> Result<Chosen, EngineError> {
        // On a virtual GPU what is computed for padding costs as much as what is wanted: a chunk of sixteen as much as
        // some ten single steps.
        let (chunk, least) = if self.device.is_virtual() { (16, 10) } else { (256, 2) };
        let chunk = self.chunk.unwrap_or(chunk);
        if !(1..=MAX_CHUNK).contains(&chunk) {
            let rule = format!("from 1 to {MAX_CHUNK}");
            return Err(EngineError::Option { option: "the chunk", value: chunk.to_string(), rule });
        }
        if !(1..=MAX_TOKENS_PER_LAUNCH).contains(&self.tokens_per_launch) {
            let (option, value) = ("the number of tokens of a launch", self.tokens_per_launch.to_string());
            let rule = format!("from 1 to {MAX_TOKENS_PER_LAUNCH}");
            return Err(EngineError::Option { option, value, rule });
        }
        if self.blocks == Some(0) {
            let (option, value, rule) = ("the number of blocks", "0".into(), "1 or more".into());
            return Err(EngineError::Option { option, value, rule });
        }
        let ahead = self.ahead.unwrap_or(!self.device.is_virtual());
        Ok(Chosen { context, chunk, least: least.min(chunk), ahead })
    }
}
