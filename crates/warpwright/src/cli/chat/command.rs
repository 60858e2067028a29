//! Commands in a conversation.

/// A line of a conversation, parsed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'l> {
    /// An empty line.
    Nothing,
    Message(&'l str),
    Help,
    Reset,
    /// A new conversation with this system prompt.
    System(&'l str),
    Exit,
    /// An unknown command.
    Unknown(&'l str),
}

/// The output of `/help`.
pub(super) const HELP: &str = "\
/help           shows this
/reset, /clear  begins a new conversation
/system TEXT    begins a new conversation with the system prompt TEXT, or with none
/exit, /quit    leaves, like Ctrl-D
Ctrl-C          stops an answer
Everything else is a message. To send a line that looks like a command, put a space before it. Pasted lines are
one message.
";

/// What a line asks for. A command begins in the first column, and has letters alone: a path is none.
pub(super) fn line(line: &str) -> Line<'_> {
    let line = line.trim_end_matches(['\n', '\r']);
    let Some(command) = line.strip_prefix('/') else {
        return if line.trim().is_empty() { Line::Nothing } else { Line::Message(line) };
    };
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    match (name, rest) {
        ("help", "") => Line::Help,
        ("reset" | "clear", "") => Line::Reset,
        ("system", text) => Line::System(text),
        ("exit" | "quit", "") => Line::Exit,
        _ if !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphabetic()) => {
            Line::Unknown(&line[..=name.len()])
        }
        _ => Line::Message(line),
    }
}

#[cfg(test)]
mod tests {
    use super::Line::{Exit, Help, Message, Nothing, Reset, System, Unknown};
    use super::*;

    #[test]
    fn commands_stand_alone_in_the_first_column() {
        for (text, wanted) in [
            ("hello\n", Message("hello")),
            (" \t\r\n", Nothing),
            ("/help\n", Help),
            ("/help  ", Help),
            ("/reset\r\n", Reset),
            ("/clear", Reset),
            ("/exit", Exit),
            ("/quit", Exit),
            ("/system  Be brief. \n", System("Be brief.")),
            ("/system", System("")),
            ("/rest\n", Unknown("/rest")),
            ("/exit now", Unknown("/exit")),
            (" /exit", Message(" /exit")),
            ("/etc/passwd is what?", Message("/etc/passwd is what?")),
            ("/", Message("/")),
            ("// a comment", Message("// a comment")),
            ("two\nlines\n", Message("two\nlines")),
        ] {
            assert_eq!(line(text), wanted, "{text:?}");
        }
    }
}
