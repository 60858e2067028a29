//! Steps that stay on the device: one launch for many tokens of one sequence.

use super::super::error::ExecuteError;
use super::super::persistent::{Persistent, PersistentLaunch, PersistentOptions};
use super::{Known, Replanned, Runner, RunnerError, StepKind, StepShape};
use crate::plan::Plan;
use std::fmt;
use std::sync::Arc;
use warpwright_runtime as runtime;

/// What is known of a variant that was asked for before.
pub(super) struct BoundVariant {
    plan: Arc<Plan>,
    max_seq_len: u32,
    options: PersistentOptions,
    /// Nothing where its states have moved.
    persistent: Option<Box<Persistent>>,
}

impl BoundVariant {
    /// The room that caches have in the plan, and the plan.
    pub(super) fn plan(&self) -> (u32, &Arc<Plan>) {
        (self.max_seq_len, &self.plan)
    }

    /// Gives up what is bound.
    pub(super) fn let_go(&mut self) {
        self.persistent = None;
    }

    fn known(&self) -> Known {
        let moved = self.persistent.as_ref().is_none_or(|persistent| persistent.has_moved());
        Known { max_seq_len: self.max_seq_len, moved }
    }
}

impl Runner {
    /// Steps of one sequence, up to `tokens` of them in one launch, after the first of which it has `length` tokens: what
    /// as many steps of [`StepKind::Decode`] do.
    ///
    /// Caches grow for all of them as for [`variant_step`](Self::variant_step), and the plan is that of such steps. The
    /// dispatcher is not asked when they run. A launch that is under way, of whatever step, goes on; what this does comes
    /// behind it.
    ///
    /// # Errors
    ///
    /// Those of [`variant_step`](Self::variant_step), and [`RunnerError::Persistent`] where the step cannot be such a
    /// launch: [`RunnerError::is_unsupported`] says whether the steps can be had one by one. No more than a plan is made
    /// before that is known.
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
        let bound =
            self.persistent.get_mut(&variant).and_then(|bound| bound.persistent.as_deref_mut());
        let persistent = bound.ok_or(RunnerError::Execute(ExecuteError::Moved))?;
        Ok(PersistentStep { persistent, shape, tokens, replanned })
    }
}

/// Steps that are ready to be one launch.
pub struct PersistentStep<'a> {
    persistent: &'a mut Persistent,
    shape: StepShape,
    tokens: u32,
    replanned: Option<Replanned>,
}

impl PersistentStep<'_> {
    /// What each of them is for.
    pub fn shape(&self) -> StepShape {
        self.shape
    }

    /// Why they were planned for this call; `None` where they were ready.
    pub fn replanned(&self) -> Option<Replanned> {
        self.replanned
    }

    /// Their plan, with its inputs and outputs, and its schedule.
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

    /// Issues the launch, of as many tokens as were asked for or fewer: see [`Persistent::launch`].
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
