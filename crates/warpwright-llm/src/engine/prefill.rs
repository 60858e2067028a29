//! Prompts: several tokens at once.

use super::error::EngineError;
use super::load::Engine;
use super::pieces::{self, Piece};
use crate::model::Outcome;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use warpwright_graph::RunnerStep;
use warpwright_runtime::{Event, nvtx};

/// Progress of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Tokens done.
    pub done: usize,
    /// Tokens in total.
    pub total: usize,
}

/// Told how far a prompt is; says whether to go on.
pub(super) type Told<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// Pieces that are issued before the first of them is done: one runs while the next is made ready.
const IN_FLIGHT: usize = 2;

impl Engine {
    /// Adds a prompt to the sequence, and issues the choice of the next token, which [`decode`](Self::decode) returns.
    ///
    /// # Errors
    ///
    /// Before anything is computed: [`EngineError::Vocabulary`] for invalid ids, [`EngineError::Overflow`] if the
    /// context has no room, [`EngineError::Empty`] if there are no tokens at all. Other errors are the device's.
    pub fn prefill(&mut self, prompt: &[u32]) -> Result<(), EngineError> {
        self.prefill_with(prompt, |_| ControlFlow::Continue(())).map(|_| ())
    }

    /// Like [`prefill`](Self::prefill), with a callback: `progress` gets the number of finished tokens from time to
    /// time and at the end. It may stop the prompt: then the sequence ends with what was computed, and the result is a
    /// break.
    ///
    /// # Errors
    ///
    /// Those of [`prefill`](Self::prefill).
    pub fn prefill_with(
        &mut self,
        prompt: &[u32],
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, EngineError> {
        let _range = nvtx::range("prefill");
        let before = self.position();
        self.append(prompt)?;
        let computed = self.compute(&mut progress);
        if computed.is_err() {
            self.failed();
            self.cut(before);
        }
        computed
    }

    /// Whether [`prefill`](Self::prefill) would accept this prompt. Nothing is computed.
    ///
    /// # Errors
    ///
    /// [`EngineError::Vocabulary`] for invalid ids, [`EngineError::Overflow`] if the context has no room,
    /// [`EngineError::Empty`] if there are no tokens at all.
    pub fn check_prompt(&self, ids: &[u32]) -> Result<(), EngineError> {
        let vocab = self.model.vocab();
        if let Some((at, &id)) = ids.iter().enumerate().find(|&(_, &id)| id >= vocab) {
            return Err(EngineError::Vocabulary { at, id, vocab });
        }
        let (before, prompt, context) = (self.position(), ids.len(), self.context);
        if before.saturating_add(prompt) as u64 > context.tokens.into() {
            return Err(EngineError::Overflow { before, prompt, context });
        }
        if before + prompt == 0 {
            return Err(EngineError::Empty);
        }
        Ok(())
    }

    /// Adds tokens to those that the host knows; nothing is computed.
    pub(super) fn append(&mut self, ids: &[u32]) -> Result<(), EngineError> {
        self.check_prompt(ids)?;
        self.sequence.settle();
        self.sequence.tokens.extend_from_slice(ids);
        Ok(())
    }

    /// Brings the tokens into the cache that it does not hold, and issues the choice of the next one.
    pub(super) fn compute(&mut self, told: &mut Told<'_>) -> Result<ControlFlow<()>, EngineError> {
        let (first, end) = (self.sequence.held, self.position());
        let mut flight: VecDeque<(Event, usize)> = VecDeque::new();
        let mut landed = |(event, held): (Event, usize)| -> Result<_, EngineError> {
            event.synchronize()?;
            Ok(told(Progress { done: held - first, total: end - first }))
        };
        while self.sequence.held < end {
            let held = self.sequence.held;
            let piece = pieces::next(&self.chosen, held as u32, (end - held) as u32);
            let last = held + piece.tokens() as usize == end;
            let outcome = if last { self.options.sampler.outcome() } else { Outcome::Cached };
            self.issue_piece(piece, outcome)?;
            if last {
                break;
            }
            flight.push_back((self.stream.record_event()?, self.sequence.held));
            if flight.len() >= IN_FLIGHT
                && let Some(oldest) = flight.pop_front()
                && landed(oldest)?.is_break()
            {
                let held = self.sequence.held;
                self.cut(held);
                return Ok(ControlFlow::Break(()));
            }
        }
        for piece in flight {
            if landed(piece)?.is_break() {
                let held = self.sequence.held;
                self.cut(held);
                return Ok(ControlFlow::Break(()));
            }
        }
        let total = end - first;
        let _ = told(Progress { done: total, total });
        Ok(ControlFlow::Continue(()))
    }

    /// Issues a piece at the end of the cache, with what is wanted of its last token.
    fn issue_piece(&mut self, piece: Piece, outcome: Outcome) -> Result<(), EngineError> {
        let wanted = matches!(outcome, Outcome::Token { .. });
        let end = self.sequence.held + piece.tokens() as usize;
        let mut step = self.piece(piece, outcome)?;
        step.run()?;
        let token = wanted.then(|| step.executable().output_buffer("tokens").cloned()).transpose()?;
        self.sequence.held = end;
        if let Some(token) = token {
            self.send(&token)?;
            if let Piece::Chunk { .. } = piece {
                // The chunk has counted padding too.
                let store = self.runner.store_mut();
                store.write_state("positions", &[end as u32])?;
                store.write_state("lengths", &[end as u32 + 1])?;
            }
        }
        // The token that was chosen is where steps take it from.
        self.sequence.ready = wanted;
        Ok(())
    }

    /// The step of a piece at the end of the cache, with its states and inputs written.
    pub(super) fn piece(&mut self, piece: Piece, outcome: Outcome) -> Result<RunnerStep<'_>, EngineError> {
        let held = self.sequence.held;
        let before = held as u32;
        let Piece::Chunk { tokens, size } = piece else {
            self.write_states(held, outcome)?;
            return self.decode_step(outcome, before + 1);
        };
        let end = held + tokens as usize;
        if let Outcome::Token { .. } = outcome {
            self.write_states(end - 1, outcome)?;
        }
        // Padding is the last token: what it leaves in the cache is masked, which takes finite numbers to be nothing.
        let mut prompt: Vec<u32> =
            self.sequence.tokens.iter().copied().skip(held).take(tokens as usize).collect();
        prompt.resize(size as usize, prompt.last().copied().unwrap_or(0));
        let positions: Vec<u32> = (before..before + size).collect();
        let last = matches!(outcome, Outcome::Logits | Outcome::Token { .. });
        let mut step = self.chunk_step(outcome, size, before + size)?;
        step.write_input("prompt", &prompt)?;
        step.write_input("prompt_positions", &positions)?;
        step.write_input("q_starts", &[0, size])?;
        step.write_input("kv_lens", &[before + size])?;
        if last {
            step.write_input("last", &[tokens - 1])?;
        }
        Ok(step)
    }
}
