//! cudarc: its examples and tests, built from a copy of its source.
//!
//! A copy, since cargo does not build examples and tests of dependencies. It is a workspace of its own with the
//! dependencies of its own `Cargo.lock`.

use super::{FOUND, Host};
use crate::run::{cargo, target_dir};
use crate::summary::SuiteResult;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The features for the driver and nvrtc alone; neither is linked, both are looked for when they are used.
const FEATURES: &str = "std,driver,nvrtc,f16,dynamic-loading,cuda-12080";

/// The maximum number of lines of an example's output that are shown.
const MAX_LINES: usize = 20;

/// An example, and what it needs.
struct Example {
    name: &'static str,
    nvrtc: bool,
    /// The devices that it runs on.
    sm: &'static str,
    /// Whether it frees its resources.
    tidy: bool,
}

const fn example(name: &'static str, nvrtc: bool) -> Example {
    Example { name, nvrtc, sm: "90", tidy: true }
}

/// The examples that are run. Of the others, `08-cupti` needs NVIDIA's profiler, `cufile-copy` its storage library, and
/// `nvrtc-compile` no driver.
const EXAMPLES: &[Example] = &[
    example("01-allocate", false),
    example("02-copy", false),
    example("03-launch-kernel", false),
    example("04-streams", false),
    example("05-device-repr", true),
    example("06-threading", true),
    example("09-constant-memory", true),
    example("10-function-attributes", false),
    // Asks for a limit that there is no more from sm_90 on.
    Example { name: "12-context-config", nvrtc: false, sm: "80", tidy: true },
    // Frees the first device's memory while the second one's context is current, which has gone by then.
    Example { name: "13-copy-multi-gpu", nvrtc: false, sm: "90,90", tidy: false },
    example("matmul-kernel", true),
];

/// Tests that are left out, with why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("test_default_pinned_host_reads_are_faster_than_write_combined", TIMED),
    ("test_pinned_copy_is_faster", TIMED),
    ("test_par_launch", TIMED),
    ("test_multi_stream_concurrent_reads", TIMED),
    ("test_launch_with_half", "includes a header of the CUDA toolkit from the system's folders"),
];

const TIMED: &str = "holds one time against another, which says nothing where one processor plays all parts";

/// Tests whose kernels come from nvrtc.
const COMPILING: &[&str] =
    &["driver::safe::launch::", "driver::safe::unified_memory::tests::test_unified_memory"];

/// A test whose kernel fails its assertion.
const FAILING_KERNEL: &str = "test_device_side_assert";

/// Why it cannot run.
pub(super) enum Missing {
    /// cargo cannot get its source.
    Source(String),
    /// It does not build.
    Build(String),
}

/// A built copy.
pub(super) struct Client {
    folder: PathBuf,
    /// Where its examples are.
    examples: PathBuf,
    /// The program of its unit tests.
    tests: PathBuf,
}

impl Client {
    pub(super) fn build() -> Result<Client, Missing> {
        let source = source().map_err(Missing::Source)?;
        let folder = copy(&source).map_err(Missing::Build)?;
        let target = target_dir().join("clients/target");
        let cargo_in = |task: &str| {
            let mut command = cargo();
            command.arg(task).args(["--locked", "--no-default-features", "--features", FEATURES]);
            command.current_dir(&folder).env("CARGO_TARGET_DIR", &target);
            command
        };
        // What it needs besides is in no lock file of ours.
        let mut fetch = cargo();
        fetch.args(["fetch", "--locked"]).current_dir(&folder);
        output(&mut fetch).map_err(|why| {
            Missing::Source(format!(
                "what cudarc needs cannot be fetched: {why}\nrun it again with a network"
            ))
        })?;
        let mut examples = cargo_in("build");
        EXAMPLES.iter().for_each(|example| {
            examples.args(["--example", example.name]);
        });
        output(&mut examples).map_err(Missing::Build)?;
        // cargo names the program on standard error: `Executable unittests src/lib.rs (PATH)`.
        let said = output(cargo_in("test").args(["--no-run", "--lib"])).map_err(Missing::Build)?;
        let tests = said.lines().rev().find_map(|line| {
            let (_, path) = line.trim().strip_prefix("Executable")?.split_once('(')?;
            Some(folder.join(path.strip_suffix(')')?))
        });
        let tests = tests.ok_or_else(|| Missing::Build("cargo names no program of cudarc's tests".into()))?;
        Ok(Client { examples: target.join("debug/examples"), folder, tests })
    }

