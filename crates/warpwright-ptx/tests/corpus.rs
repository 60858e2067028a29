//! What compilers emit: every file of `tests/corpus/ptx` parses, verifies without errors, and survives
//! printing with its comments.

mod common;

use common::{line_of, ptx_files, read, report, round_trip, test_data};
use std::collections::BTreeMap;
use warpwright_ptx::diag::{Diagnostics, Severity};
use warpwright_ptx::{parse, verify};

#[test]
fn corpus() {
    let root = test_data().join("corpus/ptx");
    let files = ptx_files(&root);
    let mut failures = Vec::new();
    for path in &files {
        if let Err(problem) = check(&read(path)) {
            let name = path.strip_prefix(&root).unwrap_or(path);
            failures.push(format!("{}: {problem}", name.display()));
        }
    }
    report("files of the corpus", files.len(), &failures);
}

fn check(text: &str) -> Result<(), String> {
    let module = parse(text).map_err(|diagnostics| errors(text, &diagnostics))?;
    verify(&module).map_err(|diagnostics| errors(text, &diagnostics))?;
    let printed = round_trip(&module)?;
    let (before, after) = (comments(text), comments(&printed));
    let lost = before.iter().find(|(comment, count)| after.get(*comment).unwrap_or(&0) < *count);
    let made = after.iter().find(|(comment, count)| before.get(*comment).unwrap_or(&0) < *count);
    match (lost, made) {
        (Some((comment, _)), _) => Err(format!("the comment `{comment}` is lost")),
        (_, Some((comment, _))) => Err(format!("the comment `{comment}` is made up")),
        _ => Ok(()),
    }
}

/// The first few errors, with their lines.
fn errors(text: &str, diagnostics: &Diagnostics) -> String {
    let errors: Vec<_> = diagnostics.iter().filter(|d| d.severity() == Severity::Error).collect();
    let mut list = format!("{} errors", errors.len());
    for error in errors.iter().take(5) {
        let line = line_of(text, error.origin);
        let source = text.lines().nth(line - 1).unwrap_or("").trim();
        list.push_str(&format!("\n  line {line}: {error}, at `{source}`"));
    }
    list
}

/// The comments of a text and how often each is there, found without the parser.
fn comments(text: &str) -> BTreeMap<&str, usize> {
    let mut found = BTreeMap::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let comment = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            at += end;
            &rest[2..end]
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").unwrap_or(rest.len());
            at += end + 2;
            &rest[2..end]
        } else if let Some(text) = rest.strip_prefix('"') {
            at += 1 + text.find('"').map_or(rest.len(), |end| end + 1);
            continue;
        } else {
            // The characters that matter are ASCII, so any boundary will do.
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        *found.entry(comment.trim()).or_insert(0) += 1;
    }
    found
}
