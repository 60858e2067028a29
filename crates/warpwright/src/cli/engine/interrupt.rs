//! Ctrl-C ends the current work cleanly. If pressed again, or without current work, it ends the program.

use crate::cli::{Failure, INTERRUPTED};
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Whether the user has pressed Ctrl-C.
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
        let terminal = Terminal::save();
        let handler = move || {
            if !state.busy.load(SeqCst) || state.pressed.swap(true, SeqCst) {
                terminal.restore();
                std::process::exit(INTERRUPTED.into());
            }
        };
        ctrlc::set_handler(handler)
            .map_err(|error| Failure::Message(format!("cannot listen for Ctrl-C: {error}")))?;
        Ok(interrupt)
    }

    /// Marks the beginning of work that can be interrupted.
    pub(crate) fn begin(&self) {
        self.state.pressed.store(false, SeqCst);
        self.state.busy.store(true, SeqCst);
    }

    /// Marks its end.
    pub(crate) fn end(&self) {
        self.state.busy.store(false, SeqCst);
    }

    /// Whether the work should end.
    pub(crate) fn pressed(&self) -> bool {
        self.state.pressed.load(SeqCst)
    }
}

/// How the terminal was before anything was edited on it: an editor that is ended by a signal does not put it back.
struct Terminal {
    #[cfg(target_os = "linux")]
    modes: Option<nix::sys::termios::Termios>,
}

impl Terminal {
    fn save() -> Terminal {
        Terminal {
            #[cfg(target_os = "linux")]
            modes: nix::sys::termios::tcgetattr(io::stdin()).ok(),
        }
    }

    /// Puts it back, and ends the line that has begun. Nothing is left to do where that fails.
    fn restore(&self) {
        #[cfg(target_os = "linux")]
        if let Some(modes) = &self.modes
            && nix::sys::termios::tcgetattr(io::stdin()).is_ok_and(|now| now != *modes)
        {
            let _ = nix::sys::termios::tcsetattr(io::stdin(), nix::sys::termios::SetArg::TCSANOW, modes);
            // Text that is pasted has no marks around it.
            let _ = write!(io::stderr(), "\x1b[?2004l");
        }
        if io::stderr().is_terminal() {
            let _ = writeln!(io::stderr());
        }
    }
}
