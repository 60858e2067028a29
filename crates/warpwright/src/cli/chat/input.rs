//! Where messages come from: a person, who can edit them, or a file or a pipe, line by line.

use crate::cli::Failure;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};
use std::cell::Cell;
use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};

/// What a message is asked for with.
const PROMPT: &str = "> ";

/// Where messages come from.
pub(super) enum Input {
    /// A terminal that shows what is typed. What was typed is kept in memory, and nowhere else.
    Editor(Box<Editor<Typed, MemHistory>>),
    /// Lines as they come, of a person where that is asked for them.
    Lines { watched: bool },
}

impl Input {
    pub(super) fn new() -> Result<Input, Failure> {
        let watched = io::stdin().is_terminal();
        if !watched || !io::stdout().is_terminal() {
            return Ok(Input::Lines { watched });
        }
        let mut editor =
            Editor::with_history(rustyline::Config::default(), MemHistory::new()).map_err(failed)?;
        editor.set_helper(Some(Typed::default()));
        Ok(Input::Editor(Box::new(editor)))
    }

    /// Whether a person is at a terminal.
    pub(super) fn is_watched(&self) -> bool {
        matches!(self, Input::Editor(_) | Input::Lines { watched: true })
    }

    /// The next message, of several lines where they were pasted; nothing where there are no more.
    pub(super) fn next(&mut self) -> Result<Option<String>, Failure> {
        let editor = match self {
            Input::Editor(editor) => editor,
            Input::Lines { watched } => return next_line(*watched),
        };
        // Whether the last thing that was done is Ctrl-C where nothing was typed.
        let mut told = false;
        loop {
            if let Some(typed) = editor.helper() {
                typed.anything.set(false);
            }
            match editor.readline(PROMPT) {
                Ok(line) => {
                    // A history that does not take it is no reason not to answer.
                    let _ = editor.add_history_entry(line.as_str());
                    return Ok(Some(line));
                }
                Err(ReadlineError::Eof) => return Ok(None),
                Err(ReadlineError::Interrupted) => {
                    let discarded = editor.helper().is_some_and(|typed| typed.anything.get());
                    match (discarded, told) {
                        (true, _) => told = false,
                        (false, false) => {
                            writeln!(io::stderr(), "Ctrl-C again, Ctrl-D or `/exit` leaves")?;
                            told = true;
                        }
                        (false, true) => return Ok(None),
                    }
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

fn failed(error: impl Display) -> Failure {
    Failure::Message(format!("cannot read a message: {error}"))
}

fn next_line(watched: bool) -> Result<Option<String>, Failure> {
    if watched {
        write!(io::stderr(), "{PROMPT}")?;
        io::stderr().flush()?;
    }
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).map_err(failed)?;
    if read == 0 && watched {
        writeln!(io::stderr())?;
    }
    Ok((read > 0).then_some(line))
}

/// Knows whether a line has anything in it: the editor does not tell it of one that Ctrl-C has discarded.
#[derive(Default)]
pub(super) struct Typed {
    anything: Cell<bool>,
}

impl Hinter for Typed {
    type Hint = String;

    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        self.anything.set(!line.is_empty());
        None
    }
}

impl Completer for Typed {
    type Candidate = String;
}

impl Highlighter for Typed {}
impl Validator for Typed {}
impl Helper for Typed {}
