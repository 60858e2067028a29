//! A stand-in for `ptxas`, NVIDIA's assembler: it checks PTX and keeps it as PTX.
//!
//! Triton starts `ptxas` and loads what that has written. [`exec`](super) has it start this program under that name.

use crate::cli::Failure;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use warpwright_ptx::diag::{Diagnostics, LineIndex, Severity};
use warpwright_ptx::ir::{Arch, Origin};
use warpwright_ptx::{parse, verify};

/// The name by which this program is the stand-in.
pub(super) const NAME: &str = "ptxas";

/// The exit status of `ptxas` after errors.
const FAILED: u8 = 255;

/// Options whose value is the next argument.
const WITH_VALUE: [&str; 10] = [
    "-arch",
    "--gpu-name",
    "-o",
    "--output-file",
    "-O",
    "--opt-level",
    "-maxrregcount",
    "--maxrregcount",
    "-m",
    "--machine",
];

/// Whether the program was started under that name.
pub(crate) fn is_called() -> bool {
    std::env::args_os().next().is_some_and(|program| Path::new(&program).file_name() == Some(NAME.as_ref()))
}

/// Does what the arguments of the process say.
pub(crate) fn run() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let result = match Command::read(&arguments) {
        Ok(Command::Version) => version(),
        Ok(Command::Assemble { input, output, target }) => assemble(&input, &output, target),
        Err(message) => Err(Failure::Message(message)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Message(message)) => {
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::from(FAILED)
        }
        Err(_) => ExitCode::from(FAILED),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Command {
    Version,
    Assemble { input: String, output: String, target: Option<Arch> },
}

impl Command {
    fn read(arguments: &[String]) -> Result<Command, String> {
        let (mut input, mut output, mut target) = (None, "elf.o".to_string(), None);
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if ["--version", "-V"].contains(&argument.as_str()) {
                return Ok(Command::Version);
            }
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with('-') => (name, Some(value.to_string())),
                _ if WITH_VALUE.contains(&argument.as_str()) => {
                    (argument.as_str(), arguments.next().cloned())
                }
                _ => (argument.as_str(), None),
            };
            match name {
                "-arch" | "--gpu-name" => {
                    let name = value.unwrap_or_default();
                    let arch = name.parse::<Arch>().ok().filter(|arch| arch.introduced().is_some());
                    target = Some(arch.ok_or_else(|| {
                        format!("ptxas fatal   : Value '{name}' is not defined for option 'gpu-name'")
                    })?);
                }
                "-o" | "--output-file" => output = value.unwrap_or(output),
                // The others say how good machine code is to be, and what is told of it.
                _ if name.starts_with('-') => {}
                _ => {
                    if let Some(before) = input.replace(name.to_string()) {
                        return Err(format!(
                            "ptxas fatal   : the stand-in takes one input, and not `{before}` too"
                        ));
                    }
                }
            }
        }
        let input = input.ok_or("ptxas fatal   : No input files specified")?;
        Ok(Command::Assemble { input, output, target })
    }
}

/// Tells the version of CUDA whose driver there is, in the form that clients look for.
fn version() -> Result<(), Failure> {
    let release =
        std::env::var("WARPWRIGHT_DRIVER_VERSION").ok().and_then(|release| release.parse::<u32>().ok());
    let release = release.unwrap_or(13050);
    let (major, minor) = (release / 1000, release % 1000 / 10);
    let text = format!(
        "ptxas: a stand-in of Warpwright, which keeps PTX as PTX\n\
         Cuda compilation tools, release {major}.{minor}, V{major}.{minor}.0\n"
    );
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn assemble(input: &str, output: &str, target: Option<Arch>) -> Result<(), Failure> {
    let fatal = |what: String| Failure::Message(format!("ptxas fatal   : {what}"));
    let text = std::fs::read(input).map_err(|error| fatal(format!("{input}: {error}")))?;
    // Other bytes than ASCII can be in comments and strings alone.
    let text = String::from_utf8_lossy(&text);
    let module = parse(&text).map_err(|diagnostics| told(input, &text, &diagnostics))?;
    verify(&module).map_err(|diagnostics| told(input, &text, &diagnostics))?;
    let arch = module.target.arch;
    if let Some(target) = target
        && !target.runs(arch)
    {
        return Err(fatal(format!("the text is for '{arch}', which '{target}' does not run")));
    }
    std::fs::write(output, text.as_bytes()).map_err(|error| fatal(format!("{output}: {error}")))?;
    let _ = writeln!(io::stderr(), "ptxas info    : a stand-in of Warpwright, which keeps PTX as PTX");
    Ok(())
}

/// The errors among diagnostics, a line each.
fn told(input: &str, text: &str, diagnostics: &Diagnostics) -> Failure {
    let lines = LineIndex::new(text);
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity() == Severity::Error);
    let errors = errors.map(|error| {
        let line = match error.origin {
            Origin::Text(span) => format!(", line {}", lines.position(span.start).line),
            _ => String::new(),
        };
        format!("ptxas {input}{line}; error   : {} [{}]", error.message, error.code)
    });
    let end = "ptxas fatal   : Ptx assembly aborted due to errors".to_string();
    Failure::Message(errors.chain([end]).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Command, String> {
        Command::read(&arguments.iter().map(|argument| argument.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_those_of_the_assembler() {
        let assemble = |output: &str, target| {
            Ok(Command::Assemble { input: "a.ptx".into(), output: output.into(), target })
        };
        for (arguments, expected) in [
            (&["-lineinfo", "-v", "--gpu-name=sm_90a", "a.ptx", "-o", "b.cubin"][..], {
                assemble("b.cubin", Some(Arch::specific(90)))
            }),
            (&["-arch", "sm_80", "--opt-level", "3", "a.ptx"], assemble("elf.o", Some(Arch::sm(80)))),
            (&["-O3", "--fmad=false", "a.ptx", "--output-file=c"], assemble("c", None)),
            (&["a.ptx", "--version"], Ok(Command::Version)),
        ] {
            assert_eq!(read(arguments), expected, "{arguments:?}");
        }
        for wrong in [&["-arch=sm_81", "a.ptx"][..], &["-v"], &["a.ptx", "b.ptx"], &[]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
