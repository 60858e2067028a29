//! Steps of a model from token to token: planned and captured once for each shape, and again when a bound grows.
//!
//! A step is requested by its purpose: number of sequences and length. An existing plan is reused; otherwise a plan is
//! made, and the step reports why. The runner does not depend on models: a callback builds the graph of a shape.

mod persistent;
mod shape;
mod step;

pub use persistent::PersistentStep;
pub use shape::{Replanned, RunnerError, SequenceBound, StepKind, StepShape};
pub use step::RunnerStep;

use super::error::{ExecuteError, StoreError};
use super::executable::Executable;
use super::store::Store;
use crate::dispatch::KernelDispatch;
use crate::graph::{ComputeGraph, GraphError, Role, TensorType, grown};
use crate::options::PlanOptions;
use crate::plan::Plan;
use persistent::BoundVariant;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use step::Ready;

/// Runs a model from token to token.
///
/// States with the same name in the graphs of several shapes are one state. Smaller batches use the first sequences of
/// a state.
///
/// ```
/// use warpwright_graph::{
///     ComputeGraph, Element, KernelLibrary, PlanOptions, Replanned, Runner, SequenceBound, StepKind, StepShape,
///     Store, TensorType,
/// };
/// use warpwright_runtime::{Device, DeviceSpec};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A model that counts the tokens of each sequence.
/// let graph = |shape: &StepShape| {
///     let mut graph = ComputeGraph::new();
///     let count = graph.state("count", TensorType::new(Element::U32, [shape.batch]));
///     graph.advance("advance", &[count])?;
///     Ok(graph)
/// };
/// let device = Device::open(DeviceSpec::Vm)?;
/// let store = Store::new(&device.default_stream());
/// let options = PlanOptions::for_device(&device);
/// let mut runner = Runner::new(store, options, KernelLibrary, SequenceBound::fixed(64), graph);
/// for length in 1..=3 {
///     let mut step = runner.step(StepKind::Decode, 1, length)?;
///     assert_eq!(step.replanned().is_some(), length == 1);
///     assert_eq!(step.execute()?.graph_launches, 1);
/// }
/// let mut step = runner.step(StepKind::Decode, 2, 4)?;
/// assert_eq!(step.replanned(), Some(Replanned::Batch { from: 1, to: 2 }));
/// step.run()?;
/// assert_eq!(runner.store().read_state::<u32>("count")?, [4, 1]);
/// # Ok(())
/// # }
/// ```
pub struct Runner {
    store: Store,
    options: PlanOptions,
    dispatch: Box<dyn KernelDispatch>,
    bound: SequenceBound,
    max_seq_len: u32,
    build: Box<Build>,
    eager: bool,
    steps: HashMap<Key, Entry>,
    /// Bound persistent kernels, by variant.
    persistent: HashMap<u32, BoundVariant>,
    /// The shapes of the last steps: a token, a prompt.
    last: [Option<Key>; 2],
    /// Steps so far.
    count: u64,
}

/// What gives the graph of a shape.
type Build = dyn Fn(&StepShape) -> Result<ComputeGraph, GraphError> + Send + Sync;

/// What a plan is found by: kind, sequences, variant.
type Key = (StepKind, u32, u32);

/// The step of a shape that was requested before.
struct Entry {
    plan: Arc<Plan>,
    max_seq_len: u32,
    /// Nothing where its states have moved.
    ready: Option<Ready>,
    /// The number of the step that it was used for last.
    used: u64,
}

/// What there is of a shape.
#[derive(Clone, Copy)]
struct Known {
    max_seq_len: u32,
    /// Whether its states have moved.
    moved: bool,
}

impl Entry {
    fn known(&self) -> Known {
        let moved = self.ready.as_ref().is_none_or(|ready| ready.executable().has_moved());
        Known { max_seq_len: self.max_seq_len, moved }
    }
}

/// Plans for prompts that are kept: those that were used last. Prompts have all lengths.
const KEPT_PROMPTS: usize = 8;

impl Runner {
    /// A runner of a model whose weights are in the store. `build` returns the graph of a shape; nothing is planned
    /// before a step is requested.
    pub fn new(
        store: Store,
        options: PlanOptions,
        dispatch: impl KernelDispatch + 'static,
        bound: SequenceBound,
        build: impl Fn(&StepShape) -> Result<ComputeGraph, GraphError> + Send + Sync + 'static,
    ) -> Self {
        Runner {
            store,
            options,
            dispatch: Box::new(dispatch),
            bound,
            max_seq_len: bound.initial.min(bound.limit),
            build: Box::new(build),
            eager: false,
            steps: HashMap::new(),
            persistent: HashMap::new(),
            last: [None; 2],
            count: 0,
        }
    }

    /// Runs steps launch by launch instead of capturing them: for dispatchers that wait for the device within a step.
    pub fn eager(mut self, eager: bool) -> Self {
        self.eager = eager;
        self
    }

    /// The weights and states.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The weights and states, to write them between steps.
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// The current capacity of caches, in tokens.
    pub fn max_seq_len(&self) -> u32 {
        self.max_seq_len
    }

