//! A plan bound as a persistent kernel: one launch for many tokens.

use super::super::error::ExecuteError;
use super::super::placed::Placed;
use super::super::store::Store;
use super::error::PersistentError;
use super::fault::Names;
use super::launch::{PersistentLaunch, Running};
use super::mailbox::{Mailbox, PROGRESS_WORDS};
use super::operands;
use super::options::PersistentOptions;
use crate::graph::{Element, TensorType};
use crate::persistent::{Appended, Assigned, Schedule, ScheduleOptions, check};
use crate::plan::Plan;
use std::fmt;
use std::sync::Arc;
use warpwright_dsl::{Block, BuildError, any::AnyKernel};
use warpwright_kernels::Publish;
use warpwright_kernels::persistent::format::{BARRIER_WORDS, COUNTER_STRIDE};
use warpwright_runtime::{
    self as runtime, AnyBuffer, Binder, Buffer, CompiledKernel, PreparedLaunch, RuntimeError, Stream,
};

/// A plan for one token of one sequence, bound to the weights and states of a [`Store`] and to one persistent kernel
/// that runs it for many tokens: see [`Executable`](crate::Executable) for the common parts.
///
/// A launch begins with the current states, and leaves them as the same number of executions would. It has no inputs of
/// its own: the plan's inputs apply to all its tokens. Outputs are those of its last token.
pub struct Persistent {
    pub(super) placed: Placed,
    schedule: Schedule,
    assigned: Assigned,
    options: PersistentOptions,
    prepared: PreparedLaunch,
    /// What blocks wait by: zero when a launch begins.
    pub(super) words: Buffer<u32>,
    progress: Buffer<u32>,
    ends: Buffer<u32>,
    mailbox: Arc<Mailbox>,
    /// The launch that was issued last, until it is over.
    last: Option<Arc<Running>>,
}

/// Padding of the ids that end a text: no vocabulary has that many.
const NO_TOKEN: u32 = u32::MAX;

impl Plan {
    /// Binds the plan to a store like [`bind`](Self::bind), to be run as one launch for many tokens.
    ///
    /// # Errors
    ///
    /// Those of [`bind`](Self::bind), and reasons why the plan cannot be such a launch: see [`PersistentError`].
    pub fn bind_persistent(
        self,
        store: &mut Store,
        options: &PersistentOptions,
    ) -> Result<Persistent, PersistentError> {
        Persistent::new(Arc::new(self), store, options)
    }
}

impl Persistent {
    /// As [`Plan::bind_persistent`], for a plan that is bound several times.
    ///
    /// # Errors
    ///
    /// Those of [`Plan::bind_persistent`].
    pub fn new(
        plan: Arc<Plan>,
        store: &mut Store,
        options: &PersistentOptions,
    ) -> Result<Self, PersistentError> {
        // What stands against it is known before anything is laid out or allocated.
        let schedule = Persistent::schedule_of(&plan, options)?;
        Persistent::scheduled(plan, store, options, schedule)
    }

    /// The schedule of a plan.
    pub(in crate::run) fn schedule_of(
        plan: &Plan,
        options: &PersistentOptions,
    ) -> Result<Schedule, PersistentError> {
        schedule(plan, options)
    }

