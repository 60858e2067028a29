//! The output of `--json`. Each document has a `version`, which increases when a field is removed or changes its
//! meaning; added fields do not change it.

use super::Failure;
use serde::Serialize;
use std::io::Write;
use warpwright_ptx::diag::{Diagnostic, Diagnostics, LineIndex, Severity};
use warpwright_ptx::ir::Origin;
use warpwright_report::VERSION;

/// An object with these fields, in this order. The type of a field is a parameter of the same name.
macro_rules! object {
    ($($(#[$attribute:meta])* $name:ident: $value:expr),* $(,)?) => {{
        #[allow(non_camel_case_types, reason = "what is derived names the parameters too")]
        mod object {
            #[derive(serde::Serialize)]
            pub(super) struct Object<$($name),*> {
                $($(#[$attribute])* pub(super) $name: $name,)*
            }
        }
        object::Object { $($name: $value),* }
    }};
}
pub(crate) use object;

/// Prints a value.
pub(crate) fn write(out: &mut impl Write, value: &impl Serialize) -> Result<(), Failure> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}

/// Prints a document of any kind, with its version first.
pub(crate) fn document(out: &mut impl Write, content: impl Serialize) -> Result<(), Failure> {
    write(out, &object! { version: VERSION, #[serde(flatten)] content: content })
}

#[derive(Serialize)]
struct Finding {
    code: &'static str,
    severity: String,
    rule: &'static str,
    message: String,
    #[serde(flatten)]
    range: Option<TextRange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related: Vec<Related>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

#[derive(Serialize)]
struct Related {
    message: String,
    #[serde(flatten)]
    range: Option<TextRange>,
}

/// Lines and columns count from 1, columns in bytes; the end is just past the last byte.
#[derive(Serialize)]
struct TextRange {
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
}

/// What `check` says of a file.
pub(crate) fn checked(file: &str, text: &str, diagnostics: &Diagnostics) -> impl Serialize + use<> {
    let lines = LineIndex::new(text);
    let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity() == severity).count();
    object! {
        file: file.to_string(),
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
        diagnostics: diagnostics.iter().map(|diagnostic| finding(diagnostic, &lines)).collect::<Vec<_>>(),
    }
}

fn finding(diagnostic: &Diagnostic, lines: &LineIndex<'_>) -> Finding {
    Finding {
        code: diagnostic.code.text(),
        severity: diagnostic.severity().to_string(),
        rule: diagnostic.code.title(),
        message: diagnostic.message.clone(),
        range: range(diagnostic.origin, lines),
        related: diagnostic
            .related
            .iter()
            .map(|(origin, message)| Related { message: message.clone(), range: range(*origin, lines) })
            .collect(),
        help: diagnostic.help.clone(),
    }
}

fn range(origin: Origin, lines: &LineIndex<'_>) -> Option<TextRange> {
    let Origin::Text(span) = origin else { return None };
    let (start, end) = lines.range(span);
    Some(TextRange { line: start.line, column: start.column, end_line: end.line, end_column: end.column })
}
