//! Diagnostics: what is wrong with a module, where, by which rule, and what to do.

mod codes;
mod lines;
#[cfg(feature = "render")]
mod render;

pub use codes::{Code, Severity};
pub use lines::{LineIndex, Position};
#[cfg(feature = "render")]
pub use render::{Message, MessagePlace, render, render_message};

use crate::ir::{Origin, Span};
use std::fmt;

/// One finding of the parser or the verifier.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Which rule.
    pub code: Code,
    /// Where: the text or the Rust line.
    pub origin: Origin,
    /// What is wrong, with names and values.
    pub message: String,
    /// Other places that matter, each with what it is.
    pub related: Vec<(Origin, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic about `place`.
    pub fn new(code: Code, place: impl Into<Origin>, message: impl Into<String>) -> Self {
        Diagnostic { code, origin: place.into(), message: message.into(), related: Vec::new(), help: None }
    }

    /// Adds what to do.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds another place that matters.
    pub fn with_related(mut self, place: impl Into<Origin>, what: impl Into<String>) -> Self {
        self.related.push((place.into(), what.into()));
        self
    }

    /// Error, warning or note.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

impl From<Span> for Origin {
    fn from(span: Span) -> Self {
        Origin::Text(span)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.severity(), self.code, self.message)?;
        match self.origin {
            Origin::Rust(location) => write!(f, " ({location})"),
            _ => Ok(()),
        }
    }
}

/// Everything found in one module.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Nothing found.
    pub fn new() -> Self {
        Diagnostics::default()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|diagnostic| diagnostic.severity() == Severity::Error)
    }

    /// All of them, in the order found.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Number of diagnostics.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl From<Vec<Diagnostic>> for Diagnostics {
    fn from(list: Vec<Diagnostic>) -> Self {
        Diagnostics { list }
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.list.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