    /// As [`new`](Self::new), with the schedule that was made.
    pub(in crate::run) fn scheduled(
        plan: Arc<Plan>,
        store: &mut Store,
        options: &PersistentOptions,
        schedule: Schedule,
    ) -> Result<Self, PersistentError> {
        let kernel = store.device().kernel(&schedule.decoder(options.assignment));
        let kernel = kernel.map_err(|error| PersistentError::Kernel(Box::new(error)))?;
        let assigned = schedule.assign(blocks(&kernel, options)?, options.assignment)?;
        check(&schedule, &plan, &assigned).map_err(|fault| PersistentError::Fault(Box::new(fault)))?;
        #[allow(
            unsafe_code,
            reason = "the kernel follows addresses, which are made here and held against all rules"
        )]
        let prepare = |binder: Binder<'_>| {
            // SAFETY: each address that the kernel follows was bound under the contract of the kernel that it calls with
            // it. On a device that checks no access that one is bounded: `Device::operands` refuses others. The table of
            // addresses holds their buffers. What calls are made and in which order was held against the plan above,
            // and nobody else has a handle of the memory that says it.
            unsafe { binder.prepare_unbounded() }
        };
        Persistent::with(plan, store, options, kernel.into(), schedule, assigned, prepare)
    }

    /// Binds what was scheduled and assigned, as it is, and has the launch prepared.
    pub(super) fn with(
        plan: Arc<Plan>,
        store: &mut Store,
        options: &PersistentOptions,
        kernel: CompiledKernel,
        schedule: Schedule,
        assigned: Assigned,
        prepare: impl FnOnce(Binder<'_>) -> runtime::Result<PreparedLaunch>,
    ) -> Result<Self, PersistentError> {
        let placed = Placed::new(plan, store)?;
        let (stream, device) = (&placed.stream, store.device());
        let budget = options.budget(device.is_virtual());
        let names = Names::new(&placed, &schedule, &assigned, budget);
        let mailbox = Arc::new(Mailbox::new(device, capacity(options), names)?);
        let progress = stream.alloc_zeros::<u32>(PROGRESS_WORDS)?;
        let ends = stream.alloc_zeros::<u32>(options.ends.max(1) as usize)?;
        let externals: [(&str, AnyBuffer); 4] = [
            ("ends", ends.clone().into_any()),
            ("ring", mailbox.ring().clone().into_any()),
            ("control", mailbox.control().clone().into_any()),
            ("progress", progress.clone().into_any()),
        ];
        let (encoded, list) = operands::list(&placed, &schedule, &assigned, &externals)?;
        let counters = u64::from(encoded.counters) * u64::from(COUNTER_STRIDE);
        let words = stream.alloc_zeros::<u32>(BARRIER_WORDS as usize + counters as usize)?;
        let (items, bounds) = (stream.clone_htod(&encoded.items)?, stream.clone_htod(&encoded.bounds)?);
        let operands = list.upload(stream)?;
        let binder = kernel
            .bind()
            .buffer("operands", &operands)
            .buffer("items", &items)
            .buffer("bounds", &bounds)
            .buffer("barrier", words.slice(..BARRIER_WORDS as usize)?)
            .buffer("counters", words.slice(BARRIER_WORDS as usize..)?)
            .buffer("fault", mailbox.fault_words())
            .buffer("progress", &progress)
            .scalar("phases", encoded.phases)
            // The last op counts tokens, and ends the launch before that.
            .scalar("tokens", capacity(options))
            .scalar("budget", budget)
            .dim("operands", operands.len() as u64)
            .dim("items", assigned.items.len() as u64)
            .dim("counters", encoded.counters.into())
            .dim("blocks", encoded.blocks.into());
        let prepared = prepare(binder)?;
        let options = options.clone();
        Ok(Persistent {
            placed,
            schedule,
            assigned,
            options,
            prepared,
            words,
            progress,
            ends,
            mailbox,
            last: None,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.placed.plan
    }

    /// The stream that it runs on: the store's.
    pub fn stream(&self) -> &Stream {
        &self.placed.stream
    }

    /// The work of the launch for a token.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The assignment of the work to blocks.
    pub fn assigned(&self) -> &Assigned {
        &self.assigned
    }

    /// The options that it was bound with.
    pub fn options(&self) -> &PersistentOptions {
        &self.options
    }

    /// Blocks of the launch.
    pub fn blocks(&self) -> u32 {
        self.assigned.blocks
    }

    /// Names and types of the inputs, which the host writes.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, TensorType)> {
        self.placed.inputs()
    }

    /// Names and types of the outputs, which the host reads.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, TensorType)> {
        self.placed.outputs()
    }

    /// Writes an input completely, for the following launches.
    ///
    /// # Errors
    ///
    /// If there is no such input, or it has another type or length.
    pub fn write_input<T: runtime::Element>(&mut self, name: &str, values: &[T]) -> Result<(), ExecuteError> {
        self.placed.write_input(name, values)
    }

    /// Reads an output of the last token, in stream order, and waits for it.
    ///
    /// # Errors
    ///
    /// If there is no such output, if it has another type, and if the device fails.
    pub fn read_output<T: runtime::Element>(&self, name: &str) -> Result<Vec<T>, ExecuteError> {
        self.placed.read_output(name)
    }

    /// Whether states have moved in memory since this was bound.
    pub fn has_moved(&self) -> bool {
        self.placed.has_moved()
    }

    /// Issues one launch of at most `tokens` tokens, and returns. The launch ends earlier with one of `ends`, which is
    /// its last token, or when you stop it.
    ///
    /// The first token follows the current states; caches have room for all. This call waits for the previous launch,
    /// whose tokens you can still take; if it gave up or failed, its leftovers are cleared first.
    ///
    /// # Errors
    ///
    /// If states have moved or an input was not written; if `tokens` is 0 or exceeds the options, or there are too many
    /// `ends`; if the device refuses; and if the previous launch has failed and its [`PersistentLaunch`] was dropped
    /// before it reported the error.
    pub fn launch(&mut self, tokens: u32, ends: &[u32]) -> Result<PersistentLaunch, ExecuteError> {
        let refuse =
            |what, given: usize, min, max: u32| Err(ExecuteError::PersistentLimit { what, given, min, max });
        if !(1..=self.options.tokens).contains(&tokens) {
            return refuse("tokens", tokens as usize, 1, self.options.tokens);
        }
        if ends.len() > self.options.ends as usize {
            return refuse("ids that end a text", ends.len(), 0, self.options.ends);
        }
        self.wait_for_last()?;
        self.placed.must_be_ready()?;
        let stream = &self.placed.stream;
        if stream.is_capturing() {
            return Err(RuntimeError::Capturing { operation: "launch" }.into());
        }
        let first = self.mailbox.begin()?;
        let mut padded = ends.to_vec();
        padded.resize(self.ends.len(), NO_TOKEN);
        stream.memcpy_htod(&padded, &self.ends)?;
        let mut progress = [0; PROGRESS_WORDS];
        progress[Publish::LIMIT as usize] = tokens;
        stream.memcpy_htod(&progress, &self.progress)?;
        stream.memset_zeros(&self.words)?;
        stream.launch(&self.prepared)?;
        stream.memcpy_dtod(&self.progress, self.mailbox.outcome())?;
        let over = stream.record_event()?;
        let running = Arc::new(Running::new(self.mailbox.clone(), over, first));
        self.last = Some(running.clone());
        Ok(PersistentLaunch { running })
    }

    /// Waits for the launch before the next one.
    fn wait_for_last(&mut self) -> Result<(), ExecuteError> {
        let Some(last) = &self.last else { return Ok(()) };
        last.wait()?;
        if last.gave_up() {
            self.placed.clear_scratch()?;
        }
        // Whoever has the launch is told by it.
        let error = if Arc::strong_count(last) == 1 { last.untold() } else { None };
        self.last = None;
        error.map_or(Ok(()), Err)
    }
}

