//! The sequence: its tokens, those that the cache holds, and the next one.
//!
//! ```text
//!            held: in the cache
//!  ├──────────────────────────────┤
//!  t0  t1  t2  …               t(n-1)     tokens that the host knows
//!                                    └─► coming: on the device, not read yet
//! ```
//!
//! A decode step reads its token from device memory, where the previous step has stored it: the host need not have seen
//! it. So steps can be issued ahead, and the device is then ahead of the host:
//!
//! - by one step, whose token is sent after it. The cache will hold one token that the host does not know yet; this is
//!   known when the step is issued, and `held` counts it;
//! - by as many tokens as a persistent launch has chosen so far. The host learns of them token by token, and `held`
//!   counts those that it has read. Cache entries after these are unknown and never seen: a call that does not continue
//!   reading stops the launch and writes the states anew.

use super::error::EngineError;
use super::inbox::Sent;
use super::load::Engine;
use super::persistent;
use super::sampler::SamplerOptions;
use std::ops::ControlFlow;
use warpwright_graph::PersistentLaunch;
use warpwright_runtime::{AnyBuffer, nvtx};

/// What the host knows of the sequence.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    pub(super) tokens: Vec<u32>,
    /// The places of those that were chosen, in their order.
    chosen: Vec<usize>,
    /// How many tokens the cache holds once everything that was issued is done.
    pub(super) held: usize,
    /// How many of them it holds for certain.
    certain: usize,
    /// What was issued and not read.
    coming: Option<Coming>,
    /// Whether the states on the device are those that a step of decoding at `held` needs.
    pub(super) ready: bool,
}

/// Where the next tokens come from.
#[derive(Debug)]
pub(super) enum Coming {
    /// A step that was issued sends one.
    Step(Sent),
    /// A launch goes on from token to token.
    Launch(PersistentLaunch),
}

impl Sequence {
    /// Discards work that was issued and not read; the cache may hold unknown entries after the sequence.
    pub(super) fn settle(&mut self) {
        self.coming = None;
        self.held = self.held.min(self.tokens.len());
        self.certain = self.certain.min(self.held);
        self.ready = false;
    }

    /// Something has failed: what is not certain is not there.
    fn failed(&mut self) {
        self.held = self.certain;
        self.settle();
    }

    /// A token was chosen; what comes after it.
    fn chose(&mut self, token: u32, after: Option<Coming>) {
        self.coming = after;
        self.chosen.push(self.tokens.len());
        self.tokens.push(token);
    }

    /// Nothing of it is in the cache.
    pub(super) fn forget(&mut self) {
        (self.held, self.certain) = (0, 0);
        self.settle();
    }

    /// The place of the first token from there on that was chosen.
    pub(super) fn next_chosen(&self, from: usize) -> usize {
        let before = self.chosen.partition_point(|&at| at < from);
        self.chosen.get(before).copied().unwrap_or(usize::MAX)
    }

    /// Everything that was issued is done.
    pub(super) fn done(&mut self) {
        self.certain = self.held;
    }
}

impl Engine {
    /// The tokens of the sequence: prompts and generated tokens.
    pub fn tokens(&self) -> &[u32] {
        &self.sequence.tokens
    }

    /// The number of tokens of the sequence.
    pub fn position(&self) -> usize {
        self.sequence.tokens.len()
    }

    /// Clears the sequence.
    pub fn reset(&mut self) {
        self.cut(0);
    }

    /// Goes back to the first `len` tokens. Nothing is computed: the cache holds them, except perhaps the last
    /// generated token. Continue with [`decode`](Self::decode) or [`prefill`](Self::prefill).
    ///
    /// # Errors
    ///
    /// [`EngineError::Prefix`] if the sequence is shorter.
    pub fn truncate(&mut self, len: usize) -> Result<(), EngineError> {
        let held = self.position();
        if len > held {
            return Err(EngineError::Prefix { asked: len, held });
        }
        if len < held {
            self.cut(len);
        }
        Ok(())
    }

    pub(super) fn cut(&mut self, len: usize) {
        let sequence = &mut self.sequence;
        sequence.tokens.truncate(len);
        let kept = sequence.chosen.partition_point(|&at| at < len);
        sequence.chosen.truncate(kept);
        sequence.settle();
    }

    /// Ends a launch that is ahead at its next token. Call this if you need no more tokens, or not soon; you can still
    /// read the tokens that it has chosen until then. Other executors are ahead by at most one step, and finish it.
    pub fn pause(&mut self) {
        if let Some(Coming::Launch(launch)) = &self.sequence.coming {
            // What the device refuses it says again where a token is asked for.
            let _ = launch.stop();
        }
    }

    /// Something has failed: what is not certain is not there, in the cache or in states.
    pub(super) fn failed(&mut self) {
        self.sequence.failed();
        self.sampler_written = false;
    }

