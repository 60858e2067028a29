//! Reports of launches as documents for continuous integration.

use crate::error::refused;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use warpwright_report::{Case, Event, Launch};

/// The cases of documents, each the JSON of a launch or a line that the CUDA driver has reported of this process. What
/// has no line of source in such a line is of the program of its number among `programs`.
fn cases(py: Python<'_>, documents: &[String], programs: &[String]) -> PyResult<Vec<Case>> {
    let mut cases = Vec::new();
    let mut events = BTreeMap::<&str, Vec<Event>>::new();
    for (number, document) in documents.iter().enumerate() {
        match serde_json::from_str::<Launch>(document) {
            Ok(launch) => cases.push(Case::from(&launch)),
            Err(_) => {
                let event = Event::read(document).map_err(|error| refused(py, error))?;
                let program = programs.get(number).map_or("python", |program| program);
                events.entry(program).or_default().push(event);
            }
        }
    }
    for (program, events) in &events {
        cases.extend(Case::of_events(program, events));
    }
    Ok(cases)
}

/// SARIF 2.1.0 of documents; files below the root are named from there.
#[pyfunction]
#[pyo3(signature = (documents, root, programs = Vec::new()))]
pub(crate) fn sarif(
    py: Python<'_>,
    documents: Vec<String>,
    root: PathBuf,
    programs: Vec<String>,
) -> PyResult<String> {
    Ok(warpwright_report::sarif(&cases(py, &documents, &programs)?, &root))
}

/// JUnit's XML of documents.
#[pyfunction]
pub(crate) fn junit(py: Python<'_>, documents: Vec<String>) -> PyResult<String> {
    Ok(warpwright_report::junit(&cases(py, &documents, &[])?))
}
