//! What cargo has built for tests: the files of targets, built once for all that run them.

use crate::run::cargo;
use std::process::Stdio;

/// Cargo's messages for the workspace's integration tests, built as `cargo test --workspace` builds them, and for tests
/// outside of it: a line of JSON for each artifact.
pub(crate) fn build() -> Result<String, String> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--lib", "--test", "*", "--example", "first_day", "--no-run"]);
    command.arg("--message-format=json-render-diagnostics");
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cargo cannot be run: {error}"))?;
    match output.status.success() {
        true => String::from_utf8(output.stdout).map_err(|error| format!("what cargo says: {error}")),
        false => Err("the workspace's tests do not build".into()),
    }
}

/// The artifacts of a target of a package.
pub(crate) fn artifacts<'a>(
    built: &'a str,
    package: &'a str,
    kind: &'a str,
    target: &'a str,
) -> impl Iterator<Item = &'a str> {
    let folder = format!("/crates/{package}/Cargo.toml\"");
    let (kind, name) = (format!("\"target\":{{\"kind\":[\"{kind}\""), format!("\"name\":\"{target}\""));
    built.lines().filter(move |line| line.contains(&folder) && line.contains(&kind) && line.contains(&name))
}

/// The text behind `key":"` up to the quote. Paths that need escapes are not understood.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{key}\":\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// The executable of a target of a package.
pub(crate) fn executable<'a>(
    built: &'a str,
    package: &'a str,
    kind: &'a str,
    target: &'a str,
) -> Option<&'a str> {
    artifacts(built, package, kind, target).find_map(|line| value(line, "executable"))
}

/// The executables of a package's tests: of its library, and of its integration tests, without those that its manifest
/// says are no tests of `cargo test`.
pub(crate) fn tests<'a>(built: &'a str, package: &str) -> Vec<&'a str> {
    let folder = format!("/crates/{package}/Cargo.toml\"");
    let is_test = |line: &&str| {
        line.contains(&folder)
            && ["lib", "test"].iter().any(|kind| line.contains(&format!("\"target\":{{\"kind\":[\"{kind}\"")))
            && !line.contains("\"doctest\":false,\"test\":false}")
    };
    built.lines().filter(is_test).filter_map(|line| value(line, "executable")).collect()
}
