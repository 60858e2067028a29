//! `warpwright inspect`: what is in a model file, and whether it can be run.
//!
//! ```text
//! file ── report (what is in it) ──┬── text
//!                                  └── JSON
//! ```
//!
//! Files come from anywhere: what is shown of their text has no control characters in it, and of what is long only
//! the beginning.

mod report;
mod shown;
mod text;

use super::model::ModelArguments;
use super::{Failure, Outcome, json};
use report::Report;
use std::io::Write;
use std::path::PathBuf;

/// Show what is in a model file, and whether it can be run
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The model, a GGUF file; of one that is split into several, any of them [default: the tiny one that is
    /// built in]
    #[arg(value_name = "MODEL.gguf")]
    model: Option<PathBuf>,
    /// List the tensors too
    #[arg(long)]
    tensors: bool,
    /// Print a JSON document. Of long arrays it has the length and the first items
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
