//! Reports of launches as documents for continuous integration.

use crate::error::refused;
use pyo3::prelude::*;
use std::path::PathBuf;
use warpwright_report::{Case, Event, Launch};

/// The cases of documents, each the JSON of a launch or a line that the CUDA driver has reported of this process.
fn cases(py: Python<'_>, documents: &[String]) -> PyResult<Vec<Case>> {
    let mut cases = Vec::new();
    let mut events = Vec::new();
    for document in documents {
        match serde_json::from_str::<Launch>(document) {
            Ok(launch) => cases.push(Case::from(&launch)),
            Err(_) => events.push(Event::read(document).map_err(|error| refused(py, error))?),
        }
    }
    if !events.is_empty() {
        cases.extend(Case::of_events("python", &events));
    }
    Ok(cases)
}

/// SARIF 2.1.0 of documents; files below the root are named from there.
#[pyfunction]
pub(crate) fn sarif(py: Python<'_>, documents: Vec<String>, root: PathBuf) -> PyResult<String> {
    Ok(warpwright_report::sarif(&cases(py, &documents)?, &root))
}

/// JUnit's XML of documents.
#[pyfunction]
pub(crate) fn junit(py: Python<'_>, documents: Vec<String>) -> PyResult<String> {
    Ok(warpwright_report::junit(&cases(py, &documents)?))
}
