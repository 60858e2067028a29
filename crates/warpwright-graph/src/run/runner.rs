//! Steps of a model from token to token: planned and captured once for each shape, and again when a bound moves.
//!
//! A step is asked for by what it is for: so many sequences, so long. What was planned for that is used again; what
//! was not is planned, and the step says so and why. The runner knows no model: a function gives it the graph of a
//! shape.

use super::capture::Captured;
use super::error::{ExecuteError, StoreError};
use super::executable::Executable;
use super::execute::{Execution, execute_graph};
use super::store::Store;
use crate::dispatch::KernelDispatch;
use crate::graph::{ComputeGraph, Element, GraphError, Role, Shape, TensorType};
use crate::launch::PlanError;
use crate::options::PlanOptions;
use crate::plan::Plan;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use warpwright_runtime as runtime;

/// What a step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// One token of each sequence.
    Decode,
    /// So many tokens of all sequences together: prompts, or chunks of them.
    Prefill {
        /// Tokens of all sequences.
        tokens: u32,
    },
}

/// What a graph is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepShape {
    /// What it computes.
    pub kind: StepKind,
    /// Sequences.
    pub batch: u32,
    /// Tokens that the cache of a sequence has room for.
    pub max_seq_len: u32,
    /// Which of several graphs of such a shape: a number that means something to the function that builds them, and 0
    /// unless [`Runner::variant_step`] has asked for another.
    pub variant: u32,
}

/// How long sequences may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceBound {
    /// Tokens that caches have room for at first.
    pub initial: u32,
    /// Tokens that they have room for at most. Until then the room doubles whenever it is too small.
    pub limit: u32,
}

impl SequenceBound {
    /// Room for so many tokens, no more and no less.
    pub fn fixed(tokens: u32) -> Self {
        SequenceBound { initial: tokens, limit: tokens }
    }

    /// The room for sequences of a length, from what there is now; `None` beyond the limit.
    fn grown(self, now: u32, length: u32) -> Option<u32> {
        (length <= self.limit).then(|| match length <= now {
            true => now,
            false => length.max(now.saturating_mul(2)).min(self.limit),
        })
    }
}

/// Why a step was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replanned {
    /// It is the first of its kind.
    First {
        /// Which kind.
        kind: StepKind,
    },
    /// Steps of the kind were planned for another batch size.
    Batch {
        /// Sequences of the step before.
        from: u32,
        /// Sequences now.
        to: u32,
    },
    /// Prompts were planned for other numbers of tokens.
    Tokens {
        /// Tokens of the prompt before.
        from: u32,
        /// Tokens now.
        to: u32,
    },
    /// Steps of the kind were planned for another graph: see [`StepShape::variant`].
    Variant {
        /// The variant of the step before.
        from: u32,
        /// The variant now.
        to: u32,
    },
    /// Sequences became longer than caches had room for when the step was planned. What they hold was moved.
    Cache {
        /// Tokens that there was room for.
        from: u32,
        /// Tokens that there is room for now.
        to: u32,
    },
    /// The plan is the one that it was, but states have moved, to make room for more sequences: it was bound and
    /// captured again.
    Moved,
}

impl fmt::Display for Replanned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Replanned::First { kind: StepKind::Decode } => f.write_str("planned: the first token"),
            Replanned::First { kind: StepKind::Prefill { tokens } } => {
                write!(f, "planned: the first prompt, of {tokens} tokens")
            }
            Replanned::Batch { from, to } => {
                write!(f, "planned again: the batch has {to} sequences instead of {from}")
            }
            Replanned::Tokens { from, to } => {
                write!(f, "planned again: the prompt has {to} tokens instead of {from}")
            }
            Replanned::Variant { from, to } => {
                write!(f, "planned again: the graph is of variant {to} instead of {from}")
            }
            Replanned::Cache { from, to } => {
                write!(f, "planned again: caches have room for {to} tokens instead of {from}")
            }
            Replanned::Moved => {
                f.write_str("bound again: states have moved, to make room for more sequences")
            }
        }
    }
}

