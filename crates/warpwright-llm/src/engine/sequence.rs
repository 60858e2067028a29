//! The sequence: which tokens there are, which of them the cache holds, and the next one.
//!
//! ```text
//!            held: in the cache
//!  ├──────────────────────────────┤
//!  t0  t1  t2  …               t(n-1)     tokens that the host knows
//!                                    └─► coming: on the device, not read yet
//! ```
//!
//! A step of decoding takes the token that comes next from device memory, where the step before has put it: the host
//! need not have seen it. So one step can be issued ahead, and then the cache holds one token that the host does not know
//! yet.

use super::error::EngineError;
use super::load::Engine;
use super::sampler::SamplerOptions;
use crate::model::{Outcome, RECENT};
use std::ops::ControlFlow;
use warpwright_graph::{Element, Store, TensorType};
use warpwright_runtime::{AnyBuffer, Device, Event, HostBuffer, Stream};

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
    /// Tokens that were chosen and not read, in their order.
    coming: Option<Coming>,
    /// Whether the states on the device are those that a step of decoding at `held` needs.
    pub(super) ready: bool,
}

/// A token on its way to the host.
#[derive(Debug)]
struct Coming {
    slot: usize,
    event: Event,
    /// What the cache holds when it is there.
    held: usize,
}

/// Memory that the host sees, for tokens on their way.
#[derive(Debug)]
pub(super) struct Inbox {
    tokens: HostBuffer<u32>,
    next: usize,
}

/// One is waited for while another one is made.
const SLOTS: usize = 2;

impl Inbox {
    pub(super) fn new(device: &Device) -> Result<Self, EngineError> {
        Ok(Inbox { tokens: device.alloc_mapped(SLOTS)?, next: 0 })
    }

    /// Has a token sent, after what the stream was asked for.
    fn send(&mut self, stream: &Stream, token: &AnyBuffer, held: usize) -> Result<Coming, EngineError> {
        let slot = self.next;
        self.next = (slot + 1) % SLOTS;
        stream.memcpy_dtod_any(token, self.tokens.buffer().slice(slot..=slot)?.as_any())?;
        Ok(Coming { slot, event: stream.record_event()?, held })
    }
}

impl Sequence {
    /// Forgets what was issued and not read; the cache may hold what nobody knows.
    pub(super) fn settle(&mut self) {
        self.coming = None;
        self.held = self.held.min(self.tokens.len());
        self.certain = self.certain.min(self.held);
        self.ready = false;
    }

    /// Something has failed: what is not certain is not there.
    pub(super) fn failed(&mut self) {
        self.held = self.certain;
        self.settle();
    }

    /// Everything that was issued is done.
    pub(super) fn done(&mut self) {
        self.certain = self.held;
    }
}

impl Engine {
    /// The tokens of the sequence: prompts, and what was chosen.
    pub fn tokens(&self) -> &[u32] {
        &self.sequence.tokens
    }

    /// How many tokens the sequence has.
    pub fn position(&self) -> usize {
        self.sequence.tokens.len()
    }

    /// Forgets the sequence.
    pub fn reset(&mut self) {
        self.cut(0);
    }

    /// Goes back to the first `len` tokens. Nothing is computed: the cache holds them, but for the last one that was
    /// chosen. [`decode`](Self::decode) then goes on from there, and so does [`prefill`](Self::prefill).
    ///
    /// # Errors
    ///
    /// [`EngineError::Prefix`] where the sequence is shorter.
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

