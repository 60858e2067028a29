//! Programs that nobody here wrote, on virtual GPUs: `cargo xtask clients`.
//!
//! What is run is cudarc, in the version that `Cargo.lock` has, from the registry's source: its examples, and the unit
//! tests of its driver module, under `warpwright exec --check all --fail`. Some need nothing but the driver; most
//! compile their kernels with NVIDIA's nvrtc, which needs no GPU and comes from PyPI into `target/tools`.

mod cudarc;

use crate::run::{cargo, root, run, target_dir};
use crate::summary::Summary;
use crate::{Failure, tools};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the parts are called.
const DRIVER: &str = "cudarc's examples and tests on the driver alone";
const NVRTC: &str = "cudarc's examples and tests that compile with nvrtc";

/// Exit status of a program in whose kernels something was found.
const FOUND: i32 = 99;

/// These parts by themselves.
pub(crate) fn run_all(python: bool) -> Result<(), Failure> {
    let mut summary = Summary::default();
    check(python, &mut summary);
    summary.finish()
}

/// Runs the programs; with `python`, those too that need what comes from PyPI.
pub(crate) fn check(python: bool, summary: &mut Summary) {
    if !cfg!(target_os = "linux") {
        for part in [DRIVER, NVRTC] {
            summary.add_not_run(part, "the CUDA driver API over the virtual GPU is for Linux");
        }
        return;
    }
    println!("$ {DRIVER}");
    let host = match Host::build() {
        Ok(host) => host,
        Err(why) => return summary.add_failure(DRIVER, &why),
    };
    let client = match cudarc::Client::build() {
        Ok(client) => client,
        Err(cudarc::Missing::Source(why)) => {
            for part in [DRIVER, NVRTC] {
                summary.add_not_run(part, &why);
            }
            return;
        }
        Err(cudarc::Missing::Build(why)) => return summary.add_failure(DRIVER, &why),
    };
    summary.add(client.run(&host, None, DRIVER));

    let nvrtc = match python {
        true => nvrtc(),
        false => Err("leave out --no-python to run it".to_string()),
    };
    match nvrtc {
        Ok(folder) => {
            println!("$ {NVRTC}");
            summary.add(client.run(&host, Some(&folder), NVRTC));
        }
        Err(why) => summary.add_not_run(NVRTC, &why),
    }
}

/// The folder with nvrtc, installed if it is not there.
fn nvrtc() -> Result<PathBuf, String> {
    let python = tools::python_with("nvrtc", &root().join("tools/clients/requirements.txt"))?;
    let venv = python.parent().and_then(Path::parent).unwrap_or(Path::new(""));
    let versions = std::fs::read_dir(venv.join("lib")).into_iter().flatten().flatten();
    let mut folders = versions.map(|version| version.path().join("site-packages/nvidia/cuda_nvrtc/lib"));
    folders.find(|folder| folder.is_dir()).ok_or_else(|| "the package holds no nvrtc for this system".into())
}

/// What makes virtual GPUs of programs' drivers.
struct Host {
    program: PathBuf,
    library: PathBuf,
}

impl Host {
    /// As the tests are built, so that most of it is there.
    fn build() -> Result<Host, String> {
        let packages = ["-p", "warpwright", "-p", "warpwright-libcuda", "--bin", "warpwright", "--lib"];
        run(cargo().args(["build", "--quiet", "--profile", "test"]).args(packages))?;
        let folder = target_dir().join("debug");
        Ok(Host { program: folder.join("warpwright"), library: folder.join("libwarpwright_cuda.so") })
    }

    /// A program on virtual GPUs of these architectures, all checks on, which ends with [`FOUND`] where something is
    /// found.
    fn exec(&self, sm: &str, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["exec", "--check", "all", &format!("--fail={FOUND}"), "--sm", sm, "--library"]);
        command.arg(&self.library).arg("--").arg(program).args(arguments);
        command
    }
}
