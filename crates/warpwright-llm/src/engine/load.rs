//! The engine, and how it is loaded.

use super::context::{Context, not_loaded};
use super::error::EngineError;
use super::inbox::Inbox;
use super::options::{Chosen, EngineOptions, Executor};
use super::persistent::{Fallback, PersistentStatistics};
use super::sampler::SamplerOptions;
use super::sequence::Sequence;
use crate::gguf::Gguf;
use crate::model::{GraphOptions, LoadProgress, ModelConfig, Outcome, load_weights};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use warpwright_graph::{
    Element, KernelLibrary, PlanOptions, Runner, RunnerStep, SequenceBound, StepKind, StepShape, Store,
    TensorType,
};
use warpwright_kernels::CacheDtype;
use warpwright_runtime::{Device, Stream};

/// A model on a device, with one sequence of tokens.
///
/// The sequence consists of prompts and generated tokens. [`prefill`](Self::prefill) adds a prompt.
/// [`decode`](Self::decode) chooses a token, adds it and returns it. [`truncate`](Self::truncate) goes back to a
/// prefix, whose keys and values stay in the cache.
///
/// A device error that a call has not waited for is returned by a later call. After any error the engine is in the
/// state before the failed step, and can be used again.
///
/// Several engines may share a device: each has its own stream and memory.
pub struct Engine {
    /// Before what it works on: a launch that is running is stopped first.
    pub(super) sequence: Sequence,
    pub(super) model: Arc<ModelConfig>,
    pub(super) runner: Runner,
    pub(super) stream: Stream,
    pub(super) options: EngineOptions,
    pub(super) context: Context,
    pub(super) chosen: Chosen,
    pub(super) outcomes: Arc<Outcomes>,
    pub(super) inbox: Inbox,
    /// Whether the numbers of the sampler are in their states.
    pub(super) sampler_written: bool,
    /// Tokens that end a text.
    pub(super) ends: Vec<u32>,
    /// Why graphs are used, where something else was asked for.
    pub(super) fallback: Option<Fallback>,
    pub(super) launched: PersistentStatistics,
}

/// What graphs were asked for: variants of the runner are places in this list.
#[derive(Default)]
pub(super) struct Outcomes(Mutex<Vec<Outcome>>);

impl Outcomes {
    pub(super) fn number(&self, outcome: Outcome) -> u32 {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|known| *known == outcome).unwrap_or_else(|| {
            known.push(outcome);
            known.len() - 1
        });
        at as u32
    }

    fn get(&self, number: u32) -> Outcome {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(number as usize).copied().unwrap_or(Outcome::Cached)
    }
}

impl Engine {
    /// Loads the model of a file and prepares a decode step. The file is not needed afterwards. `progress` is called
    /// for each tensor.
    ///
    /// # Errors
    ///
    /// [`EngineError::Model`] for an unknown model, [`EngineError::Option`] for unsupported options, and the device's
    /// errors if it lacks memory or a kernel.
    pub fn load(
        gguf: &Gguf,
        options: EngineOptions,
        progress: impl FnMut(LoadProgress<'_>),
    ) -> Result<Engine, EngineError> {
        let model = Arc::new(ModelConfig::from_gguf(gguf)?);
        options.sampler.check()?;
        let context = Context::new(options.context, &model)?;
        let chosen = options.choose(context.tokens)?;
        let stream = options.device.new_stream()?;
        let mut store = Store::new(&stream);
        load_weights(gguf, &model, &mut store, progress).map_err(|error| not_loaded(error, &model))?;
        for (name, element) in STATES {
            store.add_state(name, TensorType::new(element, [1]))?;
        }
        let outcomes = Arc::new(Outcomes::default());
        let room = options.room.clamp(1, chosen.context);
        let bound = SequenceBound { initial: room, limit: chosen.context };
        let mut plan_options = PlanOptions::of(options.tuning.clone());
        plan_options.arithmetic = options.arithmetic;
        let (graphs, known, cache) = (model.clone(), outcomes.clone(), options.cache);
        let graph = move |shape: &StepShape| {
            graphs.graph(shape, &GraphOptions { cache, outcome: known.get(shape.variant) })
        };
        let runner = Runner::new(store, plan_options, KernelLibrary, bound, graph)
            .eager(options.executor == Executor::Eager);
        let inbox = Inbox::new(&options.device)?;
        let mut engine = Engine {
            sequence: Sequence::default(),
            model,
            runner,
            stream,
            options,
            context,
            chosen,
            outcomes,
            inbox,
            sampler_written: false,
            ends: super::persistent::ends(&[], 0),
            fallback: None,
            launched: PersistentStatistics::default(),
        };
        engine.make_ready()?;
        // Matrices are brought into planes now, and not while somebody waits for the first token.
        engine.stream.synchronize()?;
        Ok(engine)
    }

    /// The model.
    pub fn model(&self) -> &ModelConfig {
        &self.model
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.options.device
    }

    /// The maximum length of a sequence.
    pub fn context(&self) -> Context {
        self.context
    }

    /// The element type of the KV cache.
    pub fn cache(&self) -> CacheDtype {
        self.options.cache
    }

    /// How tokens are chosen.
    pub fn sampler(&self) -> SamplerOptions {
        self.options.sampler
    }

    /// A step of one token, after which the cache holds `length`.
    pub(super) fn decode_step(
        &mut self,
        outcome: Outcome,
        length: u32,
    ) -> Result<RunnerStep<'_>, EngineError> {
        let variant = self.outcomes.number(outcome);
        let step = self.runner.variant_step(variant, StepKind::Decode, 1, length);
        step.map_err(|error| self.context.no_step(length, error))
    }

    /// A step of several tokens, after which the cache holds `length`.
    pub(super) fn chunk_step(
        &mut self,
        outcome: Outcome,
        tokens: u32,
        length: u32,
    ) -> Result<RunnerStep<'_>, EngineError> {
        let variant = self.outcomes.number(outcome);
        let step = self.runner.variant_step(variant, StepKind::Prefill { tokens }, 1, length);
        step.map_err(|error| self.context.no_step(length, error))
    }
}

/// States that the host writes, of one sequence.
const STATES: [(&str, Element); 12] = [
    ("ids", Element::U32),
    ("positions", Element::U32),
    ("lengths", Element::U32),
    ("seeds", Element::U64),
    ("steps", Element::U32),
    ("temperatures", Element::F32),
    ("top_ks", Element::U32),
    ("top_ps", Element::F32),
    ("min_ps", Element::F32),
    ("repeats", Element::F32),
    ("frequencies", Element::F32),
    ("presences", Element::F32),
];

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Engine");
        debug.field("architecture", &self.model.architecture().name).field("options", &self.options);
        debug.field("tokens", &self.tokens().len()).finish_non_exhaustive()
    }
}
