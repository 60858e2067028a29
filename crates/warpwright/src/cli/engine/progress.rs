//! Bars for loading and for prompts: on a terminal, and gone when they are full.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use warpwright_llm::engine::{Loading, Progress};

/// A bar on standard error, which nothing but a terminal shows.
fn bar(what: &'static str, unit: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    let template = format!("{{msg}} [{{bar:40}}] {unit}");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(what);
    bar
}

/// Loading a model.
pub(super) struct LoadingBar(ProgressBar);

impl LoadingBar {
    pub(super) fn new() -> Self {
        LoadingBar(bar("loading", "{bytes}/{total_bytes}"))
    }

    pub(super) fn show(&self, loading: Loading<'_>) {
        self.0.set_length(loading.total);
        self.0.set_position(loading.loaded);
    }

    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Computing a prompt.
pub(super) struct PromptBar(ProgressBar);

impl PromptBar {
    pub(super) fn new() -> Self {
        PromptBar(bar("prompt", "{pos}/{len} tokens"))
    }

    pub(super) fn show(&self, progress: Progress) {
        self.0.set_length(progress.total as u64);
        self.0.set_position(progress.done as u64);
        if progress.done == progress.total {
            self.0.finish_and_clear();
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
