//! The display of a generation: the progress of the prompt, and the text as it is made.

use super::interrupt::Interrupt;
use super::progress::Bar;
use std::io::{self, Write};
use std::ops::ControlFlow;
use warpwright_llm::engine::Progress;
use warpwright_llm::generate::Listener;

/// Shows text as it is made, until Ctrl-C or until the reader closes the output.
pub(crate) struct Screen<'a, W: Write> {
    /// Nothing is shown of it where there is a document at the end.
    out: Option<&'a mut W>,
    /// What comes before the text, until it is shown: while there is a bar, that has the line.
    before: &'a str,
    bar: Bar,
    interrupt: &'a Interrupt,
    /// Whether a line has begun that nothing has ended.
    open: bool,
    /// Why nothing more can be shown.
    lost: Option<io::Error>,
}

impl<'a, W: Write> Screen<'a, W> {
    /// `before` is shown once the prompt is computed.
    pub(crate) fn new(out: Option<&'a mut W>, before: &'a str, interrupt: &'a Interrupt) -> Self {
        let bar = Bar::new("prompt", "{pos}/{len} tokens");
        Screen { out, before, bar, interrupt, open: false, lost: None }
    }

    /// Ends the line that has begun; of what was made without a text, shows what comes before one. Says whether all of it
    /// could be shown.
    pub(crate) fn finish(mut self, made: bool) -> io::Result<()> {
        self.bar.finish();
        if made {
            self.show("");
        }
        if self.open {
            self.show("\n");
        }
        self.lost.map_or(Ok(()), Err)
    }

    fn show(&mut self, text: &str) {
        let Some(out) = &mut self.out else { return };
        for text in [std::mem::take(&mut self.before), text] {
            if let Some(&last) = text.as_bytes().last() {
                self.open = last != b'\n';
                let shown = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                self.lost = self.lost.take().or(shown.err());
            }
        }
    }

    fn go_on(&self) -> ControlFlow<()> {
        let over = self.lost.is_some() || self.interrupt.pressed();
        if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<W: Write> Listener for Screen<'_, W> {
    fn prompt(&mut self, progress: Progress) -> ControlFlow<()> {
        self.bar.show(progress.done as u64, progress.total as u64);
        self.go_on()
    }

    fn text(&mut self, text: &str) -> ControlFlow<()> {
        self.bar.finish();
        self.show(text);
        self.go_on()
    }
}
