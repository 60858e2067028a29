//! Diagnostics: the error in a module, its location, the rule, and advice.

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
    /// The rule.
    pub code: Code,
    /// The location: in the text, or a line of Rust.
    pub origin: Origin,
    /// The error, with names and values.
    pub message: String,
    /// Other relevant locations, each with a description.
    pub related: Vec<(Origin, String)>,
    /// Advice.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic about `place`.
    pub fn new(code: Code, place: impl Into<Origin>, message: impl Into<String>) -> Self {
        Diagnostic { code, origin: place.into(), message: message.into(), related: Vec::new(), help: None }
    }

    /// Adds advice.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds another relevant location.
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

/// All diagnostics of one module.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// An empty collection.
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
