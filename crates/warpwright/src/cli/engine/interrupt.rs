//! Ctrl-C: what is going on ends cleanly. Pressed again, or where nothing is going on, the program ends.

use crate::cli::{Failure, INTERRUPTED};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Whether somebody wants an end.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    busy: AtomicBool,
    pressed: AtomicBool,
}

impl Interrupt {
    /// Listens from now on. Until something [begins](Self::begin), Ctrl-C ends the program.
    pub(crate) fn listen() -> Result<Interrupt, Failure> {
        let interrupt = Interrupt::default();
        let state = interrupt.state.clone();
        let handler = move || {
            if !state.busy.load(SeqCst) || state.pressed.swap(true, SeqCst) {
                std::process::exit(INTERRUPTED.into());
            }
        };
        ctrlc::set_handler(handler)
            .map_err(|error| Failure::Message(format!("cannot listen for Ctrl-C: {error}")))?;
        Ok(interrupt)
    }

    /// Something begins that can be ended.
    pub(crate) fn begin(&self) {
        self.state.pressed.store(false, SeqCst);
        self.state.busy.store(true, SeqCst);
    }

    /// It is over.
    pub(crate) fn end(&self) {
        self.state.busy.store(false, SeqCst);
    }

    /// Whether it should end.
    pub(crate) fn pressed(&self) -> bool {
        self.state.pressed.load(SeqCst)
    }
}
