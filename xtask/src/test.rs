//! `cargo xtask test`: all tests of the project.

use crate::cuda::{self, Driver};
use crate::run::{cargo, root};
use crate::summary::{SuiteResult, Summary};
use crate::{artifacts, clients, corpus, filetests, models, mutants, qualify, tools, validate, wheel};
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};
use warpwright_estimate::machine::Ptxas;

/// Mutants of a full run.
const FULL_MUTANTS: u64 = 20_000;

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Leave out what needs ptxas
    #[arg(long, conflicts_with = "require_ptxas")]
    no_ptxas: bool,
    /// Leave out what needs Python
    #[arg(long)]
    no_python: bool,
    /// Fail if ptxas or Python cannot be installed
    #[arg(long)]
    require_ptxas: bool,
    /// More mutants and targets, the slow tests, and the numerical tests through CUDA
    #[arg(long)]
    full: bool,
    /// Run the device tests on virtual GPUs alone, or nothing but the device tests on CUDA devices
    #[arg(long)]
    device: Option<Devices>,
    /// The driver of CUDA devices
    #[arg(long, default_value = "virtual")]
    driver: Driver,
}

/// The devices of the device tests: by default virtual GPUs, as for all other tests, and then CUDA devices.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Devices {
    Vm,
    Cuda,
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let mut summary = Summary::begin();
    if options.device == Some(Devices::Cuda) {
        cuda::check(options.driver, options.full, &mut summary);
        return summary.finish();
    }
    // Installed first, so that a fresh machine learns early what it lacks.
    let ptxas = match options.no_ptxas {
        true => Err("leave out --no-ptxas to run it".to_string()),
        false => tools::set_up().and_then(|tools| Ok((Ptxas::new(&tools.ptxas, &tools::scratch())?, tools))),
    };
    let python = match options.no_python {
        true => Err("leave out --no-python to run it".to_string()),
        false => models::set_up(),
    };
    summary.add(SuiteResult { name: "tools, installed".into(), ..SuiteResult::default() });
    build_tests(&mut summary);
    cargo_test(options, &mut summary);
    if options.device.is_none() {
        cuda::check(options.driver, options.full, &mut summary);
    }
    match python {
        Ok(python) => models::check(&python, &mut summary),
        Err(why) if options.require_ptxas && !options.no_python => summary.add_failure(models::NAME, &why),
        Err(why) => summary.add_not_run(models::NAME, &why),
    }
    again(&mut summary);
    clients::check(!options.no_python, &mut summary);
    match options.no_python {
        true => summary.add_not_run(wheel::NAME, "leave out --no-python to run it"),
        false => wheel::check(&mut summary),
    }
    qualify::check(&mut summary);
    match ptxas {
        Ok((ptxas, tools)) => {
            filetests::check(&ptxas, &mut summary);
            corpus::check(&ptxas, &mut summary);
            let (extent, count) = match options.full {
                true => (validate::Extent::Full, FULL_MUTANTS),
                false => (validate::Extent::Usual, mutants::DEFAULT_COUNT),
            };
            validate::check(&ptxas, &tools, validate::Page::Compared, extent, &mut summary);
            mutants::check(&ptxas, &mutants::Options { count, seed: 1, strict: false }, &mut summary);
        }
        Err(why) if options.require_ptxas => summary.add_failure("ptxas", &why),
        Err(why) => {
            for part in [
                "the filetests under ptxas",
                "the corpus, printed and assembled by ptxas",
                "the kernels under ptxas",
                "the verifier against ptxas on mutants",
            ] {
                summary.add_not_run(part, &why);
            }
        }
    }
    summary.finish()
}

/// Builds what `cargo test` would build first. A failure shows again there.
fn build_tests(summary: &mut Summary) {
    let mut command = cargo();
    command.args(["test", "--workspace", "--quiet", "--no-run"]);
    match crate::run::run(&mut command) {
        Ok(()) => summary.add(SuiteResult { name: "the tests, built".into(), ..SuiteResult::default() }),
        Err(why) => summary.add_failure("the tests, built", &why),
    }
}

