//! Selection of the model: a file, or the built-in model.

use super::Failure;
use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use warpwright_llm::gguf::Gguf;
use warpwright_llm::model::{ModelConfig, ModelError};
use warpwright_llm::tokenizer::{Tokenizer, TokenizerError};

/// The default model: see `models/README.md`.
static TINY: &[u8] = include_bytes!("../../models/tiny.gguf");

/// The form of a conversation with it.
static TINY_TEMPLATE: &str = include_str!("../../models/tiny.jinja");

/// The model to use
#[derive(clap::Args)]
pub(crate) struct ModelArguments {
    /// The model, a GGUF file; of a model in several files, any of them [default: a tiny built-in one that tells
    /// stories]
    #[arg(short, long, value_name = "MODEL.gguf")]
    model: Option<PathBuf>,
}

impl ModelArguments {
    /// That model, where it is not said with an option.
    pub(crate) fn of(model: Option<&PathBuf>) -> Self {
        ModelArguments { model: model.cloned() }
    }

    /// Whether it is the one that is built in.
    pub(crate) fn is_built_in(&self) -> bool {
        self.model.is_none()
    }

    /// The form of a conversation with the model that is built in, whose file has none.
    pub(crate) fn template(&self) -> Option<&'static str> {
        self.is_built_in().then_some(TINY_TEMPLATE)
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> String {
        self.model.as_ref().map_or_else(|| "tiny".to_string(), |path| path.display().to_string())
    }

    /// Opens it. What is wrong with a file names it.
    pub(crate) fn open(&self) -> Result<ModelFile, Failure> {
        let (opened, name) = (Instant::now(), self.name());
        let gguf = match &self.model {
            Some(path) => Gguf::open(path).map_err(|error| Failure::Message(error.to_string()))?,
            None => Gguf::from_static(TINY).map_err(|error| Failure::Message(format!("{name}: {error}")))?,
        };
        Ok(ModelFile { name, gguf: Arc::new(gguf), opened })
    }
}

/// A model's file, and what messages call it.
#[derive(Clone)]
pub(crate) struct ModelFile {
    pub(crate) name: String,
    pub(crate) gguf: Arc<Gguf>,
    /// When it was.
    pub(crate) opened: Instant,
}

impl ModelFile {
    /// A message with the file's name before it.
    pub(crate) fn failure(&self, error: impl Display) -> Failure {
        Failure::Message(format!("{}: {error}", self.name))
    }

    /// What the model is. A file that has no vocabulary can have one.
    pub(crate) fn config(&self) -> Result<ModelConfig, Failure> {
        ModelConfig::from_gguf(&self.gguf).map_err(|error| self.model_failure(&error))
    }

    /// Why there is no model.
    pub(crate) fn model_failure(&self, error: &ModelError) -> Failure {
        match error {
            // The file is named already.
            ModelError::Metadata(error) => self.failure(error.problem()),
            error => self.failure(error),
        }
    }

    /// The tokenizer of the model; what it was silent about is said on standard error.
    pub(crate) fn tokenizer(&self) -> Result<Tokenizer, Failure> {
        let tokenizer = Tokenizer::from_gguf(&self.gguf).map_err(|error| self.tokenizer_failure(&error))?;
        for warning in tokenizer.warnings() {
            writeln!(std::io::stderr(), "warning: {}: {warning}", self.name)?;
        }
        Ok(tokenizer)
    }

    /// Why there is no vocabulary, or why it does not know something.
    pub(crate) fn tokenizer_failure(&self, error: &TokenizerError) -> Failure {
        match error {
            // The file is named already.
            TokenizerError::Gguf(error) => self.failure(error.problem()),
            error => self.failure(error),
        }
    }
}
