//! A progress bar for slow work: only on a terminal, and removed when it is full.
//!
//! It is drawn on its own line from the first column on, because it clears its line: end the current line before you
//! show a bar.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error, which nothing but a terminal shows.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// What is going on, and how far it is as a template of the numbers. Nothing is shown before there are numbers.
    pub(super) fn new(what: &str, numbers: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template(&format!("{what} [{{bar:40}}] {numbers}")) {
            bar.set_style(style.progress_chars("=> "));
        }
        Bar(bar)
    }

    /// Shows that so much of it is done. What is done at once is not shown.
    pub(super) fn show(&self, done: u64, total: u64) {
        if done >= total {
            return self.finish();
        }
        self.0.update(|bar| {
            bar.set_len(total);
            bar.set_pos(done);
        });
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