impl fmt::Debug for Persistent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Persistent");
        debug.field("kernel", &self.prepared.kernel()).field("blocks", &self.blocks());
        debug.field("phases", &self.schedule.phases.len()).finish_non_exhaustive()
    }
}

/// Tokens that the ring has room for.
fn capacity(options: &PersistentOptions) -> u32 {
    options.tokens.checked_next_power_of_two().unwrap_or(u32::MAX)
}

/// The work of the plan, and the token told to the host.
fn schedule(plan: &Plan, options: &PersistentOptions) -> Result<Schedule, PersistentError> {
    let publish = Publish::new(capacity(options), options.ends);
    publish.check().map_err(PersistentError::Option)?;
    if options.tokens == 0 {
        return Err(PersistentError::Option(BuildError::field("tokens", 0, "one at least")));
    }
    let name = &options.token;
    let outputs = || plan.tensors(crate::graph::Role::Output);
    let found = outputs().find(|&tensor| plan.program().info(tensor).name == *name);
    let known = || outputs().map(|tensor| plan.program().info(tensor).name.clone()).collect();
    let role = crate::graph::Role::Output;
    let unknown = || ExecuteError::Unknown { role, name: name.clone(), known: known() };
    let tensor = found.ok_or_else(unknown)?;
    let ty = plan.program().ty(tensor);
    if ty.element != Element::U32 || ty.shape.elements() != 1 {
        return Err(PersistentError::Token { name: name.clone(), ty });
    }
    let scheduling =
        ScheduleOptions { warps: options.warps, appended: vec![Appended::publish_token(tensor, publish)] };
    let schedule = Schedule::new(plan, &scheduling)?;
    // In a schedule of one phase the next token could say that it is the last while blocks still ask whether this was.
    if schedule.phases.len() < 2 {
        return Err(PersistentError::OnePhase);
    }
    Ok(schedule)
}

/// Blocks of the launch: what was asked for, if they are all resident at once.
fn blocks(kernel: &CompiledKernel, options: &PersistentOptions) -> Result<u32, PersistentError> {
    let rule = kernel.launch_rule();
    let (Block::Exactly([threads, ..]) | Block::AtMost([threads, ..])) = rule.block;
    let max = kernel.function().max_cooperative_grid(threads, rule.dynamic_shared);
    let name = || kernel.entry().to_owned();
    if max == 0 {
        let shared = u64::from(rule.static_shared) + u64::from(rule.dynamic_shared);
        return Err(PersistentError::NoBlock { kernel: name(), threads, shared });
    }
    let all = u32::try_from(max).unwrap_or(u32::MAX);
    match options.blocks {
        None => Ok(kernel.device().host_threads().unwrap_or(all).clamp(1, all)),
        Some(asked) if (1..=all).contains(&asked) => Ok(asked),
        Some(asked) => Err(PersistentError::Blocks { kernel: name(), asked, max }),
    }
}