    /// Waits until all issued work is done, for example a prompt. A launch that is ahead is [paused](Self::pause).
    ///
    /// # Errors
    ///
    /// The device's error. The sequence keeps its tokens, and those missing in the cache are computed again when the
    /// next token is requested.
    pub fn wait(&mut self) -> Result<(), EngineError> {
        self.pause();
        match self.stream.synchronize() {
            Ok(()) => self.sequence.done(),
            Err(error) => {
                self.failed();
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Changes how tokens are chosen, from the next one on. New values need no new plan. If penalties or draws are
    /// turned on, or the window changes, the next step is planned.
    ///
    /// # Errors
    ///
    /// [`EngineError::Option`] for a value out of range; nothing changes then.
    pub fn set_sampler(&mut self, sampler: SamplerOptions) -> Result<(), EngineError> {
        sampler.check()?;
        if sampler != self.options.sampler {
            self.options.sampler = sampler;
            self.sampler_written = false;
            // A token that was chosen in the old way and not given yet is chosen again.
            self.sequence.settle();
        }
        Ok(())
    }

    /// Sets the tokens that end a text: a launch of several tokens stops after one of these. If you continue anyway,
    /// another launch makes the following tokens. By default there are none; ids that are not tokens of the model never
    /// occur.
    pub fn set_ends(&mut self, ids: &[u32]) {
        self.ends = persistent::ends(ids, self.model.vocab());
    }

    /// Chooses the next token, adds it to the sequence and returns it.
    ///
    /// With [`EngineOptions::ahead`](super::EngineOptions::ahead) the following step has been issued when this returns,
    /// and a launch of [`Executor::Persistent`](super::Executor::Persistent) is some tokens ahead. If you stop at this
    /// token, the device stops later; the next call of [`truncate`](Self::truncate), [`prefill`](Self::prefill) or
    /// [`reset`](Self::reset) discards the surplus, which nothing sees.
    ///
    /// # Errors
    ///
    /// [`EngineError::Empty`] for an empty sequence; [`EngineError::Full`] if the cache has no room for the last token
    /// (so the last token returned may be one more than the context has); [`EngineError::NotFinite`] if there is NaN or
    /// `+inf` among the logits. Other errors are the device's.
    pub fn decode(&mut self) -> Result<u32, EngineError> {
        self.decode_of(usize::MAX)
    }

    /// Like [`decode`](Self::decode), if you will request at most `wanted` tokens, including this one: nothing is
    /// issued beyond them. You may still request more.
    ///
    /// # Errors
    ///
    /// Those of [`decode`](Self::decode).
    pub fn decode_of(&mut self, wanted: usize) -> Result<u32, EngineError> {
        let _range = nvtx::range("decode");
        let token = self.choose_next(wanted);
        if token.is_err() {
            self.failed();
        }
        token
    }

    fn choose_next(&mut self, wanted: usize) -> Result<u32, EngineError> {
        loop {
            let coming = match self.sequence.coming.take() {
                Some(coming) => coming,
                None => self.issue_next(wanted)?,
            };
            match coming {
                Coming::Step(sent) => {
                    let after = self.issue_ahead(wanted.saturating_sub(1))?;
                    let token = self.inbox.receive(&sent)?;
                    self.must_be_a_token(token)?;
                    self.sequence.certain = sent.held;
                    self.sequence.chose(token, after);
                    return Ok(token);
                }
                Coming::Launch(mut launch) => {
                    if let Some(token) = launch.next_token()? {
                        self.must_be_a_token(token)?;
                        self.sequence.held += 1;
                        self.sequence.done();
                        self.launched.tokens += 1;
                        self.sequence.chose(token, Some(Coming::Launch(launch)));
                        return Ok(token);
                    }
                    // It has ended, and left the states behind its last token.
                    self.sequence.ready = true;
                }
            }
        }
    }

    /// What chooses has no token where logits are not finite.
    fn must_be_a_token(&mut self, id: u32) -> Result<(), EngineError> {
        if id < self.model.vocab() {
            return Ok(());
        }
        let len = self.position();
        Err(self.not_finite(len, len, self.options.sampler.outcome()))
    }

    /// Issues what chooses the token after those that the host knows.
    fn issue_next(&mut self, wanted: usize) -> Result<Coming, EngineError> {
        let Sequence { tokens, held, chosen, .. } = &self.sequence;
        let (len, generated, context) = (tokens.len(), chosen.len(), self.context);
        if len == 0 {
            return Err(EngineError::Empty);
        }
        if len as u64 > context.tokens.into() {
            return Err(EngineError::Full { prompt: len - generated, generated, context });
        }
        if *held + 1 < len {
            // What a failure has left over.
            let _ = self.compute(&mut |_| ControlFlow::Continue(()))?;
            if let Some(coming) = self.sequence.coming.take() {
                return Ok(coming);
            }
        }
        if self.sequence.held >= len {
            // The logits of the last token are gone, and are made again.
            self.sequence.held = len - 1;
            self.sequence.settle();
        }
        if !self.sequence.ready {
            self.write_states(self.sequence.held, self.options.sampler.outcome())?;
        }
        self.issue(wanted)
    }

    /// Issues what chooses the tokens after one that is on its way, where that is wanted and there is room.
    fn issue_ahead(&mut self, wanted: usize) -> Result<Option<Coming>, EngineError> {
        let has_room = (self.sequence.held as u64) < self.context.tokens.into();
        let ahead = self.chosen.ahead && wanted > 0 && has_room;
        if ahead { self.issue(wanted).map(Some) } else { Ok(None) }
    }

    /// Issues what decodes at the end of the cache, from a token and states that are on the device.
    fn issue(&mut self, wanted: usize) -> Result<Coming, EngineError> {
        match self.issue_launch(wanted)? {
            Some(launch) => Ok(Coming::Launch(launch)),
            None => self.issue_step().map(Coming::Step),
        }
    }

    /// Issues a step.
    fn issue_step(&mut self) -> Result<Sent, EngineError> {
        let held = self.sequence.held + 1;
        let mut step = self.decode_step(self.options.sampler.outcome(), held as u32)?;
        step.run()?;
        let token = step.executable().output_buffer("tokens")?.clone();
        self.sequence.held = held;
        self.sequence.ready = true;
        self.inbox.send(&self.stream, &token, held)
    }

    /// Has the token sent that a prompt's last chunk has chosen.
    pub(super) fn send(&mut self, token: &AnyBuffer) -> Result<(), EngineError> {
        let sent = self.inbox.send(&self.stream, token, self.sequence.held)?;
        self.sequence.coming = Some(Coming::Step(sent));
        Ok(())
    }
}
