//! Programs on virtual GPUs: `cargo xtask clients`.
//!
//! First the examples of our runtime, as programs that use a CUDA device. Then third-party programs, under `warpwright
//! exec --check all --fail`: cudarc, in the version of `Cargo.lock`, from the registry's source (its examples, and the
//! unit tests of its driver module), and NVIDIA's Python bindings. Some need only the driver; most compile their
//! kernels with NVIDIA's nvrtc, which needs no GPU and is installed from PyPI into `target/tools`, as the bindings are.
//! Then a part of numba-cuda's own tests, and of CUTLASS's examples. `cargo xtask clients NAME` runs a client whole: [`by_name`].

mod by_name;
mod cudarc;

pub(crate) use by_name::Client;

use crate::run::{build_workspace, root, run, target_dir};
use crate::summary::{SuiteResult, Summary};
use crate::tools;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The names of the suites.
const OURS: &str = "examples of the runtime, on virtual GPUs";
const DRIVER: &str = "cudarc's examples and tests on the driver alone";
const NVRTC: &str = "cudarc's examples and tests that compile with nvrtc";
const BINDINGS: &str = "NVIDIA's Python bindings of the driver API";

/// The exit status of a program with findings.
const FOUND: i32 = 99;

/// Runs these suites by themselves; or the client of a name, whole.
pub(crate) fn run_all(python: bool, client: Option<&Client>) -> Result<(), String> {
    let mut summary = Summary::begin();
    match client {
        None => check(python, &mut summary),
        Some(client) => match Host::build() {
            Ok(host) => by_name::check(&host, client, &mut summary),
            Err(why) => summary.add_failure(OURS, &why),
        },
    }
    summary.finish()
}

/// Runs the programs; with `python`, also those that need packages from PyPI.
pub(crate) fn check(python: bool, summary: &mut Summary) {
    if !cfg!(target_os = "linux") {
        for part in [OURS, DRIVER, NVRTC, BINDINGS, by_name::NUMBA, by_name::CUTLASS] {
            summary.add_not_run(part, "the CUDA driver API over the virtual GPU is for Linux");
        }
        return;
    }
    println!("$ {OURS}");
    let host = match Host::build() {
        Ok(host) => host,
        Err(why) => return summary.add_failure(OURS, &why),
    };
    match ours(&host) {
        Ok(part) => summary.add(part),
        Err(why) => summary.add_failure(OURS, &why),
    }
    println!("$ {DRIVER}");
    let with_python = python;
    let python = match python {
        true => tools::python_with("clients", &root().join("tools/clients/requirements.txt")),
        false => Err("leave out --no-python to run it".to_string()),
    };
    let nvrtc = python.as_deref().map_err(String::clone).and_then(nvrtc);
    match cudarc::Client::build() {
        Ok(client) => {
            summary.add(client.run(&host, None, DRIVER));
            match &nvrtc {
                Ok(folder) => {
                    println!("$ {NVRTC}");
                    summary.add(client.run(&host, Some(folder), NVRTC));
                }
                Err(why) => summary.add_not_run(NVRTC, why),
            }
        }
        Err(cudarc::Missing::Source(why)) => {
            for part in [DRIVER, NVRTC] {
                summary.add_not_run(part, &why);
            }
        }
        Err(cudarc::Missing::Build(why)) => summary.add_failure(DRIVER, &why),
    }
    match (&python, &nvrtc) {
        (Ok(python), Ok(folder)) => bindings(&host, python, folder, summary),
        (Err(why), _) | (_, Err(why)) => summary.add_not_run(BINDINGS, why),
    }
    if with_python {
        by_name::check(&host, &Client::Numba { quick: true }, summary);
        by_name::check(&host, &Client::Cutlass { quick: true, names: Vec::new() }, summary);
    } else {
        for part in [by_name::NUMBA, by_name::CUTLASS] {
            summary.add_not_run(part, "leave out --no-python to run it");
        }
    }
}