/// Why there is no step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The graph of a shape cannot be built.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The graph cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan cannot be bound or run.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// The store refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Sequences cannot be that long.
    #[error("a sequence of {length} tokens: there is room for {limit} at most")]
    TooLong {
        /// Tokens that were asked for.
        length: u32,
        /// The limit.
        limit: u32,
    },
}

/// What a model does from token to token.
///
/// States that the graphs of several shapes have under one name are one state. Of a state of several batch sizes,
/// smaller batches have the first sequences.
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
    /// The shapes of the last steps: a token, a prompt.
    last: [Option<Key>; 2],
    /// Steps so far.
    count: u64,
}

/// What gives the graph of a shape.
type Build = dyn Fn(&StepShape) -> Result<ComputeGraph, GraphError> + Send + Sync;

/// What a plan is found by: kind, sequences, variant.
type Key = (StepKind, u32, u32);

/// What is known of a shape that was asked for before.
struct Entry {
    plan: Arc<Plan>,
    max_seq_len: u32,
    /// Nothing where its states have moved.
    ready: Option<Ready>,
    /// The number of the step that it was used for last.
    used: u64,
}

/// Plans for prompts that are kept: those that were used last. Prompts have all lengths.
const KEPT_PROMPTS: usize = 8;

/// A plan that can run.
enum Ready {
    Captured(Box<Captured>),
    Eager(Box<Executable>),
}

impl Ready {
    fn executable(&self) -> &Executable {
        match self {
            Ready::Captured(captured) => captured.executable(),
            Ready::Eager(executable) => executable,
        }
    }

    fn executable_mut(&mut self) -> &mut Executable {
        match self {
            Ready::Captured(captured) => captured.executable_mut(),
            Ready::Eager(executable) => executable,
        }
    }
}

