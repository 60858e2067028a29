//! Steps as a persistent kernel: one launch for many tokens of one sequence.

use super::super::error::ExecuteError;
use super::super::persistent::{Persistent, PersistentLaunch, PersistentOptions};
use super::{Known, Replanned, Runner, RunnerError, StepKind, StepShape};
use crate::plan::Plan;
use std::fmt;
use std::sync::Arc;
use warpwright_runtime as runtime;

/// A variant's bound persistent kernel.
pub(super) struct BoundVariant {
    plan: Arc<Plan>,
    max_seq_len: u32,
    options: PersistentOptions,
    /// `None` if its states have moved.
    persistent: Option<Box<Persistent>>,
}

impl BoundVariant {
    /// The room that caches have in the plan, and the plan.
    pub(super) fn plan(&self) -> (u32, &Arc<Plan>) {
        (self.max_seq_len, &self.plan)
    }

    /// Drops the bound kernel.
    pub(super) fn let_go(&mut self) {
        self.persistent = None;
    }

    fn known(&self) -> Known {
        let moved = self.persistent.as_ref().is_none_or(|persistent| persistent.has_moved());
        Known { max_seq_len: self.max_seq_len, moved }
    }
}

impl Runner {
    /// Up to `tokens` decode steps of one sequence in one launch; after the first of them the sequence has `length`
    /// tokens. The result is that of the same number of steps of [`StepKind::Decode`].
    ///
    /// Caches grow for all of them as in [`variant_step`](Self::variant_step), and the plan is that of such steps. The
    /// dispatcher is not called when they run. A running launch of any step continues; this work is queued after it.
    ///
    /// # Errors
    ///
    /// Those of [`variant_step`](Self::variant_step), and [`RunnerError::Persistent`] if the step cannot be such a
    /// launch: [`RunnerError::is_unsupported`] returns whether the steps can be run one by one. In that case only a
    /// plan has been made.
    pub fn persistent_step(
        &mut self,
        variant: u32,
        length: u32,
        tokens: u32,
        options: &PersistentOptions,
    ) -> Result<PersistentStep<'_>, RunnerError> {
        let last = length.saturating_add(tokens.saturating_sub(1));
        let shape = self.shape(variant, StepKind::Decode, 1, last)?;
        let known = self.persistent.get(&variant);
        let other = known.is_some_and(|known| known.options != *options);
        let why = self.why(shape, known.map(BoundVariant::known));
        let replanned = why.or(other.then_some(Replanned::Options));
        if replanned.is_some() {
            let plan = self.plan(shape)?;
            let schedule = Persistent::schedule_of(&plan, options)?;
            let room = self.make_room(&plan);
            // What is there of the variant has memory that the new one may need.
            self.persistent.remove(&variant);
            room?;
            let max_seq_len = shape.max_seq_len;
            self.max_seq_len = max_seq_len;
            let persistent = Persistent::scheduled(plan.clone(), &mut self.store, options, schedule)?;
            let (options, persistent) = (options.clone(), Some(Box::new(persistent)));
            self.persistent.insert(variant, BoundVariant { plan, max_seq_len, options, persistent });
        }
        self.last[0] = Some((StepKind::Decode, 1, variant));
        self.count += 1;
        let bound = self.persistent.get_mut(&variant).and_then(|bound| bound.persistent.as_deref_mut());
        let persistent = bound.ok_or(RunnerError::Execute(ExecuteError::Moved))?;
        Ok(PersistentStep { persistent, shape, tokens, replanned })
    }
}

/// Prepared steps, to be run as one launch.
pub struct PersistentStep<'a> {
    persistent: &'a mut Persistent,
    shape: StepShape,
    tokens: u32,
    replanned: Option<Replanned>,
}

impl PersistentStep<'_> {
    /// The shape of each step.
    pub fn shape(&self) -> StepShape {
        self.shape
    }

    /// Why they were planned by this call; `None` if they were ready.
    pub fn replanned(&self) -> Option<Replanned> {
        self.replanned
    }

    /// Their plan with its inputs and outputs, and its schedule.
    pub fn persistent(&self) -> &Persistent {
        self.persistent
    }

    /// Writes an input: see [`Persistent::write_input`].
    ///
    /// # Errors
    ///
    /// Those of [`Persistent::write_input`].
    pub fn write_input<T: runtime::Element>(&mut self, name: &str, values: &[T]) -> Result<(), ExecuteError> {
        self.persistent.write_input(name, values)
    }

    /// Issues the launch, of at most the requested number of tokens: see [`Persistent::launch`].
    ///
    /// # Errors
    ///
    /// Those of [`Persistent::launch`].
    pub fn launch(&mut self, ends: &[u32]) -> Result<PersistentLaunch, ExecuteError> {
        self.persistent.launch(self.tokens, ends)
    }
}

impl fmt::Debug for PersistentStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("PersistentStep");
        debug.field("shape", &self.shape).field("tokens", &self.tokens).field("replanned", &self.replanned);
        debug.finish_non_exhaustive()
    }
}
