//! `warpwright fmt`: the canonical text of a PTX file.

use super::{Failure, Outcome, check, source};
use std::io::Write;
use warpwright_ptx::{parse, print};

/// Print PTX in its canonical form, comments kept
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// PTX files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Print nothing; list the files that would change, and exit with 1 if there are any
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Rewrite the files in place
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Outcome, Failure> {
    if !arguments.check && !arguments.write && arguments.files.len() > 1 {
        return Err("several files need `--check` or `--write`: their texts would run together"
            .to_string()
            .into());
    }
    let mut outcome = Outcome::Fine;
    for name in &arguments.files {
        let text = source::read(name)?;
        let module = match parse(&text) {
            Ok(module) => module,
            Err(diagnostics) => {
                check::print_diagnostics(&diagnostics, name, &text)?;
                outcome = Outcome::Found;
                continue;
            }
        };
        let printed = print(&module);
        if arguments.check {
            if printed != text {
                writeln!(out, "{} is not in canonical form", source::display_name(name))?;
                outcome = Outcome::Found;
            }
        } else if arguments.write && name != source::STDIN {
            if printed != text {
                source::replace(name, &printed)?;
            }
        } else {
            out.write_all(printed.as_bytes())?;
        }
    }
    Ok(outcome)
}