    /// Runs the programs that need nvrtc, from that folder, or the others.
    pub(super) fn run(&self, host: &Host, nvrtc: Option<&Path>, name: &str) -> SuiteResult {
        let mut part = SuiteResult { name: name.to_string(), passed: 0, failed: 0, remark: String::new() };
        let in_place = |command: &mut Command| {
            command.current_dir(&self.folder);
            if let Some(folder) = nvrtc {
                command.env("LD_LIBRARY_PATH", folder);
            }
        };
        let mut count = |kind: &str, name: &str, outcome: Result<(), String>| {
            match &outcome {
                Ok(()) => println!("ok {kind} {name}"),
                Err(why) => println!("failed {kind} {name}: {why}"),
            }
            part.passed += usize::from(outcome.is_ok());
            part.failed += usize::from(outcome.is_err());
        };
        for example in EXAMPLES.iter().filter(|example| example.nvrtc == nvrtc.is_some()) {
            let mut command = host.exec(example.sm, example.tidy, &self.examples.join(example.name), &[]);
            in_place(&mut command);
            let outcome = output(&mut command).and_then(|said| {
                let mut lines = said.lines();
                lines.by_ref().take(MAX_LINES).for_each(|line| println!("    {line}"));
                match lines.count() {
                    0 => {}
                    more => println!("    … {more} more lines"),
                }
                as_expected(&said)
            });
            count("example", example.name, outcome);
        }
        // Each in a process of its own: an error that stays with a context stays with its test.
        for test in self.list(nvrtc.is_some()) {
            let left_out = LEFT_OUT.iter().find(|(name, _)| test.ends_with(name));
            if let Some((_, why)) = left_out {
                println!("left out test {test}: {why}");
                continue;
            }
            let arguments = ["--exact", &test, "--include-ignored", "--test-threads", "1"];
            let mut command = host.exec("90,90", false, &self.tests, &arguments);
            in_place(&mut command);
            let outcome = match test.ends_with(FAILING_KERNEL) {
                true => fails_its_assertion(&mut command),
                false => output(&mut command).map(|_| ()),
            };
            count("test", &test, outcome);
        }
        if part.passed + part.failed == 0 {
            part.failed = 1;
            part.remark = "nothing was run".into();
        }
        part
    }

    /// The tests of the driver module that need nvrtc, or those that do not.
    fn list(&self, nvrtc: bool) -> Vec<String> {
        let mut command = Command::new(&self.tests);
        let listed = output(command.args(["--list", "--format", "terse", "driver::"])).unwrap_or_default();
        let tests = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        let compiles = |test: &str| COMPILING.iter().any(|prefix| test.starts_with(prefix));
        tests.filter(|test| compiles(test) == nvrtc).map(str::to_string).collect()
    }
}

/// Where cargo has the source of the version that the workspace uses.
fn source() -> Result<PathBuf, String> {
    let metadata = cargo().args(["metadata", "--format-version", "1", "--locked"]).output();
    let metadata = metadata.map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !metadata.status.success() {
        let said = String::from_utf8_lossy(&metadata.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
        return Err(format!("cargo does not know where cudarc is: {last}\nrun it again with a network"));
    }
    // Paths stand in quotes and have no quotes in them.
    let text = String::from_utf8_lossy(&metadata.stdout);
    let manifests = text.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let mut folders = manifests.filter_map(|manifest| Path::new(manifest).parent());
    let is_cudarc = |folder: &&Path| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let version = name.strip_prefix("cudarc-");
        version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
    };
    let folder = folders.find(is_cudarc).ok_or("the workspace does not use cudarc from a registry")?;
    Ok(folder.to_path_buf())
}

/// A copy that can be built, made once for each version.
fn copy(source: &Path) -> Result<PathBuf, String> {
    let name = source.file_name().unwrap_or_default();
    let folder = target_dir().join("clients").join(name);
    let cannot = |path: &Path, error| format!("cannot copy {}: {error}", path.display());
    let manifest = folder.join("Cargo.toml");
    if manifest.is_file() {
        return Ok(folder);
    }
    let _ = fs::remove_dir_all(&folder);
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        let from = source.join(&inner);
        fs::create_dir_all(folder.join(&inner)).map_err(|error| cannot(&from, error))?;
        for entry in fs::read_dir(&from).map_err(|error| cannot(&from, error))?.flatten() {
            let (path, inner) = (entry.path(), inner.join(entry.file_name()));
            if path.is_dir() {
                folders.push(inner);
            } else if inner != Path::new("Cargo.toml") {
                fs::copy(&path, folder.join(&inner)).map_err(|error| cannot(&path, error))?;
            }
        }
    }
    // A workspace of its own, since it lies in ours. Written last: what was cut off is made again.
    let text = fs::read_to_string(source.join("Cargo.toml")).map_err(|error| cannot(source, error))?;
    fs::write(&manifest, text + "\n[workspace]\n").map_err(|error| cannot(&manifest, error))?;
    Ok(folder)
}

/// Where an example prints what it found and what it expected, both must be the same numbers.
fn as_expected(said: &str) -> Result<(), String> {
    let numbers = |prefix: &str| -> Option<Vec<f64>> {
        let line = said.lines().find_map(|line| line.strip_prefix(prefix))?;
        let list = line.trim().trim_matches(['[', ']']);
        Some(list.split(',').map(|number| number.trim().parse().unwrap_or(f64::NAN)).collect())
    };
    let (Some(found), Some(expected)) = (numbers("Found "), numbers("Expected ")) else { return Ok(()) };
    let close = found.len() == expected.len()
        && found.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() <= 1e-6);
    if close { Ok(()) } else { Err(format!("found {found:?}, and {expected:?} was expected")) }
}

/// Whether a test of a kernel that fails its assertion says so. It expects the error when it waits. The driver may give it
/// with any call behind the launch; then the test ends with that.
fn fails_its_assertion(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(FOUND) => Ok(()),
        Some(_) if said.contains("Error: DriverError(CUDA_ERROR_ASSERT") => Ok(()),
        _ => Err(format!("{}, and {FOUND} was expected\n{}", output.status, said.trim_end())),
    }
}

/// A program's output on both streams; after a failure, with its status.
fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("`{program}` cannot be run: {error}"))?;
    let said = [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat();
    match output.status.success() {
        true => Ok(said),
        false => Err(format!("{}\n{}", output.status, said.trim_end())),
    }
}
