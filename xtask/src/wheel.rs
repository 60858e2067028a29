//! The Python package: `cargo xtask python`.
//!
//! The wheel is built as `pip` builds it, in the profile of the rest so that little is compiled again. It is then
//! installed with an interpreter of another version, where there is one, and the package's tests run there.

use crate::run::{root, run, target_dir};
use crate::summary::{SuiteResult, Summary};
use crate::tools;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The name of the suite.
pub(crate) const NAME: &str = "the Python package, from its wheel";

/// The largest that the wheel may be.
const MAX_BYTES: u64 = 40 << 20;

/// The versions of Python that the package may be tested with, besides that which builds it: 3.N.
const MINORS: std::ops::RangeInclusive<u32> = 10..=13;

/// Builds the wheel and runs the suite by itself.
pub(crate) fn run_all() -> Result<(), String> {
    let mut summary = Summary::begin();
    check(&mut summary);
    summary.finish()
}

/// The suite.
pub(crate) fn check(summary: &mut Summary) {
    if !cfg!(target_os = "linux") {
        return summary.add_not_run(NAME, "the wheel is for Linux");
    }
    println!("$ {NAME}");
    match test() {
        Ok(part) => summary.add(part),
        Err(why) => summary.add_failure(NAME, &why),
    }
}

fn test() -> Result<SuiteResult, String> {
    let folder = root().join("crates/warpwright-python/tests");
    let builder = minor(Path::new("python3")).ok_or("there is no Python 3")?;
    let other = MINORS.rev().filter(|other| *other != builder).find_map(interpreter);
    let interpreter = other.clone().unwrap_or_else(|| "python3".into());
    let python = tools::python_of(&interpreter, "package", &folder.join("requirements.txt"))?;
    lint(&python)?;
    install(&python)?;
    let mut part = tests(&python, &folder, &["-m", "not torch", "--ignore=triton", "-n", "2"])?;
    let tested = minor(&python).unwrap_or(builder);
    part.remark = format!("built by 3.{builder}, tested in 3.{tested}{}", part.remark);
    Ok(part)
}

/// The style of the package's Python, and its types.
fn lint(python: &Path) -> Result<(), String> {
    for tool in [&["ruff", "check", "--quiet"][..], &["ruff", "format", "--check", "--quiet"], &["mypy"]] {
        // Caches are with what is built.
        let cache = ["--cache-dir".into(), target_dir().join("tools").join(tool[0])];
        run(Command::new(python).current_dir(root()).arg("-m").args(tool).args(cache))?;
    }
    Ok(())
}

/// Builds the wheel and installs it for that Python.
pub(crate) fn install(python: &Path) -> Result<(), String> {
    let wheel = build()?;
    let size = std::fs::metadata(&wheel).map_err(|error| format!("{}: {error}", wheel.display()))?.len();
    println!("{}: {:.1} MB", wheel.display(), size as f64 / 1e6);
    if size > MAX_BYTES {
        return Err(format!("the wheel has {size} bytes, and may have {MAX_BYTES}"));
    }
    let mut install = Command::new(python);
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--force-reinstall",
    ]);
    run(install.arg(&wheel))
}

/// Runs the tests of a folder with that Python.
pub(crate) fn tests(python: &Path, folder: &Path, options: &[&str]) -> Result<SuiteResult, String> {
    let mut tests = Command::new(python);
    // Not from the root: there the package itself would be found before what was installed.
    tests
        .current_dir(folder)
        .args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"])
        .args(options)
        .arg(folder);
    // Nor from a folder that is set for something else.
    pytest(tests.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("PYTHONPATH"))
}

/// Builds the wheel.
fn build() -> Result<PathBuf, String> {
    let folder = target_dir().join("wheel");
    // What is there may be of an earlier version.
    let _ = std::fs::remove_dir_all(&folder);
    let mut command = Command::new("python3");
    command.args([
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--wheel-dir",
    ]);
    run(command.arg(&folder).arg(root()).env("WARPWRIGHT_PROFILE", "dev"))?;
    let files = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    files.flatten().map(|file| file.path()).find(is_wheel).ok_or_else(|| "pip has made no wheel".into())
}

/// Runs pytest; what it skips is counted in the remark.
fn pytest(command: &mut Command) -> Result<SuiteResult, String> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let mut part = SuiteResult { name: NAME.to_string(), ..SuiteResult::default() };
    let mut skipped = 0;
    for line in
        child.stdout.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines()).map_while(Result::ok)
    {
        println!("{line}");
        // The last line: `1 failed, 50 passed, 2 skipped in 0.85s`.
        if !line.contains(" passed") && !line.contains(" failed") && !line.contains(" error") {
            continue;
        }
        let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let counts: Option<Vec<(usize, &str)>> = match words.iter().position(|word| *word == "in") {
            Some(end) => words[..end]
                .chunks(2)
                .map(|pair| Some((pair.first()?.parse().ok()?, *pair.get(1)?)))
                .collect(),
            None => None,
        };
        for (count, what) in counts.into_iter().flatten() {
            match what {
                "passed" => part.passed += count,
                "skipped" => skipped += count,
                "failed" | "error" | "errors" => part.failed += count,
                _ => {}
            }
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if part.failed == 0 && (part.passed == 0 || !status.success()) {
        (part.failed, part.remark) = (1, format!(", {status}"));
    } else if skipped > 0 {
        part.remark = format!(", {skipped} skipped");
    }
    Ok(part)
}

/// The minor version of a Python 3, if it runs and can make virtual environments.
fn minor(python: &Path) -> Option<u32> {
    let mut command = Command::new(python);
    command.args(["-c", "import ensurepip, sys; print(sys.version_info.minor)"]).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

/// An interpreter of that minor version: on the path, or of pyenv.
fn interpreter(wanted: u32) -> Option<PathBuf> {
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let versions = pyenv.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    let prefix = format!("3.{wanted}.");
    let of_pyenv = versions.into_iter().flatten().flatten();
    let of_pyenv = of_pyenv.filter(|version| version.file_name().to_string_lossy().starts_with(&prefix));
    let of_pyenv = of_pyenv.map(|version| version.path().join("bin/python3"));
    std::iter::once(PathBuf::from(format!("python3.{wanted}")))
        .chain(of_pyenv)
        .find(|path| minor(path) == Some(wanted))
}
