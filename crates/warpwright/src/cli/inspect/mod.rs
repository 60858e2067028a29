//! `warpwright inspect`: the contents of a model file, and whether it can run.
//!
//! ```text
//! file ── report (what is in it) ──┬── text
//!                                  └── JSON
//! ```
//!
//! Files are untrusted: control characters of their text are not shown, and long text is shortened.

mod report;
mod shown;
mod text;

use super::model::ModelArguments;
use super::{Failure, Outcome, json};
use report::Report;
use std::io::Write;
use std::path::PathBuf;

/// Show the contents of a model file, and whether it can run
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The model, a GGUF file; of a model in several files, any of them [default: the tiny built-in one]
    #[arg(value_name = "MODEL.gguf")]
    model: Option<PathBuf>,
    /// List the tensors too
    #[arg(long)]
    tensors: bool,
    /// Print a JSON document. Long arrays are shown as their length and first items
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let model = ModelArguments::of(arguments.model.as_ref());
    let file = model.open()?;
    let report = Report::new(&file.gguf, &file.name, arguments.tensors);
    match arguments.json {
        true => json::document(out, &report)?,
        false => text::write(out, &report)?,
    }
    Ok(Outcome::Fine)
}
