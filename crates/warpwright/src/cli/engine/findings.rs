//! What is said where the engine fails, and what the virtual GPU has found.

use crate::cli::{Failure, run};
use warpwright_llm::engine::{Engine, EngineError};

pub(crate) use run::{findings as findings_json, show as show_findings};

/// What the engine could not do. Where the virtual GPU's checks have found why, that is shown, and is the outcome.
pub(crate) fn failure(engine: &Engine, error: &EngineError) -> Failure {
    let findings = engine.device().take_findings();
    if findings.is_empty() {
        return Failure::Message(error.to_string());
    }
    match run::show(&findings) {
        Ok(()) => Failure::Found,
        Err(error) => error.into(),
    }
}
