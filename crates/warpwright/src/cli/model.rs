//! Which model: a file, or the one that is built in.

use super::Failure;
use std::path::PathBuf;
use std::sync::Arc;
use warpwright_llm::gguf::Gguf;

/// Which model
#[derive(clap::Args)]
pub(crate) struct ModelArguments {
    /// The model, a GGUF file; of one that is split into several, any of them
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
        self.model
            .as_ref()
            .map_or_else(|| "the built-in model".to_string(), |path| path.display().to_string())
    }

    /// Opens it. What is wrong with a file names it.
    pub(crate) fn open(&self) -> Result<Arc<Gguf>, Failure> {
        let Some(path) = &self.model else {
            return Err(Failure::Message("no model: name a GGUF file with `-m MODEL.gguf`".into()));
        };
        Gguf::open(path).map(Arc::new).map_err(|error| Failure::Message(error.to_string()))
    }
}
