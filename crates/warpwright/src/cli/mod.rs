//! The command line, with one file for each subcommand.
//!
//! Every subcommand returns an [`Outcome`], which determines the exit status: 0 for success, 1 if there are findings, 2
//! if the program could not do its work.

#[cfg(feature = "llm")]
mod bench;
#[cfg(feature = "llm")]
mod chat;
mod check;
mod devices;
mod emit;
#[cfg(feature = "llm")]
mod engine;
mod exec;
mod fidelity;
mod fmt;
#[cfg(feature = "llm")]
mod generate;
#[cfg(feature = "llm")]
mod inspect;
mod json;
mod kernels;
#[cfg(feature = "llm")]
mod logits;
#[cfg(feature = "llm")]
mod model;
mod npy;
#[cfg(feature = "llm")]
mod perplexity;
#[cfg(feature = "llm")]
mod plan;
mod qualify;
mod referee;
mod reports;
mod run;
mod source;
#[cfg(feature = "llm")]
mod tokenize;
mod tune;
#[cfg(feature = "llm")]
mod tuning;
mod virtual_gpu;

use clap::{Parser, Subcommand};
use std::io::{self, Write};
use std::process::ExitCode;

/// Write, check and print NVIDIA GPU kernels, without a GPU.
#[derive(Parser)]
#[command(name = "warpwright", version, about, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Arguments),
    Devices(devices::Arguments),
    Exec(exec::Arguments),
    Fidelity(fidelity::Arguments),
    Fmt(fmt::Arguments),
    Kernels(kernels::Arguments),
    Emit(emit::Arguments),
    Run(run::Arguments),
    Profile(run::ProfileArguments),
    Qualify(qualify::Arguments),
    Referee(referee::Arguments),
    Tune(tune::Arguments),
    #[cfg(feature = "llm")]
    Generate(generate::Arguments),
    #[cfg(feature = "llm")]
    Chat(chat::Arguments),
    #[cfg(feature = "llm")]
    Logits(logits::Arguments),
    #[cfg(feature = "llm")]
    Bench(bench::Arguments),
    #[cfg(feature = "llm")]
    Perplexity(perplexity::Arguments),
    #[cfg(feature = "llm")]
    Inspect(inspect::Arguments),
    #[cfg(feature = "llm")]
    Plan(plan::Arguments),
    #[cfg(feature = "llm")]
    Tokenize(tokenize::Arguments),
    #[cfg(feature = "llm")]
    Detokenize(tokenize::DetokenizeArguments),
}

/// The result of a subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Success.
    Fine,
    /// There are findings.
    Found,
    /// The user interrupted it.
    #[cfg(feature = "llm")]
    Interrupted,
    /// The program that was run exited with this status.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "programs are run on Linux"))]
    Status(u8),
}

/// The exit status after an interrupt, as in shells: 128 plus the number of the signal.
#[cfg(feature = "llm")]
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a subcommand failed.
pub(crate) enum Failure {
    /// The reader of the output has closed it.
    OutputClosed,
    /// Findings ended it, and they have been shown.
    #[cfg(feature = "llm")]
    Found,
    /// A message for the user.
    Message(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure::Message(message)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Failure::OutputClosed
        } else {
            Failure::Message(format!("cannot write the output: {error}"))
        }
    }
}

/// Runs the program.
pub(crate) fn run() -> ExitCode {
    if exec::ptxas::is_called() {
        return exec::ptxas::run();
    }
    let arguments = Arguments::parse();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let outcome = match &arguments.command {
        Command::Check(arguments) => check::run(arguments, &mut out),
        Command::Devices(arguments) => devices::run(arguments, &mut out),
        Command::Exec(arguments) => exec::run(arguments),
        Command::Fidelity(arguments) => fidelity::run(arguments, &mut out),
        Command::Fmt(arguments) => fmt::run(arguments, &mut out),
        Command::Kernels(arguments) => kernels::run(arguments, &mut out),
        Command::Emit(arguments) => emit::run(arguments, &mut out),
        Command::Run(arguments) => run::run(arguments, &mut out),
        Command::Profile(arguments) => run::profile(arguments, &mut out),
        Command::Qualify(arguments) => qualify::run(arguments, &mut out),
        Command::Referee(arguments) => referee::run(arguments),
        Command::Tune(arguments) => tune::run(arguments, &mut out),
        #[cfg(feature = "llm")]
        Command::Generate(arguments) => generate::run(arguments, &mut out),
        #[cfg(feature = "llm")]
        Command::Chat(arguments) => chat::run(arguments, &mut out),
        #[cfg(feature = "llm")]
        Command::Logits(arguments) => logits::run(arguments, &mut out),
        #[cfg(feature = "llm")]
        Command::Bench(arguments) => bench::run(arguments, &mut out),
        #[cfg(feature = "llm")]
        Command::Perplexity(arguments) => perplexity::run(arguments, &mut out),
        #[cfg(feature = "llm")]
        Command::Inspect(arguments) => inspect::run(arguments, &mut out),
        #[cfg(feature = "llm")]
        Command::Plan(arguments) => plan::run(arguments, &mut out),
        #[cfg(feature = "llm")]
        Command::Tokenize(arguments) => tokenize::run(arguments, &mut out),
        #[cfg(feature = "llm")]
        Command::Detokenize(arguments) => tokenize::detokenize(arguments, &mut out),
    };
    let outcome = outcome.and_then(|outcome| {
        out.flush()?;
        Ok(outcome)
    });
    match outcome {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Found) => ExitCode::from(1),
        #[cfg(feature = "llm")]
        Err(Failure::Found) => ExitCode::from(1),
        #[cfg(feature = "llm")]
        Ok(Outcome::Interrupted) => ExitCode::from(INTERRUPTED),
        Ok(Outcome::Status(status)) => ExitCode::from(status),
        Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(Failure::Message(message)) => {
            // Nothing is left to do if standard error is gone too.
            let _ = writeln!(io::stderr(), "error: {message}");
            ExitCode::from(2)
        }
    }
}