impl Runner {
    /// A runner of a model whose weights are in the store. `build` gives the graph of a shape; nothing is planned
    /// before it is asked for.
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
            last: [None; 2],
            count: 0,
        }
    }

    /// Runs steps launch by launch instead of capturing them: for dispatchers that wait for the device within a
    /// step, and to see the time of each.
    pub fn eager(mut self, eager: bool) -> Self {
        self.eager = eager;
        self
    }

    /// Weights and states.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Weights and states, to write them between steps.
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Tokens that caches have room for now.
    pub fn max_seq_len(&self) -> u32 {
        self.max_seq_len
    }

    /// A step of `batch` sequences, after which the longest has `length` tokens.
    ///
    /// Where that is longer than caches have room for, they grow and keep what they hold. A shape that is new, or
    /// that was planned for smaller caches, is planned, bound and captured; else what is there is used.
    pub fn step(&mut self, kind: StepKind, batch: u32, length: u32) -> Result<RunnerStep<'_>, RunnerError> {
        self.variant_step(0, kind, batch, length)
    }

    /// As [`step`](Self::step), of another graph with such a shape: one that computes logits only, say, or chooses
    /// tokens in another way. Variants have plans of their own, and share weights and states.
    pub fn variant_step(
        &mut self,
        variant: u32,
        kind: StepKind,
        batch: u32,
        length: u32,
    ) -> Result<RunnerStep<'_>, RunnerError> {
        let too_long = RunnerError::TooLong { length, limit: self.bound.limit };
        let max_seq_len = self.bound.grown(self.max_seq_len, length).ok_or(too_long)?;
        let shape = StepShape { kind, batch, max_seq_len, variant };
        let key = (kind, batch, variant);
        let replanned = self.why(shape);
        if let Some(why) = replanned {
            let plan = match (why, self.steps.get(&key)) {
                (Replanned::Moved, Some(entry)) => entry.plan.clone(),
                _ => Arc::new(Plan::new(&(self.build)(&shape)?, &self.options, &*self.dispatch)?),
            };
            self.make_room(&plan)?;
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

    /// Why a shape must be planned, or bound again; `None` where it is ready.
    fn why(&self, shape: StepShape) -> Option<Replanned> {
        let StepShape { kind, batch, max_seq_len, variant } = shape;
        match self.steps.get(&(kind, batch, variant)) {
            Some(entry) if entry.max_seq_len != max_seq_len => {
                return Some(Replanned::Cache { from: entry.max_seq_len, to: max_seq_len });
            }
            Some(entry) if entry.ready.as_ref().is_none_or(|ready| ready.executable().has_moved()) => {
                return Some(Replanned::Moved);
            }
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
            let needed = room(there, info.ty);
            if needed == there {
                continue;
            }
            // What is bound has memory that will be no state's any more, and that others need.
            self.steps.values_mut().for_each(|entry| entry.ready = None);
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

/// The type of a state that has room for what there is and for what a plan takes it for. What cannot be both is left
/// as the plan has it, and is the store's to refuse.
fn room(there: TensorType, needed: TensorType) -> TensorType {
    let (have, want) = (there.shape.dims(), needed.shape.dims());
    if have.len() != want.len() {
        return needed;
    }
    let mut dims = want.to_vec();
    if let (Some(dim), Some(&have)) = (dims.first_mut(), have.first()) {
        *dim = have.max(*dim);
    }
    if let (Element::Cache(_), Some(dim), Some(&have)) = (needed.element, dims.get_mut(2), have.get(2)) {
        *dim = have.max(*dim);
    }
    Shape::new(&dims).map_or(needed, |shape| TensorType { shape, ..needed })
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Runner");
        debug.field("store", &self.store).field("max_seq_len", &self.max_seq_len);
        debug.field("shapes", &self.steps.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// A step that is ready.
pub struct RunnerStep<'a> {
    ready: &'a mut Ready,
    dispatch: &'a dyn KernelDispatch,
    shape: StepShape,
    replanned: Option<Replanned>,
}

impl RunnerStep<'_> {
    /// What it is for.
    pub fn shape(&self) -> StepShape {
        self.shape
    }

    /// Why it was planned for this call; `None` where it was ready.
    pub fn replanned(&self) -> Option<Replanned> {
        self.replanned
    }

    /// Its plan, with its inputs and outputs.
    pub fn executable(&self) -> &Executable {
        self.ready.executable()
    }

    /// Writes an input: see [`Executable::write_input`].
    pub fn write_input<T: runtime::Element>(&mut self, name: &str, values: &[T]) -> Result<(), ExecuteError> {
        self.ready.executable_mut().write_input(name, values)
    }

    /// Issues the step, as one launch of a graph unless the runner is eager, and does not wait for it.
    pub fn run(&mut self) -> Result<(), ExecuteError> {
        match self.ready {
            Ready::Captured(captured) => captured.replay(),
            Ready::Eager(executable) => executable.issue(self.dispatch),
        }
    }

    /// Issues the step launch by launch through another dispatcher than the runner's: one that looks on, or leaves
    /// something out. The plan is that of the runner's.
    pub fn issue(&mut self, dispatch: &dyn KernelDispatch) -> Result<(), ExecuteError> {
        self.ready.executable_mut().issue(dispatch)
    }

    /// Runs the step, waits for it and says what the device counted.
    pub fn execute(&mut self) -> Result<Execution, ExecuteError> {
        match self.ready {
            Ready::Captured(captured) => captured.execute(),
            Ready::Eager(executable) => execute_graph(executable, self.dispatch),
        }
    }

    /// Reads an output: see [`Executable::read_output`].
    pub fn read_output<T: runtime::Element>(&self, name: &str) -> Result<Vec<T>, ExecuteError> {
        self.executable().read_output(name)
    }
}

impl fmt::Debug for RunnerStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RunnerStep");
        debug.field("shape", &self.shape).field("replanned", &self.replanned).finish_non_exhaustive()
    }
}