    /// A step of `batch` sequences, after which the longest has `length` tokens.
    ///
    /// If that exceeds the capacity of the caches, they grow and keep their contents. A new shape, or one that was
    /// planned for smaller caches, is planned, bound and captured; otherwise the existing step is used.
    pub fn step(&mut self, kind: StepKind, batch: u32, length: u32) -> Result<RunnerStep<'_>, RunnerError> {
        self.variant_step(0, kind, batch, length)
    }

    /// Like [`step`](Self::step), but for another graph of such a shape: for example one that computes logits only, or
    /// chooses tokens in another way. Variants have their own plans, and share weights and states.
    pub fn variant_step(
        &mut self,
        variant: u32,
        kind: StepKind,
        batch: u32,
        length: u32,
    ) -> Result<RunnerStep<'_>, RunnerError> {
        let shape = self.shape(variant, kind, batch, length)?;
        let key = (kind, batch, variant);
        let known = self.steps.get(&key).map(Entry::known);
        let replanned = self.why(shape, known);
        if replanned.is_some() {
            let plan = self.plan(shape)?;
            self.make_room(&plan)?;
            let max_seq_len = shape.max_seq_len;
            self.max_seq_len = max_seq_len;
            let executable = Executable::new(plan.clone(), &mut self.store)?;
            let ready = match self.eager {
                true => Ready::Eager(Box::new(executable)),
                false => Ready::Captured(Box::new(executable.capture(&*self.dispatch)?)),
            };
            self.steps.insert(key, Entry { plan, max_seq_len, ready: Some(ready), used: u64::MAX });
            self.forget_prompts();
        }
        self.last[usize::from(kind != StepKind::Decode)] = Some(key);
        self.count += 1;
        let moved = || RunnerError::Execute(ExecuteError::Moved);
        let entry = self.steps.get_mut(&key).ok_or_else(moved)?;
        entry.used = self.count;
        let ready = entry.ready.as_mut().ok_or_else(moved)?;
        Ok(RunnerStep { ready, dispatch: &*self.dispatch, shape, replanned })
    }

    /// Forgets the plans for prompts that were used longest ago, where there are too many.
    fn forget_prompts(&mut self) {
        let prompts = || self.steps.iter().filter(|((kind, ..), _)| *kind != StepKind::Decode);
        if prompts().count() > KEPT_PROMPTS
            && let Some(oldest) = prompts().min_by_key(|(_, entry)| entry.used).map(|(&key, _)| key)
        {
            self.steps.remove(&oldest);
        }
    }

    /// What a step is that leaves sequences of a length.
    fn shape(&self, variant: u32, kind: StepKind, batch: u32, length: u32) -> Result<StepShape, RunnerError> {
        let too_long = RunnerError::TooLong { length, limit: self.bound.limit };
        let max_seq_len = self.bound.grown(self.max_seq_len, length).ok_or(too_long)?;
        Ok(StepShape { kind, batch, max_seq_len, variant })
    }

    /// The plan of a shape: the one that is there, in whichever form, or a new one.
    fn plan(&self, shape: StepShape) -> Result<Arc<Plan>, RunnerError> {
        let StepShape { kind, batch, max_seq_len, variant } = shape;
        let of_step = self.steps.get(&(kind, batch, variant)).map(|entry| (entry.max_seq_len, &entry.plan));
        let of_persistent = match (kind, batch) {
            (StepKind::Decode, 1) => self.persistent.get(&variant).map(BoundVariant::plan),
            _ => None,
        };
        let known = of_step.into_iter().chain(of_persistent).find(|(room, _)| *room == max_seq_len);
        Ok(match known {
            Some((_, plan)) => plan.clone(),
            None => Arc::new(Plan::new(&(self.build)(&shape)?, &self.options, &*self.dispatch)?),
        })
    }

    /// Why a shape must be planned, or bound again; `None` where it is ready. `known` is what there is of that form.
    fn why(&self, shape: StepShape, known: Option<Known>) -> Option<Replanned> {
        let StepShape { kind, batch, max_seq_len, variant } = shape;
        match known {
            Some(known) if known.max_seq_len != max_seq_len => {
                return Some(Replanned::Cache { from: known.max_seq_len, to: max_seq_len });
            }
            Some(known) if known.moved => return Some(Replanned::Moved),
            Some(_) => return None,
            None => {}
        }
        if max_seq_len != self.max_seq_len {
            return Some(Replanned::Cache { from: self.max_seq_len, to: max_seq_len });
        }
        Some(match (kind, self.last[usize::from(kind != StepKind::Decode)]) {
            (_, Some((.., from))) if from != variant => Replanned::Variant { from, to: variant },
            (_, Some((_, from, _))) if from != batch => Replanned::Batch { from, to: batch },
            (StepKind::Prefill { tokens: to }, Some((StepKind::Prefill { tokens: from }, ..))) => {
                Replanned::Tokens { from, to }
            }
            _ => Replanned::First { kind },
        })
    }

    /// Makes states large enough for a plan. Where there is no memory for one, all are as they were, as far as there
    /// is memory for that: shorter sequences go on.
    fn make_room(&mut self, plan: &Plan) -> Result<(), StoreError> {
        let mut moved: Vec<(&str, TensorType)> = Vec::new();
        for state in plan.tensors(Role::State) {
            let info = plan.program().info(state);
            let Some((_, there)) = self.store.states().find(|(name, _)| *name == info.name) else { continue };
            let needed = grown(there, info.ty);
            if needed == there {
                continue;
            }
            // What is bound has memory that will be no state's any more, and that others need.
            self.steps.values_mut().for_each(|entry| entry.ready = None);
            self.persistent.values_mut().for_each(BoundVariant::let_go);
            if let Err(error) = self.store.resize_state(&info.name, needed) {
                for (name, before) in moved {
                    // Where there is no memory for this either, the next step says so.
                    let _ = self.store.resize_state(name, before);
                }
                return Err(error);
            }
            moved.push((&info.name, there));
        }
        Ok(())
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Runner");
        debug.field("store", &self.store).field("max_seq_len", &self.max_seq_len);
        debug.field("shapes", &self.steps.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
