//! `warpwright check`: parses and verifies PTX files.

use super::{Failure, Outcome, json, source};
use std::io::{self, IsTerminal, Write};
use warpwright_ptx::diag::{Diagnostics, Severity, render};
use warpwright_ptx::ir::Arch;
use warpwright_ptx::{parse, verify};

/// Check PTX files: exit 0 if clean (warnings allowed), 1 on errors, 2 if a file cannot be read
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// PTX files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Check for this target (such as sm_90a) instead of the one that the file names
    #[arg(long, value_name = "TARGET")]
    target: Option<Arch>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// Findings to treat as errors
    #[arg(long, value_name = "WHAT")]
    deny: Option<Denied>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Denied {
    /// All warnings
    Warnings,
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Fine;
    let mut reports = Vec::new();
    let mut unreadable = None;
    for name in &arguments.files {
        let text = match source::read(name) {
            Ok(text) => text,
            // The other files are checked all the same.
            Err(Failure::Message(message)) => {
                // The last one is told by the caller.
                if let Some(earlier) = unreadable.replace(message) {
                    let _ = writeln!(io::stderr(), "error: {earlier}");
                }
                continue;
            }
            Err(other) => return Err(other),
        };
        let diagnostics = findings(&text, arguments.target);
        let worst = diagnostics.iter().map(|diagnostic| diagnostic.severity()).max();
        let refused = match worst {
            Some(Severity::Error) => true,
            Some(Severity::Warning) => arguments.deny == Some(Denied::Warnings),
            _ => false,
        };
        if refused {
            outcome = Outcome::Found;
        }
        if arguments.json {
            reports.push(json::checked(source::display_name(name), &text, &diagnostics));
        } else {
            print_diagnostics(&diagnostics, name, &text)?;
        }
    }
    if arguments.json {
        json::document(out, json::object! { files: reports })?;
    }
    match unreadable {
        Some(message) => {
            out.flush()?;
            Err(Failure::Message(message))
        }
        None => Ok(outcome),
    }
}

/// Everything that is to be said of the text.
fn findings(text: &str, target: Option<Arch>) -> Diagnostics {
    let mut module = match parse(text) {
        Ok(module) => module,
        Err(diagnostics) => return diagnostics,
    };
    if let Some(arch) = target {
        module.target.arch = arch;
    }
    match verify(&module) {
        Ok(info) => info.diagnostics,
        Err(diagnostics) => diagnostics,
    }
}

/// Prints diagnostics with the lines that they are about, to standard error.
pub(crate) fn print_diagnostics(diagnostics: &Diagnostics, name: &str, text: &str) -> Result<(), Failure> {
    if diagnostics.is_empty() {
        return Ok(());
    }
    let mut out = io::stderr().lock();
    let color = out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let rendered = render(diagnostics, source::display_name(name), text, color);
    out.write_all(rendered.as_bytes())?;
    if !rendered.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity() == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    if errors + warnings > 0 {
        writeln!(out, "{}: {}", source::display_name(name), totals(errors, warnings))?;
    }
    Ok(())
}

fn totals(errors: usize, warnings: usize) -> String {
    let part = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    match (errors, warnings) {
        (0, warnings) => part(warnings, "warning"),
        (errors, 0) => part(errors, "error"),
        (errors, warnings) => format!("{}, {}", part(errors, "error"), part(warnings, "warning")),
    }
}
