//! Compares `warpwright logits`, on models with random weights, with the exact logits in Python.
//!
//! `tools/test-models` makes the files with the `gguf` package and computes the logits in float64, with nothing of this
//! workspace. Both packages come from PyPI into a virtual environment under `target/tools`.

use crate::run::{build_workspace, root, target_dir};
use crate::summary::{SuiteResult, Summary};
use crate::tools;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The name of the suite.
pub(crate) const NAME: &str = "models with random weights against Python";

/// Installs what the scripts need, and gives the Python that has it.
pub(crate) fn set_up() -> Result<PathBuf, String> {
    tools::python_with("models", &root().join("tools/test-models/requirements.txt"))
}

/// Runs the suite by itself.
pub(crate) fn run() -> Result<(), String> {
    let mut summary = Summary::begin();
    check(&set_up()?, &mut summary);
    summary.finish()
}

/// Makes the models, and compares.
pub(crate) fn check(python: &Path, summary: &mut Summary) {
    println!("$ {NAME}");
    match compare(python) {
        Ok(part) => summary.add(part),
        Err(why) => summary.add_failure(NAME, &why),
    }
}

fn compare(python: &Path) -> Result<SuiteResult, String> {
    let program = build_workspace()?.join(format!("warpwright{}", std::env::consts::EXE_SUFFIX));
    let mut command = Command::new(python);
    command.arg(root().join("tools/test-models/check.py")).arg(program).arg(target_dir().join("test-models"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("Python cannot be run: {error}"))?;
    let (mut passed, mut failed) = (0, 0);
    for line in
        child.stdout.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines()).map_while(Result::ok)
    {
        println!("{line}");
        passed += usize::from(line.starts_with("ok "));
        failed += usize::from(line.starts_with("failed "));
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() && failed == 0 {
        return Err(format!("tools/test-models/check.py: {status}"));
    }
    Ok(SuiteResult { name: NAME.to_string(), passed, failed, remark: String::new() })
}
