//! Messages for errors of the engine and for findings of the virtual GPU.

use crate::cli::{Failure, run};
use warpwright_llm::engine::{Engine, EngineError};

pub(crate) use run::{findings as findings_json, show as show_findings};

/// An error of the engine. If the virtual GPU's checks have found the cause, the findings are shown and determine the
/// outcome.
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