/// Runs the examples of the runtime, whose exit status says whether their results are right.
fn ours(host: &Host) -> Result<SuiteResult, String> {
    // The one that has nothing of ours but what this prints.
    let emitted = target_dir().join("clients/rms_norm.json");
    std::fs::create_dir_all(target_dir().join("clients")).map_err(|error| error.to_string())?;
    let emitted = emitted.to_string_lossy();
    let kernel = ["emit", "rms_norm", "--set", "d=1024", "--set", "epsilon=1e-5", "--json", "-o", &*emitted];
    run(Command::new(&host.program).args(kernel))?;
    let mut part = SuiteResult { name: OURS.to_string(), passed: 0, failed: 0, remark: String::new() };
    for (example, arguments) in
        [("devices", &[][..]), ("launches", &[]), ("beside_cudarc", &[]), ("plain_cudarc", &[&*emitted])]
    {
        match run(&mut host.exec("90", true, &host.examples.join(example), arguments)) {
            Ok(()) => part.passed += 1,
            Err(why) => {
                println!("failed example {example}: {why}");
                part.failed += 1;
            }
        }
    }
    Ok(part)
}

/// Runs the script, which prints its passed tests.
fn bindings(host: &Host, python: &Path, nvrtc: &Path, summary: &mut Summary) {
    println!("$ {BINDINGS}");
    let script = root().join("tools/clients/bindings.py").to_string_lossy().into_owned();
    let mut all = SuiteResult { name: BINDINGS.to_string(), passed: 0, failed: 0, remark: String::new() };
    // A program that exits early frees nothing.
    for (arguments, leaks) in [(&[script.as_str()][..], true), (&[script.as_str(), "end"], false)] {
        let mut command = host.exec("90", leaks, python, arguments);
        command.env("LD_LIBRARY_PATH", nvrtc).env("PYTHONDONTWRITEBYTECODE", "1");
        match counted(&mut command, BINDINGS) {
            Ok(part) => {
                all.passed += part.passed;
                all.failed += part.failed;
                all.remark += &part.remark;
            }
            Err(why) => return summary.add_failure(BINDINGS, &why),
        }
    }
    summary.add(all);
}

/// Runs a script that prints a line for each test: `ok NAME`, `failed NAME: why` or `left out NAME: why`. What is left out
/// is counted in the remark.
fn counted(command: &mut Command, name: &str) -> Result<SuiteResult, String> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let mut part = SuiteResult { name: name.to_string(), ..SuiteResult::default() };
    let mut left_out = 0;
    // Shown as it comes: a whole client takes long.
    for line in child.stdout.take().into_iter().flat_map(|pipe| BufReader::new(pipe).split(b'\n')) {
        let line = line.map_err(|error| error.to_string())?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        part.passed += usize::from(line.starts_with("ok "));
        part.failed += usize::from(line.starts_with("failed "));
        left_out += usize::from(line.starts_with("left out "));
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if part.failed == 0 && (part.passed == 0 || !status.success()) {
        // It did not get to its end, or something was found.
        (part.failed, part.remark) = (1, status.to_string());
    } else if left_out > 0 {
        part.remark = format!("{left_out} left out");
    }
    Ok(part)
}

/// The folder with nvrtc of that Python.
fn nvrtc(python: &Path) -> Result<PathBuf, String> {
    let venv = python.parent().and_then(Path::parent).unwrap_or(Path::new(""));
    let versions = std::fs::read_dir(venv.join("lib")).into_iter().flatten().flatten();
    let mut folders = versions.map(|version| version.path().join("site-packages/nvidia/cuda_nvrtc/lib"));
    folders.find(|folder| folder.is_dir()).ok_or_else(|| "the package holds no nvrtc for this system".into())
}

/// Runs programs on virtual GPUs.
struct Host {
    program: PathBuf,
    library: PathBuf,
    /// Where the examples of the workspace are.
    examples: PathBuf,
}

impl Host {
    fn build() -> Result<Host, String> {
        let folder = build_workspace()?;
        let (program, library) = (folder.join("warpwright"), folder.join("libwarpwright_cuda.so"));
        Ok(Host { program, library, examples: folder.join("examples") })
    }

    /// A program on virtual GPUs of these architectures, with all checks, which exits with [`FOUND`] after a finding;
    /// with `leaks`, also after a leak.
    fn exec(&self, sm: &str, leaks: bool, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["exec", "--check", "all", &format!("--fail={FOUND}"), "--sm", sm, "--library"]);
        command.arg(&self.library).args(leaks.then_some("--leaks")).arg("--").arg(program).args(arguments);
        command
    }
}
