//! The host's writes of the sequence into the device's states, when steps cannot continue from the current ones.

use super::error::EngineError;
use super::load::Engine;
use super::sampler::SamplerOptions;
use crate::model::{Outcome, RECENT};
use warpwright_graph::{Element, Store, TensorType};

impl Engine {
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
