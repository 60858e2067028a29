//! Estimate of the time per token, before tokens are computed.
//!
//! Layers are alike, so the beginning of a step is run, launch by launch, within a time limit, and the rest is
//! extrapolated. A launch of a measured kernel counts with the measured time; any other launch counts in proportion to
//! its bytes, at the speed of the largest measured product. A step that fits into the time limit is measured
//! completely.

use super::error::EngineError;
use super::load::Engine;
use super::options::Executor;
use super::pieces::{self, Piece};
use crate::model::Outcome;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use warpwright_graph::{EachStep, ExecuteError, Family, Plan, PlannedStep, StepRun};

/// Time that is spent on measuring a step.
const BUDGET: Duration = Duration::from_millis(120);

/// The position that steps are measured at, if there is room: attention takes longer the more there is to see.
const POSITION: usize = 64;

/// Time per token on this device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Estimate {
    /// A generated token.
    pub token: Duration,
    /// A token of a long prompt.
    pub prompt_token: Duration,
}

impl Engine {
    /// Estimates the time per token, in a few tenths of a second. The sequence does not change.
    ///
    /// # Errors
    ///
    /// The device's error.
    pub fn estimate(&mut self) -> Result<Estimate, EngineError> {
        self.sequence.settle();
        // Behind what the cache holds, where nothing sees what is written; there may be one place too few.
        let held = self.sequence.held;
        let at = POSITION.max(held).min(self.context.tokens as usize - 1);
        self.sequence.held = at;
        let estimate = self.measure_both();
        self.sequence.held = held.min(at);
        self.sequence.settle();
        estimate
    }

    fn measure_both(&mut self) -> Result<Estimate, EngineError> {
        let token = self.measure(Piece::Token, self.options.sampler.outcome())?;
        let chunk = pieces::next(&self.chosen, self.sequence.held as u32, self.chosen.chunk);
        let prompt_token = match chunk {
            Piece::Token => token,
            Piece::Chunk { tokens, .. } => self.measure(chunk, Outcome::Cached)? / tokens,
        };
        Ok(Estimate { token, prompt_token })
    }

    /// The time of a step.
    fn measure(&mut self, piece: Piece, outcome: Outcome) -> Result<Duration, EngineError> {
        let watch = Stopwatch::new();
        let mut step = self.piece(piece, outcome)?;
        step.issue(&EachStep(|step: &mut StepRun<'_>| watch.step(step)))?;
        let plan = step.executable().plan().clone();
        let mut best = watch.reckon(&plan);
        self.stream.synchronize()?;
        // What fits is measured as it will run.
        while watch.begun.elapsed() + best < BUDGET && watch.is_whole(&plan) {
            let time = self.time(piece, outcome)?;
            let mut measured = watch.measured();
            best = if measured.runs == 0 { time } else { best.min(time) };
            measured.runs += 1;
        }
        Ok(best)
    }

    /// The time of a step as it runs: of a token that is chosen, by the executor that decodes.
    fn time(&mut self, piece: Piece, outcome: Outcome) -> Result<Duration, EngineError> {
        let stream = self.stream.clone();
        let decodes = matches!((piece, outcome), (Piece::Token, Outcome::Token { .. }));
        if decodes && self.executor() == Executor::Persistent {
            self.write_states(self.sequence.held, outcome)?;
            stream.synchronize()?;
            let start = Instant::now();
            if let Some(mut launch) = self.issue_launch(1)? {
                launch.next_token()?;
                stream.synchronize()?;
                return Ok(start.elapsed());
            }
        }
        let mut step = self.piece(piece, outcome)?;
        stream.synchronize()?;
        let start = Instant::now();
        step.run()?;
        stream.synchronize()?;
        Ok(start.elapsed())
    }
}

/// Runs the library's launches step by step while there is time, and takes the time of each.
struct Stopwatch {
    begun: Instant,
    measured: Mutex<Measured>,
}

#[derive(Default)]
struct Measured {
    /// By step, from the first one on.
    times: Vec<Duration>,
    /// Of the products that move the most bytes of those that were measured: bytes and time.
    largest: (u64, Duration),
    /// There is no time for the next step, nor for any after it.
    over: bool,
    /// Runs of the whole step.
    runs: u32,
}

impl Measured {
    /// How long so many bytes take.
    fn reckon(&self, bytes: u64) -> Duration {
        let (max, time) = self.largest;
        time.mul_f64(bytes as f64 / max.max(1) as f64)
    }
}

/// Bytes that a step's launches move.
fn bytes(step: &PlannedStep) -> u64 {
    step.launches().map(|launch| launch.bytes).sum()
}

/// What makes steps take as long as one another: the kernels, and how many blocks of them.
fn launches(step: &PlannedStep) -> Vec<(&str, [u32; 3])> {
    step.launches().map(|launch| (launch.kernel.entry(), launch.grid)).collect()
}

impl Stopwatch {
    fn new() -> Self {
        Stopwatch { begun: Instant::now(), measured: Mutex::default() }
    }

    fn measured(&self) -> MutexGuard<'_, Measured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_whole(&self, plan: &Plan) -> bool {
        self.measured().times.len() == plan.steps().len()
    }

    /// The time of a plan by what was measured of it.
    fn reckon(&self, plan: &Plan) -> Duration {
        let measured = self.measured();
        let known: HashMap<_, _> = plan.steps().iter().map(launches).zip(&measured.times).collect();
        let time =
            |(i, step): (usize, &PlannedStep)| match (measured.times.get(i), known.get(&launches(step))) {
                (Some(&time), _) | (None, Some(&&time)) => time,
                (None, None) => measured.reckon(bytes(step)),
            };
        plan.steps().iter().enumerate().map(time).sum()
    }

    fn step(&self, step: &mut StepRun<'_>) -> Result<(), ExecuteError> {
        let bytes = bytes(step.planned());
        let mut measured = self.measured();
        // Before a product is measured there is nothing to reckon from.
        let known = measured.largest.0 > 0;
        measured.over |= known && self.begun.elapsed() + measured.reckon(bytes) > BUDGET;
        if measured.over {
            return Ok(());
        }
        let start = Instant::now();
        step.run_library()?;
        step.stream().synchronize()?;
        let time = start.elapsed();
        measured.times.push(time);
        // What small launches take says nothing of their bytes.
        if step.op().family() == Family::MatMul && bytes > measured.largest.0 {
            measured.largest = (bytes, time);
        }
        Ok(())
    }
}
