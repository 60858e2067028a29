//! What a person sees of a generation: how far the prompt is, and the text as it comes.

use super::interrupt::Interrupt;
use super::progress::PromptBar;
use std::io::{self, Write};
use std::ops::ControlFlow;
use warpwright_llm::engine::Progress;
use warpwright_llm::generate::Listener;

/// Shows text as it comes, until Ctrl-C or until nobody reads it.
pub(crate) struct Screen<'a, W: Write> {
    /// Nothing is shown of it where there is a document at the end.
    out: Option<&'a mut W>,
    bar: PromptBar,
    interrupt: &'a Interrupt,
    /// Why nothing more can be shown.
    lost: Option<io::Error>,
}

impl<'a, W: Write> Screen<'a, W> {
    pub(crate) fn new(out: Option<&'a mut W>, interrupt: &'a Interrupt) -> Self {
        Screen { out, bar: PromptBar::new(), interrupt, lost: None }
    }

    /// Whether all of it could be shown.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.bar.finish();
        self.lost.map_or(Ok(()), Err)
    }

    fn go_on(&self) -> ControlFlow<()> {
        let over = self.lost.is_some() || self.interrupt.pressed();
        if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<W: Write> Listener for Screen<'_, W> {
    fn prompt(&mut self, progress: Progress) -> ControlFlow<()> {
        self.bar.show(progress);
        self.go_on()
    }

    fn text(&mut self, text: &str) -> ControlFlow<()> {
        if let Some(out) = &mut self.out
            && !text.is_empty()
        {
            let shown = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            self.lost = self.lost.take().or(shown.err());
        }
        self.go_on()
    }
}
