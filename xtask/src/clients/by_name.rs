//! Clients with tests of their own, which scripts in `tools/clients` run: `cargo xtask clients NAME`.
//!
//! Their sources come from PyPI, or from a folder that the caller names, and are run and not kept. The lists of what is
//! left out, with whose fault it is and why, stand beside the scripts.

use super::{Host, counted};
use crate::run::{root, target_dir};
use crate::summary::{SuiteResult, Summary};
use crate::{tools, wheel};
use std::path::PathBuf;
use std::process::Command;

pub(super) const NUMBA: &str = "numba-cuda's tests";
pub(super) const CUTLASS: &str = "CUTLASS's examples for Hopper and Blackwell";
const OURS_OF_TRITON: &str = "warpwright.triton's tests";

/// A client, and where its tests are.
#[derive(clap::Subcommand)]
pub(crate) enum Client {
    /// The tests that numba-cuda's wheel carries
    Numba {
        /// The part of them that CI runs
        #[arg(long)]
        quick: bool,
    },
    /// Kernels of Triton, which PyTorch launches, PyTorch's `set_flush_denormal`, and our tests of `warpwright.triton`
    Triton {
        /// A checkout of Triton, of the version that is installed: runs its tutorials and tests instead
        checkout: Option<PathBuf>,
        /// Tutorials and tests by name; without names, all of the lists
        names: Vec<String>,
    },
    /// Forward passes of tinygrad's operators, held against PyTorch
    Tinygrad {
        /// A checkout of tinygrad
        checkout: PathBuf,
    },
    /// CUTLASS's examples for Hopper and Blackwell, compiled by nvcc with a shared runtime
    Cutlass {
        /// The part of them that CI runs
        #[arg(long)]
        quick: bool,
        /// Examples by name; without names, all of the list
        names: Vec<String>,
    },
    /// NVIDIA's CUDA samples, compiled by nvcc with a shared runtime
    Samples {
        /// A checkout of cuda-samples
        checkout: PathBuf,
        /// Samples by name; without names, all of the list
        names: Vec<String>,
    },
}

/// Runs a client.
pub(super) fn check(host: &Host, client: &Client, summary: &mut Summary) {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let (name, packages, script, mut arguments) = match client {
        Client::Numba { .. } => (NUMBA, "numba", "run_tests.py", vec!["numba".into()]),
        Client::Triton { checkout: None, .. } => {
            ("Triton's kernels", "torch", "triton_kernels.py", Vec::new())
        }
        Client::Triton { checkout: Some(checkout), .. } => {
            ("Triton's tutorials and tests", "torch", "triton_tutorials.py", vec![absolute(checkout)])
        }
        Client::Tinygrad { checkout } => {
            ("tinygrad's operators", "torch", "run_tests.py", vec!["tinygrad".into(), absolute(checkout)])
        }
        Client::Cutlass { quick, .. } => {
            let part = if *quick { "quick" } else { "all" };
            (CUTLASS, "nvcc", "cutlass.py", vec![part.into()])
        }
        Client::Samples { checkout, .. } => ("CUDA samples", "nvcc", "samples.py", vec![absolute(checkout)]),
    };
    println!("$ {name}");
    let compiles = matches!(client, Client::Cutlass { .. } | Client::Samples { .. });
    if compiles && Command::new("g++").arg("--version").output().is_err() {
        return summary.add_not_run(name, "install g++, which nvcc calls (Debian: apt-get install g++)");
    }
    let folder = root().join("tools/clients");
    let python = match tools::python_with(packages, &folder.join(format!("{packages}.txt"))) {
        Ok(python) => python,
        Err(why) => return summary.add_not_run(name, &why),
    };
    // The package goes into their Python.
    if matches!(client, Client::Triton { .. })
        && let Err(why) = wheel::install(&python)
    {
        return summary.add_failure(name, &why);
    }
    let mut command = match client {
        Client::Triton { checkout: Some(_), names } => {
            let mut command = Command::new(&python);
            arguments.extend(names.iter().map(PathBuf::from));
            command.arg(folder.join(script));
            command
        }
        // It compiles, and starts each program under `exec` itself.
        Client::Cutlass { names, .. } | Client::Samples { names, .. } => {
            let mut command = Command::new(&python);
            command
                .arg(folder.join(script))
                .arg(&host.program)
                .arg(target_dir().join("clients").join(packages));
            arguments.extend(names.iter().map(PathBuf::from));
            command
        }
        // Many of their tests make errors, after which the next one goes on.
        Client::Numba { quick } => {
            arguments.extend(quick.then(|| PathBuf::from("quick")));
            going_on(host, &python, &folder.join(script))
        }
        Client::Triton { .. } | Client::Tinygrad { .. } => going_on(host, &python, &folder.join(script)),
    };
    command.args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
    match counted(&mut command, name) {
        Ok(part) => summary.add(part),
        Err(why) => summary.add_failure(name, &why),
    }
    if matches!(client, Client::Triton { checkout: None, .. }) {
        match wheel::tests(&python, &root().join("crates/warpwright-python/tests"), &["-m", "torch"]) {
            Ok(part) => summary.add(SuiteResult { name: OURS_OF_TRITON.into(), ..part }),
            Err(why) => summary.add_failure(OURS_OF_TRITON, &why),
        }
    }
}

/// A script under `exec`, with memcheck, where a kernel that fails ends and the context lives.
fn going_on(host: &Host, python: &std::path::Path, script: &std::path::Path) -> Command {
    let mut command = Command::new(&host.program);
    command.args(["exec", "--on-error", "continue", "--library"]).arg(&host.library);
    command.arg("--").arg(python).arg(script);
    command
}
