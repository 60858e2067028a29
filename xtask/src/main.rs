//! The project's own tasks: `cargo xtask TASK`.
//!
//! Exit status: 0 if what ran passed, 1 if something failed, 2 if the command line makes no sense.
#![forbid(unsafe_code)]

mod artifacts;
mod bench;
mod clients;
mod corpus;
mod counted;
mod cuda;
mod dist;
mod estimate;
mod filetests;
mod manifest;
mod models;
mod mutants;
mod qualify;
mod random;
mod run;
mod summary;
mod test;
mod tidy;
mod tools;
mod validate;
mod wheel;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The project's own tasks
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything: the workspace's tests, then what needs NVIDIA's ptxas, or Python's gguf and numpy
    Test(test::Options),
    /// Every kernel of the catalogue through ptxas, for every target: no spills, and docs/kernels.md
    Validate(validate::Options),
    /// The verifier against ptxas, on mutants of valid PTX
    Mutants(mutants::Options),
    /// Programs of others that use CUDA, on virtual GPUs: those that CI runs, or one client whole
    #[command(args_conflicts_with_subcommands = true)]
    Clients {
        /// Leave out those that need what comes from PyPI
        #[arg(long)]
        no_python: bool,
        #[command(subcommand)]
        client: Option<clients::Client>,
    },
    /// The program's logits of models with random weights against those of Python
    Models,
    /// The Python package: its wheel, and its tests with another Python than the one that built it
    Python,
    /// The invariants of the source that a script can check
    Tidy,
    /// The benchmarks, those of the peers included
    Bench {
        /// Leave those of the peers out
        #[arg(long)]
        no_peers: bool,
    },
    /// What the library's kernels are estimated to take on cards: the tables of docs/performance.md
    Estimate(estimate::Options),
    /// The program as one file for Linux machines with an old C library
    Dist,
    /// Install the pinned ptxas and nvdisasm into target/tools, and say where they are
    Tools,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Test(options) => test::run(&options),
        Task::Validate(options) => validate::run(&options),
        Task::Mutants(options) => mutants::run(&options),
        Task::Clients { no_python, client } => clients::run_all(!no_python, client.as_ref()),
        Task::Models => models::run(),
        Task::Python => wheel::run_all(),
        Task::Tidy => tidy::run(),
        Task::Bench { no_peers } => bench::run(!no_peers),
        Task::Estimate(options) => estimate::run(&options),
        Task::Dist => dist::run_all(),
        Task::Tools => {
            tools::set_up().map(|tools| println!("{}\n{}", tools.ptxas.display(), tools.nvdisasm.display()))
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
