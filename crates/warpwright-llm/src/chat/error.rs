//! Errors of chat templates.

use minijinja::{Error, ErrorKind};
use std::fmt;

/// Why a chat template cannot be read or used. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The model file has something else in place of its template.
    #[error(transparent)]
    File(#[from] crate::gguf::GgufError),
    /// The template has a syntax error.
    #[error("chat template{}: {}", at(line), shown(message))]
    Syntax {
        /// Where it stops making sense.
        line: Option<usize>,
        /// What is wrong there.
        message: String,
    },
    /// The template refuses the conversation, in its own words (`raise_exception`).
    #[error("the chat template refuses this conversation: {}", shown(message))]
    Refused {
        /// What it says.
        message: String,
    },
    /// There are no messages.
    #[error("a conversation needs at least one message")]
    NoMessages,
    /// The renderer itself failed.
    #[error("the chat template makes its renderer fail")]
    Renderer,
    /// The template exceeds a limit: steps, memory or nesting of values.
    #[error("chat template{}: {rule}", at(line))]
    TooMuch {
        /// Where.
        line: Option<usize>,
        /// What it does too much of, and what the limit is.
        rule: String,
    },
    /// The template fails while it is rendered.
    #[error("chat template{}: {}", at(line), shown(message))]
    Render {
        /// Where.
        line: Option<usize>,
        /// What is wrong.
        message: String,
    },
}

fn at(line: &Option<usize>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

/// Characters of a template's own words that are shown.
const MAX_SHOWN: usize = 300;

/// What a template says, as far as a line has room, with what a terminal would act on escaped.
fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let mut shown: String = chars.by_ref().take(MAX_SHOWN).flat_map(escaped).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

fn escaped(c: char) -> Box<dyn Iterator<Item = char>> {
    match c {
        '"' | '\'' => Box::new(std::iter::once(c)),
        c => Box::new(c.escape_debug()),
    }
}

impl ChatError {
    pub(super) fn syntax(error: Error) -> ChatError {
        ChatError::Syntax { line: error.line(), message: message(&error) }
    }

    pub(super) fn render(error: Error) -> ChatError {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(next) = cause {
            if let Some(Raised(message)) = next.downcast_ref() {
                return ChatError::Refused { message: message.clone() };
            }
            if let Some(TooMuch(rule)) = next.downcast_ref() {
                return ChatError::TooMuch { line: error.line(), rule: rule.clone() };
            }
            cause = next.source();
        }
        match error.kind() {
            ErrorKind::OutOfFuel => {
                let rule = format!("it takes more than {} steps", super::environment::MAX_STEPS);
                ChatError::TooMuch { line: error.line(), rule }
            }
            _ => ChatError::Render { line: error.line(), message: message(&error) },
        }
    }
}

fn message(error: &Error) -> String {
    match (error.kind(), error.detail()) {
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    }
}

/// What a template raises, as the cause of the renderer's own error.
#[derive(Debug)]
pub(super) struct Raised(pub(super) String);

/// Which limit a template reached, as the cause of the renderer's own error.
#[derive(Debug)]
pub(super) struct TooMuch(pub(super) String);

macro_rules! causes {
    ($($cause:ident),*) => {$(
        impl fmt::Display for $cause {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::error::Error for $cause {}
    )*};
}
causes!(Raised, TooMuch);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_template_says_is_a_line_that_no_terminal_acts_on() {
        let shown = |message: &str| ChatError::Refused { message: message.into() }.to_string();
        let before = "the chat template refuses this conversation: ";
        assert_eq!(shown("It's \"no\", 日本"), format!("{before}It's \"no\", 日本"));
        assert_eq!(shown("\x1b[2J\r\nno\u{202e}"), format!(r"{before}\u{{1b}}[2J\r\nno\u{{202e}}"));
        assert_eq!(shown(&"é".repeat(300)), format!("{before}{}", "é".repeat(300)));
        assert_eq!(shown(&"é".repeat(301)), format!("{before}{}…", "é".repeat(300)));
    }
}