/// Unit tests, integration tests, examples and doctests of the workspace.
fn cargo_test(options: &Options, summary: &mut Summary) {
    let name = "cargo test --workspace";
    println!("$ {name}");
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]);
    if options.full {
        command.env("WARPWRIGHT_FULL", "1");
    }
    match stream_output(&mut command) {
        // It did not get as far as to count.
        Ok((counts, status)) if !status.success() && counts.failed == 0 => {
            summary.add_failure(name, "the workspace's tests do not build or run");
        }
        Ok((Counts { passed, failed }, _)) => {
            summary.add(SuiteResult { name: name.to_string(), passed, failed, remark: String::new() });
        }
        Err(why) => summary.add_failure(name, &why),
    }
}

/// Runs tests of packages again, with an environment variable: on virtual GPUs with other execution orders than that of
/// the calls, some of which expose a missing wait; with native code, which must make no difference; and what compares the two
/// at a lower level of vector instructions.
fn again(summary: &mut Summary) {
    const PASSES: [(&str, &str, &[&str]); 3] = [
        ("warpwright-runtime", "WARPWRIGHT_TEST_ORDER", &["reverse", "random:1", "random:2", "random:3"]),
        ("warpwright-vm", "WARPWRIGHT_NATIVE", &["always"]),
        ("warpwright-vm", "WARPWRIGHT_SIMD", &["avx2"]),
    ];
    // What they run, they run with native code and without, whatever the environment says.
    const BOTH_WAYS: [&str; 2] = ["/differential-", "/filetests-"];
    let built = match artifacts::build() {
        Ok(built) => built,
        Err(why) => return summary.add_failure("tests again, in other ways", &why),
    };
    for (package, variable, value) in PASSES
        .into_iter()
        .flat_map(|(package, variable, values)| values.iter().map(move |value| (package, variable, value)))
    {
        let mut result = SuiteResult {
            name: format!("the tests of {package}, {variable}={value}"),
            ..SuiteResult::default()
        };
        println!("$ {variable}={value}, {}", result.name);
        let paths = artifacts::tests(&built, package);
        let runs_both_ways = |path: &str| BOTH_WAYS.iter().any(|name| path.contains(name));
        let is_of_pass = |path: &str| match variable {
            "WARPWRIGHT_NATIVE" => !runs_both_ways(path),
            "WARPWRIGHT_SIMD" => runs_both_ways(path),
            _ => true,
        };
        for path in paths.into_iter().filter(|path| is_of_pass(path)) {
            let mut command = Command::new(path);
            command.current_dir(root().join("crates").join(package)).arg("--quiet");
            match stream_output(command.env(variable, value)) {
                Ok((Counts { passed, failed }, status)) => {
                    result.passed += passed;
                    // One that ends without a word has failed too.
                    result.failed += if status.success() { failed } else { failed.max(1) };
                }
                Err(why) => {
                    eprintln!("{path}: {why}");
                    result.failed += 1;
                }
            }
        }
        if result.passed == 0 {
            result.failed += 1;
        }
        summary.add(result);
    }
}

/// Tests that have passed and failed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// Runs tests with what they print shown; counts them.
pub(crate) fn stream_output(command: &mut Command) -> Result<(Counts, ExitStatus), String> {
    let child = command.stdout(Stdio::piped()).spawn();
    let mut child = child
        .map_err(|error| format!("{} cannot be run: {error}", command.get_program().to_string_lossy()))?;
    let mut counts = Counts::default();
    let lines = child.stdout.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines());
    for line in lines.map_while(Result::ok) {
        println!("{line}");
        if let Some(result) = line.strip_prefix("test result: ") {
            counts.passed += count_before(result, " passed");
            counts.failed += count_before(result, " failed");
        }
    }
    let status = child.wait().map_err(|error| format!("its end is not known: {error}"))?;
    Ok((counts, status))
}

fn count_before(line: &str, unit: &str) -> usize {
    let before = line.split(unit).next().unwrap_or_default();
    before.split_whitespace().next_back().and_then(|number| number.parse().ok()).unwrap_or(0)
}
