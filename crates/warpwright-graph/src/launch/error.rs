//! Reasons why a graph cannot be planned.

use crate::graph::GraphError;
use crate::program::ProgramError;
use thiserror::Error;
use warpwright_dsl::BuildError;
use warpwright_ptx::ir::Arch;

/// Why a graph cannot be planned.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The graph is invalid.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The program's steps cannot be run: no step makes an output, or a pass has made a mistake.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The library has no kernel for a step.
    #[error("no kernel for {step} of {}: {reason}", names(.nodes))]
    Unsupported {
        /// Names of the nodes whose work the step does.
        nodes: Vec<String>,
        /// What the step does.
        step: &'static str,
        /// What stands against it.
        reason: Box<Unsupported>,
    },
    /// A single step needs more bytes than there are addresses.
    #[error("the tensors of the plan need more than 2⁶⁴ bytes at a time")]
    TooLarge,
}

/// Why the library has no kernel for a step.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// The kernel does not accept the configuration.
    #[error("`{kernel}`: {error}")]
    Configuration {
        /// The kernel that would be asked for.
        kernel: String,
        /// What it says.
        error: BuildError,
    },
    /// The kernel needs a later architecture.
    #[error("`{kernel}` needs sm_{needed}, and the device is {given}")]
    Target {
        /// The kernel.
        kernel: String,
        /// The oldest architecture that it runs on.
        needed: u16,
        /// That of the device.
        given: Arch,
    },
    /// No kernel has that form.
    #[error("{0}")]
    Form(String),
    /// A number exceeds the kernel's limit.
    #[error("{what} is {value}: it must be at most {max}")]
    Limit {
        /// Which number.
        what: String,
        /// Its value.
        value: u64,
        /// The largest.
        max: u64,
    },
    /// A step passes other arguments than the kernel takes: a bug of the library.
    #[error("`{kernel}` takes {needed}, and is given {given}")]
    Argument {
        /// The kernel.
        kernel: String,
        /// What it takes.
        needed: String,
        /// What it was given.
        given: String,
    },
}

fn names(nodes: &[String]) -> String {
    if nodes.is_empty() {
        return "no node".into();
    }
    let names: Vec<String> = nodes.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