    /// Waits until everything that was issued is done: a prompt, say.
    ///
    /// # Errors
    ///
    /// What has failed on the device. The sequence keeps its tokens, and what the cache lacks of them is computed again
    /// when the next one is asked for.
    pub fn wait(&mut self) -> Result<(), EngineError> {
        match self.stream.synchronize() {
            Ok(()) => self.sequence.done(),
            Err(error) => {
                self.sequence.failed();
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Chooses tokens in another way from the next one on. Other numbers need no other plan; with penalties or draws
    /// where there were none, or another window, the next step is planned.
    ///
    /// # Errors
    ///
    /// [`EngineError::Option`] for what is out of range; nothing changes then.
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

    /// Chooses the next token, adds it to the sequence and gives it.
    ///
    /// With [`EngineOptions::ahead`](super::EngineOptions::ahead) the step after it has been issued when this returns:
    /// who stops at the token, since it ends a text, stops one step late on the device, and nothing more of it is
    /// seen: the next call of [`truncate`](Self::truncate), [`prefill`](Self::prefill) or [`reset`](Self::reset)
    /// forgets it.
    ///
    /// # Errors
    ///
    /// [`EngineError::Empty`] of an empty sequence, [`EngineError::Full`] when the cache has no room for the last
    /// token: so the last one that is given may be one more than the context has. Others are the device's.
    pub fn decode(&mut self) -> Result<u32, EngineError> {
        let token = self.choose_next();
        if token.is_err() {
            self.sequence.failed();
        }
        token
    }

    fn choose_next(&mut self) -> Result<u32, EngineError> {
        let coming = match self.sequence.coming.take() {
            Some(coming) => coming,
            None => self.issue_next()?,
        };
        let has_room = (self.sequence.held as u64) < self.chosen.context.into();
        let after = if self.chosen.ahead && has_room { Some(self.issue_step()?) } else { None };
        let token = self.receive(&coming)?;
        let sequence = &mut self.sequence;
        sequence.coming = after;
        sequence.chosen.push(sequence.tokens.len());
        sequence.tokens.push(token);
        Ok(token)
    }

    /// Waits for a token.
    fn receive(&mut self, coming: &Coming) -> Result<u32, EngineError> {
        coming.event.synchronize()?;
        self.sequence.certain = coming.held;
        Ok(self.inbox.tokens.get(coming.slot)?)
    }

    /// Issues what chooses the token after those that the host knows.
    fn issue_next(&mut self) -> Result<Coming, EngineError> {
        let Sequence { tokens, held, chosen, .. } = &self.sequence;
        let (len, generated, context) = (tokens.len(), chosen.len(), self.chosen.context);
        if len == 0 {
            return Err(EngineError::Empty);
        }
        if len as u64 > context.into() {
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
        self.issue_step()
    }

    /// Issues a step of decoding at the end of the cache, whose token is on the device.
    fn issue_step(&mut self) -> Result<Coming, EngineError> {
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
        let coming = self.inbox.send(&self.stream, token, self.sequence.held)?;
        self.sequence.coming = Some(coming);
        Ok(())
    }

    /// Writes the states that a step of decoding the token at a position takes, or a chunk of which that is the last.
    pub(super) fn write_states(&mut self, position: usize, outcome: Outcome) -> Result<(), EngineError> {
        let sampler = self.options.sampler;
        let at = position as u32;
        let store = self.runner.store_mut();
        if let Some(&id) = self.sequence.tokens.get(position) {
            store.write_state("ids", &[id])?;
        }
        store.write_state("positions", &[at])?;
        store.write_state("lengths", &[at + 1])?;
        if let Outcome::Token { .. } = outcome {
            if !self.sampler_written {
                write_sampler(store, &sampler)?;
            }
            if sampler.draws() {
                // The draw of a token takes its position as its step.
                store.write_state("steps", &[at + 1])?;
            }
            self.write_recent(position + 1)?;
            self.sampler_written = true;
        }
        Ok(())
    }

    /// Writes the last tokens up to a position for penalties, in the ring that steps go on with.
    fn write_recent(&mut self, end: usize) -> Result<(), EngineError> {
        let Some(window) = self.options.sampler.window() else { return Ok(()) };
        let tokens = &self.sequence.tokens;
        let window = window as usize;
        let mut ring = vec![u32::MAX; window];
        let end = end.min(tokens.len());
        for (position, &token) in tokens.iter().enumerate().take(end).skip(end.saturating_sub(window)) {
            ring[position % window] = token;
        }
        let (name, ty) = (format!("{RECENT}.{window}"), TensorType::new(Element::U32, [1, window as u32]));
        let store = self.runner.store_mut();
        store.add_state(&name, ty)?;
        Ok(store.write_state(&name, &ring)?)
    }
}

/// Writes the numbers of a sampler.
fn write_sampler(store: &mut Store, sampler: &SamplerOptions) -> Result<(), EngineError> {
    if sampler.draws() {
        store.write_state("seeds", &[sampler.seed])?;
        store.write_state("temperatures", &[sampler.temperature])?;
        store.write_state("top_ks", &[sampler.top_k])?;
        store.write_state("top_ps", &[sampler.top_p])?;
        store.write_state("min_ps", &[sampler.min_p])?;
    }
    if sampler.window().is_some() {
        store.write_state("repeats", &[sampler.repeat_penalty])?;
        store.write_state("frequencies", &[sampler.frequency_penalty])?;
        store.write_state("presences", &[sampler.presence_penalty])?;
    }
    Ok(())
}
