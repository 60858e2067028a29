//! What `--json` prints. Each document has a `version`, raised when a field changes its meaning or
//! goes away; new fields may appear without that.

use super::Failure;
use serde::Serialize;
use std::io::Write;
use warpwright_ptx::diag::{Diagnostic, Diagnostics, LineIndex, Severity};
use warpwright_ptx::ir::Origin;

/// Version of the documents.
const VERSION: u32 = 1;

/// Prints a document.
pub(crate) fn write(out: &mut impl Write, document: &impl Serialize) -> Result<(), Failure> {
    serde_json::to_writer_pretty(&mut *out, document).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}

/// A document of any kind, with its version first.
#[derive(Serialize)]
pub(crate) struct Document<T: Serialize> {
    version: u32,
    #[serde(flatten)]
    content: T,
}

impl<T: Serialize> Document<T> {
    pub(crate) fn new(content: T) -> Self {
        Document { version: VERSION, content }
    }
}

/// Result of `check`.
#[derive(Serialize)]
pub(crate) struct CheckReport {
    version: u32,
    files: Vec<FileReport>,
}

impl CheckReport {
    pub(crate) fn new(files: Vec<FileReport>) -> Self {
        CheckReport { version: VERSION, files }
    }
}

/// Findings of one file.
#[derive(Serialize)]
pub(crate) struct FileReport {
    file: String,
    errors: usize,
    warnings: usize,
    diagnostics: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    code: &'static str,
    severity: String,
    rule: &'static str,
    message: String,
    #[serde(flatten)]
    place: Option<Place>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related: Vec<Related>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

#[derive(Serialize)]
struct Related {
    message: String,
    #[serde(flatten)]
    place: Option<Place>,
}

/// Lines and columns count from 1, columns in bytes; the end is just past the last byte.
#[derive(Serialize)]
struct Place {
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
}

impl FileReport {
    pub(crate) fn new(file: &str, text: &str, diagnostics: &Diagnostics) -> Self {
        let lines = LineIndex::new(text);
        let count =
            |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity() == severity).count();
        FileReport {
            file: file.to_string(),
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            diagnostics: diagnostics.iter().map(|diagnostic| finding(diagnostic, &lines)).collect(),
        }
    }
}

fn finding(diagnostic: &Diagnostic, lines: &LineIndex<'_>) -> Finding {
    Finding {
        code: diagnostic.code.text(),
        severity: diagnostic.severity().to_string(),
        rule: diagnostic.code.title(),
        message: diagnostic.message.clone(),
        place: place(diagnostic.origin, lines),
        related: diagnostic
            .related
            .iter()
            .map(|(origin, message)| Related { message: message.clone(), place: place(*origin, lines) })
            .collect(),
        help: diagnostic.help.clone(),
    }
}

fn place(origin: Origin, lines: &LineIndex<'_>) -> Option<Place> {
    let Origin::Text(span) = origin else { return None };
    let (start, end) = lines.range(span);
    Some(Place { line: start.line, column: start.column, end_line: end.line, end_column: end.column })
}
