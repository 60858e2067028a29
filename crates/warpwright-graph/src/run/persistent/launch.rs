//! A running launch: its tokens as they appear, and its end.

use super::super::error::ExecuteError;
use super::fault::PersistentFault;
use super::mailbox::Mailbox;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use warpwright_kernels::Finish;
use warpwright_runtime::{Event, RuntimeError};

/// The end of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// The number of tokens that it has made.
    pub tokens: u32,
    /// Why there are no more tokens.
    pub reason: Finish,
}

/// The tokens of a launch, read while the device makes them. Dropping it asks the launch to end, and does not wait.
///
/// It does not borrow the plan: while you read it you may use the plan for anything that does not wait for the stream.
pub struct PersistentLaunch {
    pub(super) running: Arc<Running>,
}

/// The state of a launch, shared by the plan and the reader.
pub(super) struct Running {
    mailbox: Arc<Mailbox>,
    over: Event,
    state: Mutex<State>,
}

struct State {
    /// The number of the next token to be read from the ring, and of the first.
    next: u32,
    first: u32,
    /// Tokens that were read from the device and not taken yet.
    read: VecDeque<u32>,
    outcome: Option<Outcome>,
    /// Whether it was reported.
    told: bool,
}

/// How a launch has ended.
enum Outcome {
    Finished(Finished),
    Fault(PersistentFault),
    /// The device has failed; holds its error until it is reported.
    Failed(Option<ExecuteError>),
}

/// How long the host sleeps between two polls, at first and at most, so that polling does not slow the device.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_micros(500)];

impl Running {
    /// A launch that was issued at this token count; the event follows all of its work.
    pub(super) fn new(mailbox: Arc<Mailbox>, over: Event, first: u32) -> Self {
        let state = State { next: first, first, read: VecDeque::new(), outcome: None, told: false };
        Running { mailbox, over, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what the ring has, and what became of the launch if it is over.
    fn look(&self, state: &mut State) -> Result<(), ExecuteError> {
        if state.outcome.is_some() {
            return Ok(());
        }
        // Asked for first: what is counted when a launch is over is all that there is.
        let over = self.over.is_complete();
        let count = self.mailbox.count()?;
        while state.next != count {
            state.read.push_back(self.mailbox.token(state.next)?);
            state.next = state.next.wrapping_add(1);
        }
        if over {
            state.outcome = Some(self.outcome(count.wrapping_sub(state.first))?);
        }
        Ok(())
    }

    /// How the launch has ended, of which the event has been reached.
    fn outcome(&self, tokens: u32) -> Result<Outcome, ExecuteError> {
        if let Err(error) = self.over.synchronize() {
            return Ok(Outcome::Failed(Some(error.into())));
        }
        if let Some(fault) = self.mailbox.fault()? {
            return Ok(Outcome::Fault(fault));
        }
        Ok(match self.mailbox.reason()? {
            Some(reason) => Outcome::Finished(Finished { tokens, reason }),
            // Another call was told of what failed.
            None => Outcome::Failed(None),
        })
    }

    /// Waits until the launch is over and has been read.
    pub(super) fn wait(&self) -> Result<(), ExecuteError> {
        let mut pause = PAUSES[0];
        loop {
            let mut state = self.state();
            self.look(&mut state)?;
            if state.outcome.is_some() {
                return Ok(());
            }
            drop(state);
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSES[1]);
        }
    }

    /// Whether it gave up or failed, so that its memory is invalid. The launch has ended.
    pub(super) fn gave_up(&self) -> bool {
        !matches!(self.state().outcome, Some(Outcome::Finished(_)))
    }

    /// Its error, if there is one that was not reported.
    pub(super) fn untold(&self) -> Option<ExecuteError> {
        let mut state = self.state();
        if state.told { None } else { state.ended()?.err() }
    }
}

impl State {
    /// How the launch has ended; `None` while it runs.
    fn ended(&mut self) -> Option<Result<Finished, ExecuteError>> {
        let outcome = self.outcome.as_mut()?;
        self.told = true;
        Some(match outcome {
            Outcome::Finished(finished) => Ok(*finished),
            Outcome::Fault(fault) => Err(ExecuteError::Persistent(Box::new(fault.clone()))),
            Outcome::Failed(error) => {
                let skipped = || RuntimeError::Skipped { operation: "a launch for many tokens" }.into();
                Err(error.take().unwrap_or_else(skipped))
            }
        })
    }
}

impl PersistentLaunch {
    /// The next token, if there is one yet. `None` does not mean that no more tokens follow: see
    /// [`is_over`](Self::is_over).
    ///
    /// # Errors
    ///
    /// When all tokens have been taken: the fault of a launch that gave up, or the device's error.
    pub fn poll(&mut self) -> Result<Option<u32>, ExecuteError> {
        let mut state = self.running.state();
        self.running.look(&mut state)?;
        match state.read.pop_front() {
            Some(token) => Ok(Some(token)),
            None => state.ended().transpose().map(|_| None),
        }
    }

    /// Whether the launch has ended and all its tokens have been taken.
    pub fn is_over(&self) -> bool {
        let state = self.running.state();
        state.outcome.is_some() && state.read.is_empty()
    }

    /// Waits for the next token; `None` at the end.
    ///
    /// # Errors
    ///
    /// Those of [`poll`](Self::poll).
    pub fn next_token(&mut self) -> Result<Option<u32>, ExecuteError> {
        let mut pause = PAUSES[0];
        loop {
            if let Some(token) = self.poll()? {
                return Ok(Some(token));
            }
            if self.is_over() {
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSES[1]);
        }
    }

    /// Asks the launch to end with the current token or with the next one. You can still take the tokens that it has
    /// made.
    ///
    /// # Errors
    ///
    /// If the device refuses to write its memory.
    pub fn stop(&self) -> Result<(), ExecuteError> {
        let state = self.running.state();
        // The flag is that of the launch that runs: one that is over has none.
        match state.outcome {
            None => self.running.mailbox.stop(),
            Some(_) => Ok(()),
        }
    }

    /// Waits for the end of the launch, and returns how it ended. You can still take the remaining tokens.
    ///
    /// # Errors
    ///
    /// [`ExecuteError::Persistent`] if the launch gave up, and the device's error if that has failed.
    pub fn finish(&mut self) -> Result<Finished, ExecuteError> {
        self.running.wait()?;
        let skipped = || RuntimeError::Skipped { operation: "a launch for many tokens" };
        self.running.state().ended().unwrap_or_else(|| Err(skipped().into()))
    }
}

impl Drop for PersistentLaunch {
    fn drop(&mut self) {
        // Nobody reads on: there is nobody to tell, either.
        let _ = self.stop();
    }
}

impl fmt::Debug for PersistentLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.running.state();
        let mut debug = f.debug_struct("PersistentLaunch");
        debug.field("read", &state.next.wrapping_sub(state.first));
        debug.field("over", &state.outcome.is_some()).finish_non_exhaustive()
    }
}
