//! Which model: a file, or the one that is built in.

use super::Failure;
use std::path::PathBuf;
use std::sync::Arc;
use warpwright_llm::gguf::Gguf;

/// The model that is used where none is named: `models/README.md` says what it is.
static TINY: &[u8] = include_bytes!("../../models/tiny.gguf");

/// Which model
#[derive(clap::Args)]
pub(crate) struct ModelArguments {
    /// The model, a GGUF file; of one that is split into several, any of them [default: a tiny one that tells stories,
    /// which is built in]
    #[arg(short, long, value_name = "MODEL.gguf")]
    model: Option<PathBuf>,
}

impl ModelArguments {
    /// That model, where it is not said with an option.
    pub(crate) fn of(model: Option<&PathBuf>) -> Self {
        ModelArguments { model: model.cloned() }
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> String {
        self.model.as_ref().map_or_else(|| "tiny".to_string(), |path| path.display().to_string())
    }

    /// Opens it. What is wrong with a file names it.
    pub(crate) fn open(&self) -> Result<Arc<Gguf>, Failure> {
        let Some(path) = &self.model else {
            return Gguf::from_static(TINY)
                .map(Arc::new)
                .map_err(|error| Failure::Message(format!("{}: {error}", self.name())));
        };
        Gguf::open(path).map(Arc::new).map_err(|error| Failure::Message(error.to_string()))
    }
}
